// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "arrival.h"
#include "libcoll/link/groups.h"
#include "libcoll/link/stream.h"

enum {
	ENDED_MAX = 4096,		/* with more arrivals those that have ended are dropped */
	ARRIVALS_MAX = 65536,		/* with more the oldest one is refused */
	BYTES_MAX = 256 << 20,		/* ... and with more bytes that they hold: 4 KB of so many */
	GRAVES = 256,			/* failed groups that are remembered, the latest ones */
};

/* A group that has failed and does not exist here any more, or never did. */
struct coll_grave {
	uint64_t group;
	struct coll_header news;	/* hash 0: an empty entry */
};

static void arrivals_attach(struct coll_context *context, uint64_t group);

/* A stream joins its link if that is connected; else it waits. Returns whether it waits. */
static bool arrival_is_stream(struct coll_arrival *arrival, struct coll_group *group)
{
	struct coll_link *link = group->links[arrival->from], *stream;
	int error;

	if (!group->freed && (!link || link->state == LINK_IDLE))
		return true;
	if (!link || link->state == LINK_CLOSED) {	/* it was late */
		arrival->ops->drop(arrival, NULL);
		return false;
	}
	stream = arrival->stream <= link->streams ? &link->stream[arrival->stream - 1] : NULL;
	if (!stream || stream->state != LINK_IDLE) {
		arrival->ops->drop(arrival, "its rank has no such stream");
		return false;
	}
	error = arrival->ops->attach(arrival, stream, 0);
	if (error) {
		arrival->ops->drop(arrival, NULL);
		coll_link_lost(stream, error);
	}
	return false;
}

static bool arrival_is_link(struct coll_arrival *arrival, struct coll_group *group)
{
	/* A freed group accepts only peers that it still has messages for. */
	struct coll_link *link = group->freed ? group->links[arrival->from] :
						coll_link_get(group, arrival->from);
	int error;

	if (group->freed && (!link || link->state != LINK_IDLE)) {
		arrival->ops->drop(arrival, NULL);
		return false;
	}
	if (!link || link->state != LINK_IDLE) {
		arrival->ops->drop(arrival, "its rank is connected already");
		return false;
	}
	error = arrival->ops->attach(arrival, link, arrival->streams);
	if (error) {
		arrival->ops->drop(arrival, NULL);
		coll_link_lost(link, error);
	}
	return false;
}

/* ---- failed groups -------------------------------------------------------- */

static struct coll_grave *grave_find(const struct coll_context *context, uint64_t group)
{
	uint32_t i;

	for (i = 0; context->graves && i < GRAVES; i++)
		if (context->graves[i].news.hash && context->graves[i].group == group)
			return &context->graves[i];
	return NULL;
}

bool coll_arrivals_news(const struct coll_context *context, uint64_t id, struct coll_header *news)
{
	const struct coll_group *group = coll_groups_find(context, id);
	const struct coll_grave *grave = group ? NULL : grave_find(context, id);

	if (group)
		*news = coll_link_events(group)->news(group);
	else if (grave)
		*news = grave->news;
	else
		*news = (struct coll_header){ .run = COLL_NONE, .slot = COLL_NONE };
	return news->hash;
}

void coll_arrivals_bury(struct coll_context *context, uint64_t group,
			const struct coll_header *news)
{
	if (!context->graves)
		context->graves = calloc(GRAVES, sizeof(*context->graves));
	if (!context->graves || !news->hash)
		return;
	context->graves[context->buried++ % GRAVES] = (struct coll_grave){ group, *news };
	arrivals_attach(context, group);
}

/* ---- attaching ------------------------------------------------------------ */

/* Returns whether it waits. */
static bool arrival_attach(struct coll_arrival *arrival)
{
	struct coll_group *group = coll_groups_find(arrival->context, arrival->group);
	struct coll_header news;

	if (!group && coll_arrivals_news(arrival->context, arrival->group, &news)) {
		arrival->ops->notify(arrival, &news);
		return false;
	}
	if (!group)
		return true;
	if (arrival->to != group->rank || arrival->from >= group->ranks ||
	    (arrival->world != COLL_NONE && group->world[arrival->from] != arrival->world)) {
		arrival->ops->drop(arrival, "its hello names other ranks");
		return false;
	}
	if (group->state != GROUP_OK) {
		news = coll_link_events(group)->news(group);
		arrival->ops->notify(arrival, &news);
		return false;
	}
	return arrival->stream ? arrival_is_stream(arrival, group) :
				 arrival_is_link(arrival, group);
}

/* Before `next`, which is older; NULL: it is the oldest. */
static void arrival_wait(struct coll_arrival *arrival, struct coll_arrival *next)
{
	struct coll_context *context = arrival->context;

	arrival->waits = true;
	arrival->next = next;
	arrival->previous = next ? next->previous : context->arrivals_oldest;
	*(next ? &next->previous : &context->arrivals_oldest) = arrival;
	*(arrival->previous ? &arrival->previous->next : &context->arrivals) = arrival;
	context->arrivals_count++;
	context->arrivals_bytes += arrival->bytes;
}

void coll_arrival_remove(struct coll_arrival *arrival)
{
	struct coll_context *context = arrival->context;

	if (!arrival->waits)
		return;
	arrival->waits = false;
	if (context->arrivals_next == arrival)
		context->arrivals_next = arrival->next;
	*(arrival->next ? &arrival->next->previous : &context->arrivals_oldest) = arrival->previous;
	*(arrival->previous ? &arrival->previous->next : &context->arrivals) = arrival->next;
	context->arrivals_count--;
	context->arrivals_bytes -= arrival->bytes;
}

/* One that is dropped may take others with it, or let others come. */
static void arrivals_drop_ended(struct coll_context *context)
{
	struct coll_arrival *arrival = context->arrivals;

	if (context->arrivals_next)
		return;
	context->arrivals_since = 0;
	for (; arrival; arrival = context->arrivals_next) {
		context->arrivals_next = arrival->next;
		if (!arrival->ops->is_ended(arrival))
			continue;
		coll_arrival_remove(arrival);
		arrival->ops->drop(arrival, NULL);
	}
}

static void arrival_refuse(struct coll_arrival *arrival)
{
	coll_arrival_remove(arrival);
	arrival->ops->drop(arrival, "its group does not come, and others wait");
}

/*
 * They may wait for groups that never exist here: bounds their number. To look at each takes
 * time, so it is done once in ENDED_MAX.
 */
static void arrivals_bound(struct coll_context *context)
{
	if (++context->arrivals_since > ENDED_MAX && context->arrivals_count > ENDED_MAX)
		arrivals_drop_ended(context);
	if (context->arrivals_count > ARRIVALS_MAX)
		arrival_refuse(context->arrivals_oldest);
}

static struct coll_arrival *arrivals_oldest_of(const struct coll_context *context, uint32_t world)
{
	struct coll_arrival *arrival = context->arrivals_oldest;

	while (arrival && arrival->world != world)
		arrival = arrival->previous;
	return arrival;
}

/* The rank whose arrivals hold the most; without memory for sums, `else_rank`. Costs a look at all. */
static uint32_t arrivals_greatest(const struct coll_context *context, uint32_t else_rank)
{
	const uint32_t ranks = context->boot->ranks;
	uint64_t *held = calloc(ranks + 1, sizeof(*held));	/* the last: of those that are of no rank */
	const struct coll_arrival *arrival;
	uint32_t rank, greatest = ranks;

	if (!held)
		return else_rank;
	for (arrival = context->arrivals; arrival; arrival = arrival->next)
		held[arrival->world < ranks ? arrival->world : ranks] += arrival->bytes;
	for (rank = 0; rank < ranks; rank++)
		if (held[rank] > held[greatest])
			greatest = rank;
	free(held);
	return greatest < ranks ? greatest : COLL_NONE;
}

/* The oldest ones of a rank, so many that it is not looked for at the next byte again. Whether any was. */
static bool arrivals_refuse_of(struct coll_context *context, uint32_t world)
{
	struct coll_arrival *oldest;
	bool any = false;

	while (context->arrivals_bytes > BYTES_MAX - BYTES_MAX / 8 &&
	       (oldest = arrivals_oldest_of(context, world))) {
		arrival_refuse(oldest);
		any = true;
	}
	return any;
}

/* Who holds too much pays for it, not who comes next. */
static void arrivals_bound_bytes(struct coll_context *context, uint32_t asker)
{
	bool any = true;

	while (any && context->arrivals_bytes > BYTES_MAX)
		any = arrivals_refuse_of(context, arrivals_greatest(context, asker));
}

void coll_arrival_hold(struct coll_arrival *arrival, uint64_t bytes)
{
	struct coll_context *context = arrival->context;

	if (!arrival->waits)
		return;
	context->arrivals_bytes += bytes - arrival->bytes;
	arrival->bytes = bytes;
	arrivals_bound_bytes(context, arrival->world);
}

static bool group_is_known(const struct coll_context *context, uint64_t id)
{
	return coll_groups_find(context, id) || grave_find(context, id);
}

/* Links first, then their streams. Others may go when one is attached: from the start again. */
static void arrivals_attach(struct coll_context *context, uint64_t group)
{
	struct coll_arrival *arrival, *next;
	int streams;

	for (streams = 0; streams < 2; streams++) {
		for (arrival = context->arrivals; arrival; arrival = next) {
			next = arrival->next;
			if (arrival->group != group || !arrival->stream != !streams)
				continue;
			coll_arrival_remove(arrival);
			if (arrival_attach(arrival))
				arrival_wait(arrival, next);
			else
				next = context->arrivals;
		}
	}
}

void coll_arrival_add(struct coll_arrival *arrival)
{
	struct coll_context *context = arrival->context;

	arrival_wait(arrival, context->arrivals);
	if (!group_is_known(context, arrival->group))
		context->events->called_for(context, arrival->group, COLL_NONE);
	else
		arrivals_attach(context, arrival->group);
	arrivals_bound(context);
}

void coll_arrivals_adopt(struct coll_group *group)
{
	arrivals_attach(group->context, group->id);
}

void coll_arrivals_drop(struct coll_context *context)
{
	struct coll_arrival *arrival;

	while ((arrival = context->arrivals)) {
		coll_arrival_remove(arrival);
		arrival->ops->drop(arrival, NULL);
	}
	free(context->graves);
	context->graves = NULL;
}
