// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Progress by call: the application's thread is the owner. */
#include <pthread.h>

#include "libcoll/engine/engine.h"
#include "libcoll/exec/alarm.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/run.h"
#include "progress.h"

static int call_open(struct coll_context *context)
{
	return context->job->begin(context);
}

static void call_close(struct coll_context *context)
{
	context->job->end(context);
}

static void call_call(struct coll_context *context, void (*function)(void *), void *argument,
		      bool urgent)
{
	(void)urgent;
	function(argument);
	coll_context_rest(context);
}

static int call_start(struct coll_run *run)
{
	int error = coll_run_plan(run);

	if (!error)
		error = coll_run_begin(run);
	/* Also what a run that has completed sent. A blocking call polls the engine at once. */
	if (!error && !run->local)
		coll_run_flush(run);
	coll_context_rest(run->group->context);
	if (error)
		coll_run_ended(run);
	return error;
}

static bool call_in_flight(struct coll_run *run)
{
	return coll_run_executing(run);
}

static int call_wait(struct coll_run *run)
{
	int status = coll_run_await(run);

	coll_run_ended(run);
	coll_context_rest(run->group->context);
	return status;
}

static void call_wait_any(struct coll_context *context, const struct coll_runs *runs)
{
	coll_run_await_any(context, runs);
	coll_context_rest(context);
}

/* No call waits for these runs, so none has failed them. */
static void call_fail_runs(struct coll_context *context, int error)
{
	struct coll_run *run;

	pthread_mutex_lock(&context->handles_lock);
	for (run = context->handles; run; run = run->next_handle)
		if (run->exec || run->survey)
			coll_run_engine_failed(run, error);
	pthread_mutex_unlock(&context->handles_lock);
}

static int call_poll(struct coll_context *context)
{
	int error = coll_context_poll(context, 0);

	/* Work from health checks: the caller may sleep elsewhere now. */
	if (!error && context->engine.touched)
		error = coll_engine_advance(&context->engine, 0);
	if (error)
		call_fail_runs(context, error);
	coll_context_rest(context);
	return error;
}

static int call_fd(struct coll_context *context)
{
	const bool first = !context->engine.slept_elsewhere;
	int fd = coll_alarm_open(context);

	if (!fd)
		fd = coll_engine_fd(&context->engine);
	/* What peers have sent before they knew that this thread may sleep elsewhere. */
	if (fd >= 0 && first)
		coll_engine_advance(&context->engine, 0);
	coll_context_rest(context);
	return fd;
}

/* What both modes do: the application's thread is the owner. */
#define CALL_OPS                                                                           \
	.open = call_open, .close = call_close, .call = call_call, .start = call_start,    \
	.in_flight = call_in_flight, .wait = call_wait, .wait_any = call_wait_any,    \
	.poll = call_poll, .fd = call_fd

const struct coll_progress_ops coll_progress_call = { .name = "call", CALL_OPS };

/*
 * The kernel progresses runs. What it does not take, and the making of connections, is
 * progressed as with `call`. context->job->begin() opens the device.
 */
const struct coll_progress_ops coll_progress_kernel = { .name = "kernel", CALL_OPS };
