// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A run: planned, begun, awaited, ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/port.h"
#include "failure.h"
#include "health.h"
#include "libcoll/engine/memory.h"
#include "offload.h"
#include "group.h"
#include "point_to_point.h"
#include "run.h"
#include "poll.h"
#include "straight.h"
#include "survey.h"

int coll_run_plan(struct coll_run *run)
{
	struct coll_group *group = run->group;
	int error = 0;

	if (run->group->freed)
		return -EINVAL;
	if (run->planned)
		return 0;
	if (coll_call_is_message(&run->call))
		error = coll_point_group(run->group, &group);
	if (!error)
		error = coll_planned_get(group, &run->call, run->user_op, &run->planned);
	return error;
}

enum { DRAINING_MAX = 128 };

static struct coll_exec *oldest_draining(const struct coll_group *group)
{
	struct coll_exec *exec = group->active;

	while (exec && exec->state != EXEC_COMPLETED)
		exec = exec->next;
	return exec;
}

/*
 * A rank that only sends may run far ahead of the ranks that receive. Waiting here for
 * the oldest of its outgoing data bounds how far.
 */
static int run_throttle(struct coll_group *group, uint64_t ns)
{
	while (group->draining >= DRAINING_MAX && group->state == GROUP_OK) {
		int error;

		coll_health_hold(oldest_draining(group), ns);
		error = coll_context_poll(group->context, COLL_FOREVER);
		if (error)
			return error;
	}
	return 0;
}

/* Whether it executes by itself. */
static bool run_executes(struct coll_run *run)
{
	return run->exec || ((run->word || run->waiting) && coll_offload_in_flight(run));
}

/*
 * What the group's latest survey found counts from this run on, or a survey begins with it. The
 * loop is for threads that call at once: else the survey ended with the run before.
 */
static int run_survey(struct coll_run *run, uint64_t ns)
{
	struct coll_group *group = run->group;
	struct coll_run *decides = coll_survey_decides(group);
	int error;

	while (decides && run_executes(decides)) {
		error = coll_context_poll(group->context, COLL_FOREVER);
		if (error)
			return error;
	}
	return coll_survey_begin(run, ns);
}

/* Without its survey. */
static int run_start(struct coll_run *run, uint64_t ns)
{
	int error;

	if (!run->group->context->offload) {
		run->group->context->job->run_begins(run);
		return coll_exec_start(run, coll_now() + ns);
	}
	run->allowed = ns;
	error = coll_offload_start(run, coll_now() + ns);
	if (!run->waiting)
		run->group->context->job->run_begins(run);
	return error;
}

int coll_run_begin(struct coll_run *run)
{
	const uint64_t ns = run->deadline_ns ? run->deadline_ns : run->group->options.deadline_ns;
	int error;

	coll_assert(!run->exec && !run->word && !run->waiting);
	run->status = 0;
	run->survey = 0;
	if (coll_call_is_message(&run->planned->call))
		return coll_point_start(run, coll_now() + ns);
	error = run_throttle(run->group, ns);
	if (!error && run->group->surveyed)
		error = run_survey(run, ns);
	if (!error)
		error = coll_planned_renew(run);
	if (error)
		goto err_no_survey;
	if (run->chosen != run->planned->chosen)
		run->planned->explained = false;
	run->planned->chosen = run->chosen;
	error = run_start(run, ns);
	if (error)
		goto err_no_survey;
	if (run->group->surveyed)
		coll_survey_count(run->group);
	return 0;

err_no_survey:
	run->survey = 0;		/* it goes on, and this run does not wait for it */
	return error;
}

bool coll_run_executing(struct coll_run *run)
{
	struct coll_run *survey;

	if (run_executes(run))
		return true;
	if (!run->survey)
		return false;
	survey = coll_survey_run(run->group, run->survey);
	if (survey && run_executes(survey))
		return true;
	coll_survey_ended(run->group, run->survey, coll_now());
	run->survey = 0;
	return false;
}

/* Polls the completion word before sleeping. Yields, since the kernel may need this core. */
static void look_at_word(struct coll_run *run)
{
	struct coll_engine *engine = &run->group->context->engine;
	uint64_t now, until;

	if (!run->word)
		return;
	now = coll_now();
	until = now + (coll_neighbour_is_near(&engine->neighbour) ?
		       0 : run->group->context->options.spin_ns);
	while (run->word && coll_offload_in_flight(run) && now < until)
		now = coll_engine_yield(engine, now);
	/* Else the engine counts the wait; beside a neighbour nothing was tried. */
	if (!run->word && !coll_neighbour_is_near(&engine->neighbour))
		coll_neighbour_waits(&engine->neighbour);
}

void coll_run_flush(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	coll_memory_wake_readers(&context->engine);
	if (context->engine.touched)
		coll_engine_advance(&context->engine, 0);
}

static void run_abandon(struct coll_run *run)
{
	if (!run->exec)
		return;
	run->status = run->group->error;
	run->exec->run = NULL;
	run->exec = NULL;
}

static const char *engine_reason(const struct coll_engine *engine)
{
	return engine->ops->usable && !engine->ops->usable(engine) ?
		       "engine uring works in the thread that called coll_open() only" :
		       "its engine failed";
}

/*
 * The engine has failed, so ops in its hands never complete. Fails the group. When the news
 * has had time to leave, the run ends.
 */
void coll_run_engine_failed(struct coll_run *run, int error)
{
	struct coll_group *group = run->group;
	struct coll_run *survey;

	coll_group_fail(group, error, group->rank, COLL_NONE, engine_reason(&group->context->engine));
	if (group->state != GROUP_FAILED)
		return;
	run_abandon(run);
	if (run->survey && (survey = coll_survey_run(group, run->survey)))
		run_abandon(survey);
}

int coll_run_await(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	bool polled = false;

	look_at_word(run);
	while (coll_run_executing(run)) {
		int error;

		if (run->exec && coll_straight_await(run->exec))
			continue;
		error = coll_context_poll(context, COLL_FOREVER);
		if (error)
			coll_run_engine_failed(run, error);
		polled = true;
	}
	coll_run_flush(run);
	/* Runs in the background move on in blocking calls. */
	if (coll_straight_is_due(context) || (run->local && context->active && !polled))
		coll_context_poll(context, 0);
	return run->status;
}

size_t coll_runs_find_ended(const struct coll_runs *runs, bool (*in_flight)(struct coll_run *))
{
	size_t i;

	for (i = 0; i < runs->count; i++)
		if (runs->runs[i] && runs->runs[i]->active && !in_flight(runs->runs[i]))
			break;
	return i;
}

/* The first run in flight: there is one as long as none has ended. */
static struct coll_run *first_in_flight(const struct coll_runs *runs)
{
	size_t i = 0;

	while (!runs->runs[i] || !coll_run_executing(runs->runs[i]))
		i++;
	return runs->runs[i];
}

void coll_run_await_any(struct coll_context *context, const struct coll_runs *runs)
{
	while (coll_runs_find_ended(runs, coll_run_executing) == runs->count) {
		int error = coll_context_poll(context, COLL_FOREVER);

		if (error && coll_runs_find_ended(runs, coll_run_executing) == runs->count)
			coll_run_engine_failed(first_in_flight(runs), error);
	}
	coll_memory_wake_readers(&context->engine);
	if (context->engine.touched)
		coll_engine_advance(&context->engine, 0);
}

void coll_run_ended(struct coll_run *run)
{
	if (run->persistent)
		return;
	if (run->planned)
		coll_planned_put(run->planned);
	run->planned = NULL;
	free(run->counts);
	run->counts = NULL;
}
