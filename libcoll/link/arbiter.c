// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "core/match.h"
#include "core/port.h"
#include "arbiter.h"
#include "link.h"

#define CHUNK_SECONDS 0.002

enum {
	CHUNK_MAX = 1 << 23,
	FINISHING_CHUNKS = 2,
	STALL_MIN_NS = 100000000,
	STALL_USUALS = 4,
	USUAL_FADES = 16,	/* by 1/16 each chunk */
};

static bool is_bulk(const struct coll_message *message)
{
	return message->header.bytes > URGENT_MAX;
}

static const char *arbiter_policy(const struct coll_link *link)
{
	return link->group->context->options.link_policy;
}

uint64_t coll_arbiter_chunk(const struct coll_link *link)
{
	const struct coll_options *options = &link->group->context->options;
	const double beta = options->machine.beta;

	if (options->link_chunk || coll_link_is_far(link) || beta * CHUNK_FAR > CHUNK_SECONDS)
		return coll_arbiter_chunk_far(options);
	return beta * CHUNK_MAX > CHUNK_SECONDS ? CHUNK_SECONDS / beta : CHUNK_MAX;
}

/* Bytes in flight when the exit is full; 0: not known. */
static uint64_t exit_bytes(const struct coll_link *link)
{
	const struct coll_machine *machine = &link->group->context->options.machine;
	const double beta = machine->beta > machine->wan_beta ? machine->beta : machine->wan_beta;

	return beta > 0 && machine->wan_alpha > 0 ? 2 * machine->wan_alpha / beta : 0;
}

/* ---- the exit ----------------------------------------------------------- */

/* Whether its bulk shares an exit with that of other links. */
static bool shares_exit(const struct coll_link *link)
{
	if (!link->group->cluster || !strcmp(arbiter_policy(link), "rr"))
		return false;
	return coll_link_is_far(link) ||
	       (!link->local && !strcmp(arbiter_policy(link), "occupancy-hier"));
}

static struct coll_message **first_bulk(struct coll_link *link)
{
	struct coll_message **slot = &link->queue;

	while (*slot && !is_bulk(*slot))
		slot = &(*slot)->next;
	return slot;
}

bool coll_arbiter_bulk_is_next(const struct coll_link *link)
{
	return link->number || (link->queue && is_bulk(link->queue));
}

bool coll_arbiter_has_bulk(struct coll_link *link)
{
	return *first_bulk(link);
}

static bool has_work_for_exit(struct coll_link *link)
{
	return link->attached && !link->broken && !link->stalled && !link->finishing &&
	       link->state != LINK_CLOSED && link->state != LINK_LOST && shares_exit(link) &&
	       coll_arbiter_has_bulk(link);
}

/* Whether one of its streams could take a chunk at once. */
static bool has_idle_stream(const struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		if (link->stream[i].attached && !link->stream[i].socket.sending &&
		    !link->stream[i].queue)
			return true;
	return false;
}

/* The link's bulk that could begin at once, or NULL. */
static const struct coll_message *ready_bulk(struct coll_link *link)
{
	if (link->streams ? !has_idle_stream(link)
			  : link->socket.sending || link->queue != *first_bulk(link))
		return NULL;
	return *first_bulk(link);
}

/* Links to other clusters go first, else the older message. Both have bulk that is ready. */
static bool goes_before(struct coll_link *link, struct coll_link *other)
{
	const bool far = coll_link_is_far(link);

	coll_debug_assert(ready_bulk(link) && ready_bulk(other));
	if (far != coll_link_is_far(other))
		return far;
	return ready_bulk(link)->age < ready_bulk(other)->age;
}

/* The best link that could begin at once; NULL: none. */
static struct coll_link *best_contender(const struct coll_arbiter *arbiter)
{
	struct coll_link *link, *best = NULL;

	for (link = arbiter->contenders; link; link = link->next_contender)
		if (ready_bulk(link) && (!best || goes_before(link, best)))
			best = link;
	return best;
}

static void exit_pass_on(struct coll_arbiter *arbiter)
{
	struct coll_link *next;

	arbiter->holder = NULL;
	next = best_contender(arbiter);
	if (next)
		coll_link_touch(next);
}

void coll_arbiter_update(struct coll_link *link)
{
	struct coll_arbiter *arbiter = &link->group->context->arbiter;
	struct coll_link **slot = &arbiter->contenders;
	const bool contends = link == link->whole && has_work_for_exit(link);

	if (contends == link->contends)
		return;
	link->contends = contends;
	if (contends) {
		link->next_contender = *slot;
		*slot = link;
		return;
	}
	while (*slot != link)
		slot = &(*slot)->next_contender;
	*slot = link->next_contender;
	if (!arbiter->holder || arbiter->holder == link)
		exit_pass_on(arbiter);
}

/* Whether bulk of this link may begin now. */
static bool exit_allows(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	const struct coll_arbiter *arbiter = &context->arbiter;
	const struct coll_link *best;

	if (!link->contends || arbiter->holder == link)
		return true;
	best = arbiter->holder ? arbiter->holder : best_contender(arbiter);
	if (!best || best == link)
		return true;
	context->counters.deferred++;
	return false;
}

bool coll_arbiter_allows(struct coll_link *link, const struct coll_message *message)
{
	return !is_bulk(message) || (!link->streams && exit_allows(link));
}

bool coll_arbiter_offers(struct coll_link *link)
{
	return coll_arbiter_has_bulk(link) && exit_allows(link);
}

static uint64_t exit_timeout(const struct coll_arbiter *arbiter)
{
	const uint64_t ns = STALL_USUALS * arbiter->usual;

	return ns > STALL_MIN_NS ? ns : STALL_MIN_NS;
}

/* Whether at most `bytes` of it are left. */
static bool arbiter_finishes(const struct coll_message *message, uint64_t bytes)
{
	return message->header.bytes - message->header.offset <= bytes;
}

static void exit_acquire(struct coll_link *link, const struct coll_message *message)
{
	struct coll_context *context = link->group->context;
	struct coll_arbiter *arbiter = &context->arbiter;

	if (!link->contends || arbiter->holder == link)
		return;
	arbiter->holder = link;
	if (arbiter_finishes(message,
			     FINISHING_CHUNKS * coll_arbiter_chunk(link) + 2 * exit_bytes(link))) {
		link->finishing = true;
		coll_arbiter_update(link);
		return;
	}
	arbiter->since = coll_now();
	coll_engine_check_at(&context->engine, arbiter->since + exit_timeout(arbiter));
}

static void exit_release(struct coll_link *link, bool whole)
{
	struct coll_arbiter *arbiter = &link->group->context->arbiter;
	uint64_t took;

	if (arbiter->holder == link) {
		took = coll_now() - arbiter->since;
		arbiter->usual -= arbiter->usual / USUAL_FADES;
		if (took > arbiter->usual)
			arbiter->usual = took;
	}
	link->stalled = false;
	link->finishing &= !whole;
	coll_arbiter_update(link);
	if (arbiter->holder == link)
		exit_pass_on(arbiter);
}

void coll_arbiter_check(struct coll_context *context, uint64_t now)
{
	struct coll_arbiter *arbiter = &context->arbiter;
	struct coll_link *holder = arbiter->holder;
	const uint64_t until = arbiter->since + exit_timeout(arbiter);

	if (!holder)
		return;
	if (now < until) {
		coll_engine_check_at(&context->engine, until);
		return;
	}
	holder->stalled = true;
	context->counters.bypassed++;
	coll_arbiter_update(holder);
}

/* ---- a link's queue ----------------------------------------------------- */

static void arbiter_insert(struct coll_link *link, struct coll_message **slot,
			   struct coll_message *message)
{
	message->next = *slot;
	if (link->queue_end == slot)
		link->queue_end = &message->next;
	*slot = message;
}

static void insert_urgent(struct coll_link *link, struct coll_message *message)
{
	struct coll_message *bulk = *link->urgent_end;

	bulk = bulk && is_bulk(bulk) && !link->streams ? bulk : NULL;
	/* The bulk has waited long enough: it goes before this message and later ones. */
	if (bulk && link->overtaken >= coll_arbiter_chunk(link) &&
	    coll_arbiter_allows(link, bulk) && !link->promoted) {
		link->promoted = true;
		link->urgent_end = &bulk->next;
	}
	if (bulk) {
		link->overtaken += sizeof(message->header) + message->header.bytes;
		link->group->context->counters.expedited++;
	}
	arbiter_insert(link, link->urgent_end, message);
	link->urgent_end = &message->next;
}

/* rr: behind all others, but nothing may follow a goodbye. */
static void insert_bulk(struct coll_link *link, struct coll_message *message)
{
	struct coll_message **slot = link->urgent_end;

	coll_chunk_cut(&message->header, coll_arbiter_chunk(link));
	if (!strcmp(arbiter_policy(link), "rr") && !link->leaving)
		slot = link->queue_end;
	else
		while (*slot && is_bulk(*slot) && (*slot)->age < message->age)
			slot = &(*slot)->next;
	arbiter_insert(link, slot, message);
}

void coll_arbiter_queue(struct coll_link *link, struct coll_message *message)
{
	struct coll_arbiter *arbiter = &link->group->context->arbiter;

	if (is_bulk(message)) {
		message->age = (uint64_t)message->run_age << 32 | arbiter->bulk++;
		insert_bulk(link, message);
		coll_arbiter_update(link);
	} else if (message->header.kind == COLL_MESSAGE_BYE) {
		arbiter_insert(link, link->queue_end, message);
	} else {
		insert_urgent(link, message);
	}
}

static struct coll_message *queue_remove(struct coll_link *link, struct coll_message **slot)
{
	struct coll_message *message = *slot;

	*slot = message->next;
	if (link->urgent_end == &message->next)
		link->urgent_end = slot;
	if (link->queue_end == &message->next)
		link->queue_end = slot;
	return message;
}

struct coll_message *coll_arbiter_pop(struct coll_link *link)
{
	coll_assert(link->queue);
	return queue_remove(link, &link->queue);
}

struct coll_message *coll_arbiter_deal(struct coll_link *link, struct coll_header *chunk)
{
	struct coll_message **slot = first_bulk(link), *message = *slot;

	coll_assert(message);
	exit_acquire(link, message);
	queue_remove(link, slot);
	*chunk = message->header;
	message->header.offset += coll_chunk_bytes(chunk);
	if (message->header.offset < message->header.bytes)
		insert_bulk(link, message);
	coll_arbiter_update(link);
	return message;
}

void coll_arbiter_requeue(struct coll_link *link, struct coll_message *message)
{
	insert_bulk(link, message);
}

void coll_arbiter_begin(struct coll_link *link, struct coll_message **slot)
{
	if (slot == link->urgent_end)
		link->urgent_end = &(*slot)->next;
	if (is_bulk(*slot))
		exit_acquire(link, *slot);
}

void coll_arbiter_chunk_sent(struct coll_link *link, bool whole)
{
	link->overtaken = 0;
	link->promoted = false;
	exit_release(link, whole);
}
