// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "step.h"

u64 coll_plan_bytes(const struct coll_schedule *s)
{
	u64 words = 2 * (u64)s->ops + 1;	/* pending, first_dependent */

	words += s->waits;			/* dependent */
	words += (u64)s->peers + 1;		/* first_recv */
	words += s->ops;			/* recv: at most */
	return words * sizeof(u32);
}

/* Turns counts in first[1..n] into starts: first[i] = sum of counts before i. */
static void counts_to_starts(u32 *first, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		first[i + 1] += first[i];
}

/* Inverts the waits: for each op, the ops that wait for it, ascending. */
static void plan_dependents(const struct coll_schedule *s, u32 *first, u32 *dependent)
{
	const struct coll_op *ops = coll_ops(s);
	const u32 *wait = coll_waits(s);
	u32 i, k;

	memset(first, 0, (s->ops + 1) * sizeof(u32));
	for (i = 0; i < s->waits; i++)
		first[wait[i] + 1]++;
	counts_to_starts(first, s->ops);
	for (i = 0; i < s->ops; i++)
		for (k = 0; k < ops[i].waits; k++)
			dependent[first[wait[ops[i].wait + k]]++] = i;
	/* Filling moved each start to the next op's; move them back. */
	for (i = s->ops; i > 0; i--)
		first[i] = first[i - 1];
	first[0] = 0;
}

void coll_plan_init(struct coll_plan *plan, const struct coll_schedule *s, void *memory)
{
	const struct coll_op *ops = coll_ops(s);
	const struct coll_peer *peers = coll_peers(s);
	u32 *pending = memory;
	u32 *first_dependent = pending + s->ops;
	u32 *dependent = first_dependent + s->ops + 1;
	u32 *first_recv = dependent + s->waits;
	u32 *recv = first_recv + s->peers + 1;
	u32 i;

	*plan = (struct coll_plan){
		.schedule = s,
		.pending = pending,
		.first_dependent = first_dependent,
		.dependent = dependent,
		.first_recv = first_recv,
		.recv = recv,
	};
	for (i = 0; i < s->ops; i++) {
		bool any = ops[i].flags & COLL_WAIT_ANY;

		pending[i] = any && ops[i].waits ? 1 : ops[i].waits;
		plan->mandatory += !(ops[i].flags & COLL_OPTIONAL);
	}
	plan_dependents(s, first_dependent, dependent);
	coll_assert(!first_dependent[0] && first_dependent[s->ops] == s->waits);

	first_recv[0] = 0;
	for (i = 0; i < s->peers; i++)
		first_recv[i + 1] = first_recv[i] + peers[i].recvs;
	plan->recvs = first_recv[s->peers];
	coll_assert(plan->recvs <= s->ops);
	for (i = 0; i < s->ops; i++)
		if (ops[i].kind == COLL_OP_RECV)
			recv[first_recv[ops[i].peer] + ops[i].slot] = i;
}

u64 coll_step_bytes(const struct coll_plan *plan)
{
	return (u64)plan->schedule->ops * (sizeof(u32) + sizeof(u8));
}

void coll_step_init(struct coll_step *step, const struct coll_plan *plan, void *memory)
{
	u32 ops = plan->schedule->ops;

	step->plan = plan;
	step->pending = memory;
	step->state = (u8 *)(step->pending + ops);
	coll_step_reset(step);
}

/* The state that an op in `state` comes from; a reset and coll_step_again() go back. */
static enum coll_op_state step_state_before(enum coll_op_state state)
{
	switch (state) {
	case COLL_OP_STARTED:
	case COLL_OP_SKIPPED:
		return COLL_OP_READY;
	case COLL_OP_DONE:
		return COLL_OP_STARTED;
	default:
		return COLL_OP_WAITING;
	}
}

/* The one place where an op's state changes during a run. */
static void step_set_state(struct coll_step *step, u32 op, enum coll_op_state state)
{
	coll_debug_assert(step->state[op] == step_state_before(state));
	step->state[op] = state;
}

static void step_ready(struct coll_step *step, u32 op)
{
	step_set_state(step, op, COLL_OP_READY);
	step->pending[op] = COLL_NONE;
	if (step->head == COLL_NONE)
		step->head = op;
	else
		step->pending[step->tail] = op;
	step->tail = op;
}

void coll_step_reset(struct coll_step *step)
{
	const struct coll_plan *plan = step->plan;
	u32 ops = plan->schedule->ops, i;

	memcpy(step->pending, plan->pending, ops * sizeof(u32));
	memset(step->state, COLL_OP_WAITING, ops);
	step->head = COLL_NONE;
	step->tail = COLL_NONE;
	step->left = plan->mandatory;
	step->skipped = 0;
	step->error = 0;
	for (i = 0; i < ops; i++)
		if (!plan->pending[i])
			step_ready(step, i);
}

u32 coll_step_next(struct coll_step *step)
{
	const struct coll_op *ops = coll_ops(step->plan->schedule);

	while (!coll_step_idle(step) && !coll_step_finished(step)) {
		u32 op = step->head;
		u32 unless = ops[op].unless;

		step->head = step->pending[op];
		if (unless != COLL_NONE && step->state[unless] == COLL_OP_DONE) {
			step_set_state(step, op, COLL_OP_SKIPPED);
			step->skipped++;
			continue;
		}
		step_set_state(step, op, COLL_OP_STARTED);
		return op;
	}
	return COLL_NONE;
}

void coll_step_again(struct coll_step *step, u32 op)
{
	coll_assert(op < step->plan->schedule->ops);
	coll_debug_assert(step->state[op] == COLL_OP_STARTED);
	step->state[op] = COLL_OP_READY;
	step->pending[op] = step->head;
	if (step->head == COLL_NONE)
		step->tail = op;
	step->head = op;
}

void coll_step_done(struct coll_step *step, u32 op)
{
	const struct coll_plan *plan = step->plan;
	u32 i;

	coll_assert(op < plan->schedule->ops);
	step_set_state(step, op, COLL_OP_DONE);
	if (coll_step_finished(step))
		return;
	if (!(coll_ops(plan->schedule)[op].flags & COLL_OPTIONAL))
		step->left--;
	for (i = plan->first_dependent[op]; i < plan->first_dependent[op + 1]; i++) {
		u32 dependent = plan->dependent[i];

		/* An op with an *any* wait may have left WAITING at an earlier event. */
		if (step->state[dependent] == COLL_OP_WAITING && !--step->pending[dependent])
			step_ready(step, dependent);
	}
}

void coll_step_fail(struct coll_step *step, int error)
{
	if (!step->error)
		step->error = error;
}
