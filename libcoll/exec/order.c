// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "core/port.h"
#include "exec.h"
#include "order.h"
#include "published.h"

static bool op_fits(const struct coll_op *op)
{
	return !(op->flags & (COLL_OPTIONAL | COLL_WAIT_ANY)) && op->unless == COLL_NONE &&
	       op->bytes <= STRAIGHT_MAX && op->kind != COLL_OP_CONNECT &&
	       op->kind != COLL_OP_RELEASE &&
	       !(op->kind == COLL_OP_REDUCE && op->reduction == COLL_USER_REDUCTION);
}

/* Those that the engine publishes are no part of it. */
static bool plan_fits(const struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	uint32_t i;

	for (i = 0; i < s->ops; i++)
		if (!op_fits(&coll_ops(s)[i]) || coll_published_first(planned, i) != COLL_NONE)
			return false;
	return s->ops && s->ops <= IN_ORDER_MAX && s->peers;
}

/* What an op is to the list: the next one is of the lowest that there is. */
enum order_rank { SENDS, LOCAL, RECEIVES, ORDER_RANKS };

static enum order_rank rank_of(const struct coll_op *op)
{
	return op->kind == COLL_OP_SEND ? SENDS : op->kind == COLL_OP_RECV ? RECEIVES : LOCAL;
}

/* Takes the first of the schedule among the ready ones of the lowest rank. */
static u32 order_take(u64 ready[ORDER_RANKS])
{
	u32 rank = SENDS, op;

	while (rank < ORDER_RANKS && !ready[rank])
		rank++;
	coll_assert(rank < ORDER_RANKS);
	op = __builtin_ctzll(ready[rank]);
	ready[rank] &= ready[rank] - 1;
	return op;
}

/*
 * Steps through the schedule as if each message came when nothing else is left to do. Others wait
 * for what this rank sends: that goes first. Of several receives the first of the schedule comes
 * first: algorithms emit phase by phase, and who waits for a later phase waits for ranks that wait
 * for this one.
 */
static void order_fill(uint8_t *order, struct coll_step *step)
{
	const struct coll_schedule *s = step->plan->schedule;
	u64 ready[ORDER_RANKS] = { 0 };
	u32 count = 0, op;

	while (!coll_step_finished(step)) {
		while ((op = coll_step_next(step)) != COLL_NONE)
			ready[rank_of(&coll_ops(s)[op])] |= 1ull << op;
		order[count] = order_take(ready);
		coll_step_done(step, order[count++]);
	}
	coll_assert(count == s->ops);
}

void coll_order_make(struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	struct coll_step step;
	void *memory;

	if (coll_call_is_message(&planned->call) || !plan_fits(planned))
		return;
	memory = malloc(coll_step_bytes(&planned->plan));
	planned->order = memory ? malloc(s->ops) : NULL;
	if (planned->order) {
		coll_step_init(&step, &planned->plan, memory);
		order_fill(planned->order, &step);
	}
	free(memory);
}
