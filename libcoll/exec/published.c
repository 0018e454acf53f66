// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "core/port.h"
#include "exec.h"
#include "libcoll/engine/copy_costs.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/publication.h"
#include "published.h"

enum {
	/* Where it pays: docs/results/performance.md. Shorter messages are never read where they are. */
	PUBLISHED_MIN = COLL_COPY_LEAST,
	PUBLISHED_AND_RECV_MIN = 512 << 10,	/* of a rank that receives, too: more than a ring holds */
	READERS_MIN = 3,
};

/* ---- marks -------------------------------------------------------------------- */

/* Shorter sends of this rank are no publications. */
static uint64_t bytes_min(const struct coll_planned *planned)
{
	return planned->plan.recvs ? PUBLISHED_AND_RECV_MIN : PUBLISHED_MIN;
}

static bool send_fits(const struct coll_op *op, uint64_t min)
{
	return op->kind == COLL_OP_SEND && op->bytes >= min && !(op->flags & COLL_OPTIONAL);
}

static bool op_writes(const struct coll_op *op, const struct coll_op *send)
{
	return (op->kind == COLL_OP_RECV || op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY) &&
	       op->bytes && op->result < send->left + send->bytes &&
	       send->left < op->result + op->bytes;
}

/* Sends of the same bytes: the ops from `begin` to before `end` that have this number. */
struct same_sends {
	uint32_t begin, latest, count;
};

/* If they are too few they have no number, and the next ones get theirs. */
static uint32_t same_end(const struct same_sends *same, uint32_t end, uint32_t *number, uint32_t next)
{
	uint32_t i;

	if (!same->count || same->count >= READERS_MIN)
		return next + !!same->count;
	for (i = same->begin; i < end; i++)
		if (number[i] == next)
			number[i] = COLL_NONE;
	return next;
}

static bool same_has(const struct same_sends *same, const struct coll_op *ops, const struct coll_op *send)
{
	return same->count && ops[same->latest].left == send->left &&
	       ops[same->latest].bytes == send->bytes;
}

/*
 * Numbers the sends by their publication, and counts those of each; other ops are COLL_NONE. Ops wait
 * for earlier ones only, so one that writes what two sends read is between the two in the list,
 * or before or after both.
 */
static uint32_t sends_number(const struct coll_schedule *s, uint64_t min, uint32_t *number, uint32_t *sends)
{
	const struct coll_op *ops = coll_ops(s);
	struct same_sends same = { 0 };
	uint32_t count = 0, i;

	for (i = 0; i < s->ops; i++) {
		const bool fits = send_fits(&ops[i], min);

		number[i] = COLL_NONE;
		if (same.count && ((fits && !same_has(&same, ops, &ops[i])) ||
				   op_writes(&ops[i], &ops[same.latest]))) {
			count = same_end(&same, i, number, count);
			same.count = 0;
		}
		if (!fits)
			continue;
		if (!same.count)
			same.begin = i;
		same.latest = i;
		number[i] = count;
		sends[count] = ++same.count;
	}
	return same_end(&same, s->ops, number, count);
}

static bool schedule_has_enough(const struct coll_schedule *s, uint64_t min)
{
	uint32_t i, fit = 0;

	for (i = 0; i < s->ops && fit < READERS_MIN; i++)
		fit += send_fits(&coll_ops(s)[i], min);
	return fit == READERS_MIN;
}

void coll_published_mark(struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	const uint64_t min = bytes_min(planned);

	if (coll_call_is_message(&planned->call) || !schedule_has_enough(s, min))
		return;
	planned->published = malloc(2 * (size_t)s->ops * sizeof(*planned->published));
	if (!planned->published)
		return;
	planned->publication_sends = planned->published + s->ops;
	planned->publications = sends_number(s, min, planned->published, planned->publication_sends);
	if (planned->publications)
		return;
	free(planned->published);
	planned->published = NULL;
}

/* ---- sends ---------------------------------------------------------------------- */

static struct coll_published *published_of(const struct coll_exec *exec, uint32_t op)
{
	const struct coll_planned *planned = exec->planned;

	return planned->published && planned->published[op] != COLL_NONE ?
		       &exec->published[planned->published[op]] : NULL;
}

/* What peers map already needs no copy. A run whose messages are timed has those of one link each. */
static bool may_publish(const struct coll_exec *exec, const struct coll_link *link,
			const struct coll_message *message)
{
	struct coll_engine *engine = &exec->group->context->engine;

	return !exec->sampled && link->state == LINK_UP && !link->offloaded && !link->streams &&
	       coll_link_through_memory(link) &&
	       !coll_shared_find(&engine->arena, message->payload, message->header.bytes);
}

static bool link_is_free(const struct coll_link *link)
{
	return !link->queue && !link->socket.sending;
}

bool coll_published_send(struct coll_exec *exec, uint32_t op, struct coll_message *message)
{
	struct coll_published *published = published_of(exec, op);
	const struct coll_op *send = &coll_ops(exec->planned->schedule)[op];
	struct coll_link *link = exec->planned->links[send->peer];

	if (!published || !may_publish(exec, link, message))
		return false;
	if (!published->bytes) {
		published->bytes = coll_publish(&exec->group->context->engine, message->payload, send->bytes);
		published->sends = exec->planned->publication_sends[exec->planned->published[op]];
	}
	if (!published->bytes)
		return false;
	message->payload = published->bytes;
	return link_is_free(link);
}

static void published_drop(struct coll_exec *exec, struct coll_published *published)
{
	coll_publication_end(&exec->group->context->engine, published->bytes);
	published->bytes = NULL;
}

void coll_published_sent(struct coll_exec *exec, uint32_t op)
{
	struct coll_published *published = published_of(exec, op);

	if (published && published->bytes && !--published->sends)
		published_drop(exec, published);
}

void coll_published_end(struct coll_exec *exec)
{
	uint32_t i;

	for (i = 0; i < exec->planned->publications; i++)
		if (exec->published[i].bytes)
			published_drop(exec, &exec->published[i]);
}
