// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "board.h"
#include "in_order.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/link/link.h"
#include "live.h"
#include "poll.h"
#include "published.h"
#include "straight.h"
#include "survey.h"
#include "times.h"

/*
 * Nothing else is under way in this context that the engine would have to move on, and nothing that
 * asks for more of each call. With a progress thread other threads' calls would wait for this one.
 */
static bool context_allows(const struct coll_context *context)
{
	return !context->active && coll_context_is_plain(context) && !context->engine.touched &&
	       !context->engine.neighbour.near && !coll_straight_is_due(context);
}

/* The first run of a plan makes its memory, and says what was chosen. */
struct coll_exec *coll_in_order_begin(struct coll_planned *planned, void *in, void *out)
{
	struct coll_group *group = planned->group;
	struct coll_exec *exec;

	if (!planned->order || !planned->spare || group->state != GROUP_OK || group->freed ||
	    !context_allows(group->context) ||
	    (group->surveyed && coll_survey_is_due(group)) ||
	    !coll_planned_has_buffers(planned, in, out))
		return NULL;
	if (planned->board_tries)
		coll_board_join(planned);
	exec = coll_exec_begin_in_order(planned, in, out);
	if (exec && group->surveyed)
		coll_survey_count(group);
	return exec;
}

/* Another look may be taken. All waits of a call are one: `now` is 0 before the first. */
static bool patience_lasts(struct coll_straight_wait *patience, struct coll_engine *engine)
{
	if (!patience->now)
		coll_straight_begin(patience, engine);
	else
		coll_straight_go_on(patience, engine);
	engine->looks++;
	return patience->now < patience->until;
}

/* By a board, or by the ring. */
static enum coll_look order_look(struct coll_exec *exec, uint32_t index)
{
	return exec->group->board && coll_board_take(exec, index) ? COLL_LOOK_MESSAGE :
								    coll_exec_take_next(exec, index);
}

/* The first look is what taking a message that is there costs. */
static enum coll_look order_look_sampled(struct coll_exec *exec, uint32_t index)
{
	const uint64_t before = coll_exec_post_sampled(exec, index);
	const enum coll_look found = order_look(exec, index);

	if (found == COLL_LOOK_MESSAGE)
		coll_exec_took_sampled(exec, index, before);
	return found;
}

/* What is there at once is not waited for. */
static enum coll_look order_look_first(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = coll_exec_op(exec, index);
	enum coll_look found;

	if (exec->timed)
		coll_times_posted(exec, op);
	found = exec->sampled ? order_look_sampled(exec, index) : order_look(exec, index);
	if (exec->timed && found == COLL_LOOK_MESSAGE)
		coll_times_found(exec, op);
	return found;
}

/* While it waits its link expects it, or would leave it where it is. */
static bool order_receive(struct coll_exec *exec, uint32_t index,
			  struct coll_straight_wait *patience)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	struct coll_link *link = exec->planned->links[op->peer];
	struct coll_engine *engine = &exec->group->context->engine;
	enum coll_look found;

	if (link->kept)			/* it may be among these, which are the engine's */
		return false;
	coll_link_expect(link, 1);
	found = order_look_first(exec, index);
	if (found == COLL_LOOK_NOTHING)
		coll_memory_wake_readers(engine);
	while (found == COLL_LOOK_NOTHING && patience_lasts(patience, engine))
		found = order_look(exec, index);
	coll_link_expect(link, -1);
	if (found != COLL_LOOK_MESSAGE)
		return false;
	coll_live_op(exec, COLL_FLIGHT_RECV, link, op->slot);	/* else the engine tells it */
	coll_live_op(exec, COLL_FLIGHT_GOT, link, op->slot);
	coll_exec_count_recv(exec, op);
	if (exec->timed)
		coll_times_arrived(exec, op);
	if (exec->sampled)
		coll_times_sample_arrived(exec, op);
	return true;
}

/* The first of a publication may do for all. */
static bool order_send(struct coll_exec *exec, uint32_t index)
{
	if (exec->group->board && coll_board_first(exec->planned, index) == index)
		coll_exec_send_by_board(exec, index);
	return exec->ahead >> index & 1 || coll_exec_send_now(exec, index);
}

static bool order_op(struct coll_exec *exec, uint32_t index,
		     struct coll_straight_wait *patience)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];

	switch (op->kind) {
	case COLL_OP_SEND:
		if (exec->timed)
			coll_times_sent(exec, op);
		/* What is sampled is what messages cost: such a run posts nothing. */
		return exec->sampled ? coll_exec_send_now_sampled(exec, index) : order_send(exec, index);
	case COLL_OP_RECV:
		return order_receive(exec, index, patience);
	default:
		coll_exec_compute(exec, index);
		return true;
	}
}

static bool order_ops(struct coll_exec *exec, struct coll_straight_wait *patience)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t i;

	for (i = 0; i < planned->schedule->ops; i++) {
		const uint32_t op = planned->order[i];

		if (coll_exec_is_ahead(exec, op))	/* posted with another, or reduced as it came */
			continue;
		if (!order_op(exec, op, patience))
			return false;
		exec->ahead |= 1ull << op;
	}
	return true;
}

bool coll_in_order_execute(struct coll_exec *exec)
{
	struct coll_context *context = exec->group->context;
	struct coll_engine *engine = &context->engine;
	struct coll_straight_wait patience = { 0 };

	if (exec->timed)
		coll_times_posted_first(exec);
	if (!order_ops(exec, &patience))
		return false;
	coll_survey_count_short(exec->group);
	coll_memory_wake_readers(engine);
	if (patience.now)
		coll_neighbour_waits(&engine->neighbour);
	if (exec->group->board)
		coll_board_end(exec);
	coll_exec_end(exec);
	if (engine->touched)		/* what it has granted goes out */
		coll_engine_advance(engine, 0);
	if (coll_straight_is_due(context))
		coll_context_poll(context, 0);
	return true;
}
