// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "exec.h"
#include "libcoll/base/clock.h"
#include "run.h"
#include "straight.h"

enum {
	AWAIT_NS = 50000,		/* then the engine has its turn */
	UNPOLLED_NS = 1000000,
};

/* The next message of each peer from which one is awaited, once. OTHER: also where none is. */
static enum coll_look look_at_peers(struct coll_exec *exec)
{
	const uint32_t peers = exec->planned->schedule->peers;
	const struct coll_run *run = exec->run;
	enum coll_look found = COLL_LOOK_OTHER, one;
	uint32_t peer, op;

	for (peer = 0; peer < peers && run->exec == exec; peer++) {
		if (!exec->posted[peer] || !coll_exec_awaits(exec, peer, &op))
			continue;
		one = coll_exec_look(exec, op);
		if (one == COLL_LOOK_OTHER && found != COLL_LOOK_MESSAGE)
			return one;
		if (one == COLL_LOOK_MESSAGE || found == COLL_LOOK_OTHER)
			found = one;
	}
	return found;
}

/* What it still sends, the engine moves on, as it does other runs and those in the kernel. */
static bool straight_may_await(const struct coll_exec *exec)
{
	const struct coll_context *context = exec->group->context;

	return context->active == 1 && !exec->in_flight && !context->offload &&
	       !context->engine.neighbour.near && !coll_straight_is_due(context);
}

void coll_straight_begin(struct coll_straight_wait *wait, struct coll_engine *engine)
{
	wait->now = coll_engine_look(engine);
	wait->yields_from = coll_engine_yields_from(engine, wait->now);
	wait->until = wait->now + (engine->spin_ns < AWAIT_NS ? engine->spin_ns : AWAIT_NS);
}

void coll_straight_go_on(struct coll_straight_wait *wait, struct coll_engine *engine)
{
	if (wait->now >= wait->yields_from) {
		engine->empty = wait->now;
		wait->now = coll_engine_yield(engine, wait->now);
	} else {
		wait->now = coll_engine_empty(engine);
	}
}

/* Beside a neighbour the engine decides how long a wait looks. */
bool coll_straight_await(struct coll_exec *exec)
{
	struct coll_engine *engine = &exec->group->context->engine;
	enum coll_look found = COLL_LOOK_NOTHING;
	struct coll_straight_wait wait;

	if (!straight_may_await(exec))
		return false;
	coll_straight_begin(&wait, engine);
	while (wait.now < wait.until && wait.now < engine->next_check && !engine->touched) {
		engine->looks++;
		found = look_at_peers(exec);
		if (found != COLL_LOOK_NOTHING)
			break;
		coll_straight_go_on(&wait, engine);
	}
	if (found != COLL_LOOK_MESSAGE)
		return false;
	coll_neighbour_waits(&engine->neighbour);	/* else the poll counts this wait */
	return true;
}

bool coll_straight_is_due(const struct coll_context *context)
{
	return context->engine.now - context->polled_at >= UNPOLLED_NS;
}
