// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The application's calls on a run: start, wait, test, cancel, free. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "algo/circuits/circuits.h"
#include "algo/tuning.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/health.h"
#include "libcoll/exec/offload.h"
#include "libcoll/exec/survey.h"
#include "libcoll/progress/progress.h"
#include "run.h"

bool coll_run_in_flight(struct coll_run *run)
{
	return coll_progress_of(run->group->context)->in_flight(run);
}

/* Whether this thread may call for the run: else its group says why. */
static int run_check(struct coll_run *run)
{
	struct coll_group *group = run->group;
	const char *why;
	int error = coll_progress_check(group->context, &why);

	if (error)
		coll_group_explain(group, "run: %s", why);
	return error;
}

/* Of all that are not NULL. */
static int runs_check(struct coll_run *const *runs, size_t count)
{
	int error = 0;

	for (; count && !error; runs++, count--)
		if (*runs)
			error = run_check(*runs);
	return error;
}

int coll_run_start(struct coll_run *run)
{
	int error = run_check(run);

	if (error)
		return error;
	if (!run->persistent)
		return coll_call_refuse(run->group, "run_start", -EINVAL, "the run is not "
					"persistent; valid: one of a coll_..._init()");
	if (coll_run_in_flight(run))
		return coll_call_refuse(run->group, "run_start", -EBUSY, "the run is in flight; "
					"valid: after its end was returned");
	run->active = true;
	error = coll_progress_of(run->group->context)->start(run);
	if (error)
		run->active = false;
	return coll_run_answer(run->group, run->call.collective, error);
}

/* Returns how it ended. A nonblocking run is freed; a persistent one may start again. */
static int run_finish(struct coll_run **run)
{
	const enum coll_collective collective = (*run)->call.collective;
	struct coll_run *ended = *run;
	struct coll_group *group = ended->group;
	const uint64_t since = coll_context_enter(group->context, coll_run_in_flight(ended));
	int status;

	coll_progress_of(group->context)->wait(ended);
	coll_context_leave(group->context, since);
	status = ended->status;
	ended->active = false;
	if (!ended->persistent) {
		coll_run_unregister(ended);
		*run = NULL;
	}
	return coll_run_answer(group, collective, status);
}

int coll_run_wait(struct coll_run **run)
{
	int error = runs_check(run, 1);

	if (error)
		return error;
	return *run ? run_finish(run) : 0;
}

int coll_run_test(struct coll_run **run, int *done)
{
	return coll_run_testall(run, 1, done);
}

/* ---- several runs --------------------------------------------------------- */

static bool runs_in_flight(struct coll_run *const *runs, size_t count)
{
	while (count--)
		if (runs[count] && coll_run_in_flight(runs[count]))
			return true;
	return false;
}

/*
 * Polls the engine of each context with a run in flight: once for neighbouring runs of the
 * same context, since a poll advances all runs of a context. If an engine fails, so do the
 * runs: they tell it at their ends.
 */
static void runs_poll(struct coll_run *const *runs, size_t count)
{
	struct coll_context *polled = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!runs[i] || !coll_run_in_flight(runs[i]) ||
		    runs[i]->group->context == polled)
			continue;
		polled = runs[i]->group->context;
		coll_progress(polled);
	}
}

/* It was started, and its end has not been returned. */
static bool run_active(const struct coll_run *run)
{
	return run && run->active;
}

/*
 * The context of all active runs; NULL: there are none. -EINVAL: they have several; or the
 * error of runs_check().
 */
static int runs_context(struct coll_run *const *runs, size_t count, struct coll_context **context)
{
	size_t i;

	*context = NULL;
	for (i = 0; i < count; i++) {
		if (!run_active(runs[i]))
			continue;
		if (*context && *context != runs[i]->group->context)
			return -EINVAL;
		*context = runs[i]->group->context;
	}
	return runs_check(runs, count);
}

/*
 * To wait for a run of one context moves nothing of the others, for which a peer may wait. So each is
 * polled as long as any run is in flight.
 */
static void runs_await(struct coll_run *const *runs, size_t count)
{
	while (runs_in_flight(runs, count)) {
		runs_poll(runs, count);
		sched_yield();
	}
}

int coll_run_waitall(struct coll_run **runs, size_t count)
{
	struct coll_context *context;
	int first = 0;
	size_t i;

	if (runs_context(runs, count, &context) == -EINVAL && !runs_check(runs, count))
		runs_await(runs, count);
	for (i = 0; i < count; i++) {
		int error = coll_run_wait(&runs[i]);

		if (error && !first)
			first = error;
	}
	return first;
}

int coll_run_testall(struct coll_run **runs, size_t count, int *done)
{
	int error = runs_check(runs, count);

	*done = 0;
	if (error)
		return error;
	runs_poll(runs, count);
	*done = !runs_in_flight(runs, count);
	return *done ? coll_run_waitall(runs, count) : 0;
}

static size_t find_ended(struct coll_run *const *runs, size_t count)
{
	return coll_runs_find_ended(&(struct coll_runs){ runs, count }, coll_run_in_flight);
}

int coll_run_waitany(struct coll_run **runs, size_t count, size_t *index)
{
	struct coll_context *context;
	int error = runs_context(runs, count, &context);

	*index = count;
	if (error || !context)
		return error;
	*index = find_ended(runs, count);
	if (*index == count) {
		const uint64_t since = coll_context_enter(context, true);

		coll_progress_of(context)->wait_any(context, &(struct coll_runs){ runs, count });
		coll_context_leave(context, since);
		*index = find_ended(runs, count);
	}
	coll_assert(*index < count);
	return run_finish(&runs[*index]);
}

int coll_run_testany(struct coll_run **runs, size_t count, size_t *index, int *done)
{
	struct coll_context *context;
	int error = runs_context(runs, count, &context);

	*index = count;
	*done = !error && !context;
	if (error || !context)
		return error;
	coll_progress(context);
	*index = find_ended(runs, count);
	*done = *index < count;
	return *done ? run_finish(&runs[*index]) : 0;
}

/* ---- cancelling, freeing, changing ---------------------------------------- */

int coll_run_cancel(struct coll_run *run)
{
	int error = run_check(run);

	if (error)
		return error;
	if (!coll_run_in_flight(run))
		return 0;
	return coll_revoke(run->group);
}

static void run_unplan(void *argument)
{
	struct coll_run *run = argument;

	run->persistent = false;
	run->group->context->job->circuits_forget(run);
	coll_run_ended(run);
}

int coll_run_free(struct coll_run **run)
{
	int error = runs_check(run, 1);

	if (error || !*run)
		return error;
	if (coll_run_in_flight(*run))
		return coll_call_refuse((*run)->group, "run_free", -EBUSY, "the run is in "
					"flight; valid: after its end was returned");
	coll_progress_do((*run)->group->context, run_unplan, *run);
	coll_run_unregister(*run);
	*run = NULL;
	return 0;
}

struct deadline_change {
	struct coll_run *run;
	uint64_t ns;
};

static void run_set_deadline(struct coll_run *run, uint64_t ns)
{
	if (run->word || run->waiting) {
		run->until += ns - run->allowed;
		run->allowed = ns;
		coll_offload_deadline(run, run->until);
	}
	if (!run->exec)
		return;
	run->exec->deadline = run->exec->started + ns;
	coll_engine_check_at(&run->group->context->engine, 0);
}

/* Its survey has as long, or would fail the group before. */
static void change_deadline(void *argument)
{
	const struct deadline_change *change = argument;
	struct coll_run *run = change->run;
	struct coll_run *survey = run->survey ? coll_survey_run(run->group, run->survey) : NULL;
	const uint64_t ns = change->ns ? change->ns : run->group->options.deadline_ns;

	run->deadline_ns = change->ns;
	run_set_deadline(run, ns);
	if (survey)
		run_set_deadline(survey, ns);
}

int coll_run_deadline(struct coll_run *run, uint64_t ns)
{
	int error = run_check(run);

	if (error)
		return error;
	if (ns > COLL_DEADLINE_MAX)	/* so that no sum of times wraps */
		ns = COLL_DEADLINE_MAX;
	coll_progress_do_now(run->group->context, change_deadline,
			     &(struct deadline_change){ run, ns });
	return 0;
}
