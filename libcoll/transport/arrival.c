// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "arrival.h"
#include "libcoll/link/stream.h"

enum {
	ENDED_MAX = 4096,		/* with more arrivals the oldest ended one is dropped */
	ARRIVALS_MAX = 65536,		/* with more the oldest one is refused */
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

static struct coll_group *group_find(const struct coll_context *context, uint64_t id)
{
	struct coll_group *group = context->groups;

	while (group && group->id != id)
		group = group->next;
	return group;
}

bool coll_arrivals_news(const struct coll_context *context, uint64_t id, struct coll_header *news)
{
	const struct coll_group *group = group_find(context, id);
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
	struct coll_group *group = group_find(arrival->context, arrival->group);
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

/* They may wait for groups that never exist here: bounds their number. */
static void arrivals_bound(struct coll_context *context)
{
	struct coll_arrival *arrival, *ended = NULL, *oldest = NULL;
	uint32_t count = 0;

	for (arrival = context->arrivals; arrival; arrival = arrival->next) {
		count++;
		oldest = arrival;
		if (arrival->ops->is_ended(arrival))
			ended = arrival;
	}
	if (count > ENDED_MAX && ended) {
		coll_arrival_remove(ended);
		ended->ops->drop(ended, NULL);
	} else if (count > ARRIVALS_MAX) {
		coll_arrival_remove(oldest);
		oldest->ops->drop(oldest, "its group does not come, and others wait");
	}
}

/* Links first, then their streams. */
static void arrivals_attach(struct coll_context *context, uint64_t group)
{
	struct coll_arrival **slot, *arrival;
	int streams;

	for (streams = 0; streams < 2; streams++) {
		slot = &context->arrivals;
		while ((arrival = *slot)) {
			if (arrival->group != group || !arrival->stream != !streams) {
				slot = &arrival->next;
				continue;
			}
			*slot = arrival->next;
			if (!arrival_attach(arrival)) {
				slot = &context->arrivals;	/* others may have gone too */
				continue;
			}
			arrival->next = *slot;
			*slot = arrival;
			slot = &arrival->next;
		}
	}
}

void coll_arrival_add(struct coll_arrival *arrival)
{
	struct coll_context *context = arrival->context;

	arrival->next = context->arrivals;
	context->arrivals = arrival;
	arrivals_attach(context, arrival->group);
	arrivals_bound(context);
}

void coll_arrival_remove(struct coll_arrival *arrival)
{
	struct coll_arrival **slot = &arrival->context->arrivals;

	while (*slot && *slot != arrival)
		slot = &(*slot)->next;
	if (*slot)
		*slot = arrival->next;
}

void coll_arrivals_adopt(struct coll_group *group)
{
	arrivals_attach(group->context, group->id);
}

void coll_arrivals_drop(struct coll_context *context)
{
	struct coll_arrival *arrival;

	while ((arrival = context->arrivals)) {
		context->arrivals = arrival->next;
		arrival->ops->drop(arrival, NULL);
	}
	free(context->graves);
	context->graves = NULL;
}
