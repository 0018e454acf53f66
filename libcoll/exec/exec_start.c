// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How an exec begins: for a run, or by itself. */
#include <errno.h>

#include "core/port.h"
#include "board.h"
#include "exec.h"
#include "health.h"
#include "inject_engine.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/link.h"
#include "live.h"
#include "run.h"
#include "samples.h"
#include "survey.h"

void coll_exec_open_links(const struct coll_planned *planned, const struct coll_exec *exec)
{
	uint32_t peer;

	for (peer = 0; peer < planned->schedule->peers; peer++)
		if (planned->links[peer]->state == LINK_IDLE &&
		    (!exec || exec->group->context->job->circuit_free(exec, peer)))
			coll_link_open(planned->links[peer]);
}

/* The group's next one. */
static struct coll_exec *exec_next(struct coll_group *group, struct coll_planned *planned, void *in,
				   void *out)
{
	struct coll_exec *exec = coll_exec_take(planned, group->context->inject);

	if (!exec)
		return NULL;
	coll_exec_set_state(exec, EXEC_RUNNING);
	coll_assert(!exec->in_flight && !exec->stepping && !exec->run);
	planned->references++;
	exec->next = NULL;
	exec->ahead = 0;
	exec->group = group;
	exec->number = group->next_run++;
	if (!(group->next_run & INT32_MAX))
		coll_board_forget(group);
	exec->age = group->context->arbiter.runs++;
	exec->pinged = 0;
	exec->held = false;
	exec->sampled = group->samples && coll_samples_begin(group->samples, exec->number);
	/* IN is read only: core/check.c refuses a schedule that writes it. */
	exec->buffer[COLL_IN] = in;
	exec->buffer[COLL_OUT] = out;
	group->recent[exec->number % RECENT_RUNS] = planned->hash;
	group->watchful = false;
	return exec;
}

/* Its time begins. `local`: the application waits for it from now on. */
static void exec_clock(struct coll_exec *exec, uint64_t now, uint64_t deadline, bool local)
{
	struct coll_group *group = exec->group;
	struct coll_engine *engine = &group->context->engine;

	coll_engine_back(engine, now);
	if (group->survey)
		coll_delays_begin(&group->survey->delays, exec->number, exec->planned->needs_all,
				  engine->gone, now);
	exec->started = exec->checked = now;
	exec->deadline = deadline;
	exec->flight = coll_live_begin(group, exec->planned, exec->number, now, deadline,
				       COLL_FLIGHT_HERE);
	exec->timed = local ? coll_live_timed(group, exec->planned, exec->number, now) : 0;
}

/* It is for the engine: an active one, whose deadline counts. `sleeps`: its caller has waited already. */
static void exec_activate(struct coll_exec *exec, struct coll_run *run, bool sleeps)
{
	struct coll_group *group = exec->group;
	struct coll_engine *engine = &group->context->engine;

	coll_assert(!run->exec);
	exec->run = run;
	exec->in_order = false;
	run->exec = exec;
	coll_exec_reset(exec);
	group->context->active++;
	exec->slot = group->active_end;
	*exec->slot = exec;
	group->active_end = &exec->next;
	coll_board_begin(exec, sleeps);
	coll_engine_check_at(engine, exec->started + HEALTH_FIRST_NS);
	coll_engine_check_at(engine, exec->started + (exec->deadline - exec->started) / 4);
}

static void exec_go(struct coll_exec *exec)
{
	if (exec->group->context->inject)
		coll_inject_started(exec->group);
	coll_exec_open_links(exec->planned, exec);
	coll_exec_step(exec);
}

int coll_exec_begin(struct coll_run *run, uint64_t deadline, struct coll_exec **begun)
{
	struct coll_group *group = run->planned->group;

	coll_debug_assert(coll_context_is_owned(group->context));
	if (group->state != GROUP_OK)
		return group->error;
	if (run->planned->board_tries && coll_context_is_plain(group->context))
		coll_board_join(run->planned);
	*begun = exec_next(group, run->planned, run->in, run->out);
	if (!*begun)
		return -ENOMEM;
	exec_clock(*begun, coll_now(), deadline, run->local);
	exec_activate(*begun, run, false);
	return 0;
}

int coll_exec_start(struct coll_run *run, uint64_t deadline)
{
	struct coll_exec *exec = NULL;
	const int error = coll_exec_begin(run, deadline, &exec);

	if (error)
		return error;
	exec_go(exec);
	if (run->persistent && run->exec)
		run->group->context->job->circuits_started(run);
	return 0;
}

struct coll_exec *coll_exec_begin_in_order(struct coll_planned *planned, void *in, void *out)
{
	struct coll_group *group = planned->group;
	struct coll_exec *exec = exec_next(group, planned, in, out);
	uint64_t now;

	if (!exec)
		return NULL;
	exec->in_order = true;
	now = coll_now();
	exec_clock(exec, now, now + group->options.deadline_ns, true);
	return exec;
}

void coll_exec_adopt(struct coll_run *run, struct coll_exec *exec)
{
	run->planned = exec->planned;
	run->planned->references++;
	exec_activate(exec, run, true);
	exec_go(exec);
}
