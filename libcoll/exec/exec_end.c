// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How an exec completes, and becomes idle. */
#include "core/port.h"
#include "board.h"
#include "exec.h"
#include "live.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/link.h"
#include "run.h"
#include "survey.h"
#include "unexpected.h"

/* Which of its peers were pinged, and whom they suspect. */
static void exec_forget_suspects(const struct coll_exec *exec)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t peer;

	if (!exec->pinged)
		return;
	for (peer = 0; peer < planned->schedule->peers; peer++) {
		planned->links[peer]->pinged = 0;
		planned->links[peer]->suspect = COLL_NONE;
	}
}

/* Gives the result to the run that waits for it. */
static void exec_tell_run(struct coll_exec *exec)
{
	if (!exec->run)
		return;
	exec->run->status = exec->status;
	exec->run->exec = NULL;
	exec->run = NULL;
}

static void exec_spare(struct coll_exec *exec)
{
	struct coll_planned *planned = exec->planned;

	coll_exec_set_state(exec, EXEC_IDLE);
	exec->next = planned->spare;
	planned->spare = exec;
	coll_planned_put(planned);
}

/* Costs the same with any number of active ones: many receives may wait while messages are sent. */
static void exec_deactivate(struct coll_exec *exec)
{
	struct coll_group *group = exec->group;

	coll_debug_assert(*exec->slot == exec);
	*exec->slot = exec->next;
	if (exec->next)
		exec->next->slot = exec->slot;
	else
		group->active_end = exec->slot;
	group->context->active--;
}

void coll_exec_maybe_idle(struct coll_exec *exec)
{
	struct coll_group *group = exec->group;

	if (exec->state != EXEC_COMPLETED || exec->in_flight || exec->stepping)
		return;
	if (exec->held)
		exec_forget_suspects(exec);
	coll_assert(group->draining);
	group->draining--;
	exec_deactivate(exec);
	/* After a failure the buffers are the application's from here on. */
	exec_tell_run(exec);
	exec_spare(exec);
}

/* Nothing of it takes long, but messages. */
static bool exec_is_short(const struct coll_exec *exec)
{
	const struct coll_schedule *s = exec->planned->schedule;
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		if (op->bytes > DELAY_BYTES || op->kind == COLL_OP_CONNECT ||
		    (op->kind == COLL_OP_REDUCE && op->reduction == COLL_USER_REDUCTION))
			return false;
	}
	return true;
}

/* In a run it did not look for long: what it sent then was late. */
static void exec_note_gap(const struct coll_exec *exec)
{
	struct coll_survey *survey = exec->group->survey;

	if (survey)
		coll_delays_gone(&survey->delays, exec->number, exec->group->context->engine.gone);
}

/*
 * Twice what the model says it takes is no delay. COLL_FOREVER: that is not known, or it is a plan's first run, which
 * makes links.
 */
static uint64_t exec_usual(const struct coll_exec *exec)
{
	struct coll_planned *planned = exec->planned;

	coll_planned_predict(planned);
	return planned->ran && planned->predicted_ns ? 2 * planned->predicted_ns : COLL_FOREVER;
}

/*
 * A rank that blocks looks all the time. What held it up came between its last look in vain and now: the middle is taken,
 * at most half of the wait later, since a nap is as long as what was slept before.
 */
static void exec_note_delay(struct coll_exec *exec)
{
	const struct coll_engine *engine = &exec->group->context->engine;
	const uint64_t now = engine->now, began = exec->started;
	uint64_t waited, since, usual;

	if (engine->empty <= began + DELAY_WAITED_NS || !exec->run || !exec->run->local || !exec_is_short(exec))
		return;
	waited = engine->empty - began;
	usual = exec_usual(exec);
	if (waited < usual || waited - usual <= DELAY_WAITED_NS)
		return;
	waited -= usual;
	since = now > engine->empty ? now - engine->empty : 0;
	coll_delays_note(&exec->group->survey->delays, exec->number, waited + (since < waited ? since : waited) / 2, 0);
}

void coll_exec_complete(struct coll_exec *exec, int status)
{
	struct coll_planned *planned = exec->planned;
	uint32_t peer;

	coll_exec_set_state(exec, EXEC_COMPLETED);
	exec->status = status;
	coll_live_end(exec->group, exec->flight, exec->number, status);
	exec_note_gap(exec);
	if (!status && exec->group->survey)
		exec_note_delay(exec);
	planned->ran = true;
	if (!status)
		coll_live_timed_end(exec->group, exec->timed, exec->number);
	for (peer = 0; peer < planned->schedule->peers; peer++) {
		coll_assert(planned->links[peer]->expected >= exec->posted[peer]);
		coll_link_expect(planned->links[peer], -(int)exec->posted[peer]);
		exec->posted[peer] = 0;
		if (planned->links[peer]->kept && !exec->group->peers)
			coll_unexpected_drop_completed(planned->links[peer]);
	}
	exec->group->context->counters.runs++;
	exec->group->context->counters.skipped += exec->step.skipped;
	exec->group->draining++;
	if (exec->group->board)
		coll_board_read_no_more(exec);
	exec_forget_suspects(exec);
	exec->group->context->job->circuits_completed(exec);
	if (!status)
		exec_tell_run(exec);
}

void coll_exec_end(struct coll_exec *exec)
{
	coll_exec_set_state(exec, EXEC_COMPLETED);
	exec->status = 0;
	coll_live_end(exec->group, exec->flight, exec->number, 0);
	exec->group->context->counters.runs++;
	exec_note_gap(exec);
	coll_live_timed_end(exec->group, exec->timed, exec->number);
	exec_spare(exec);
}

void coll_exec_fail_all(struct coll_group *group, int error)
{
	struct coll_exec *exec, *next;

	for (exec = group->active; exec; exec = next) {
		next = exec->next;
		coll_step_fail(&exec->step, error);
		if (exec->state == EXEC_RUNNING)
			coll_exec_complete(exec, error);
		coll_exec_maybe_idle(exec);
	}
}
