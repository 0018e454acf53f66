// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Progress by call: the application's thread is the owner. */
#include <errno.h>
#include <string.h>

#include "libcoll/exec/poll.h"
#include "libcoll/engine/engine.h"
#include "progress.h"
#include "thread.h"
#include "libcoll/exec/run.h"

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
	(void)context;
	(void)urgent;
	function(argument);
}

static int call_start(struct coll_run *run)
{
	int error = coll_run_plan(run);

	if (!error)
		error = coll_run_begin(run);
	if (!error && run->exec && !run->local)	/* a blocking call polls the engine at once */
		coll_run_flush(run);
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
	return status;
}

static int call_poll(struct coll_context *context)
{
	int error = coll_context_poll(context, 0);

	/* Nothing would wake the caller at that time, which is near. */
	while (!error && context->losing)
		error = coll_context_poll(context, context->engine.next_check);
	/* Work from health checks: the caller may sleep elsewhere now. */
	if (!error && context->engine.touched)
		error = coll_engine_advance(&context->engine, 0);
	return error;
}

static int call_fd(struct coll_context *context)
{
	return coll_engine_fd(&context->engine);
}

/* What both modes do: the application's thread is the owner. */
#define CALL_OPS                                                                           \
	.open = call_open, .close = call_close, .call = call_call, .start = call_start,    \
	.in_flight = call_in_flight, .wait = call_wait, .wait_any = coll_run_await_any,    \
	.poll = call_poll, .fd = call_fd

const struct coll_progress_ops coll_progress_call = { .name = "call", CALL_OPS };

/*
 * The kernel progresses runs. What it does not take, and the making of connections, is
 * progressed as with `call`. context->job->begin() opens the device.
 */
const struct coll_progress_ops coll_progress_kernel = { .name = "kernel", CALL_OPS };

/* ---- which ---------------------------------------------------------------- */

static const struct coll_progress_ops *const modes[] = {
	&coll_progress_call,
	&coll_progress_thread,
	&coll_progress_helper,
	&coll_progress_kernel,
	&coll_progress_auto,
	NULL,
};

const struct coll_progress_ops *coll_progress_find(const char *name)
{
	const struct coll_progress_ops *const *mode = modes;

	while (*mode && strcmp((*mode)->name, name))
		mode++;
	return *mode;
}

const struct coll_progress_ops *coll_progress_of(const struct coll_context *context)
{
	const bool owner = context->progress == &coll_progress_auto ?
				   coll_thread_is_this(context) :
				   pthread_equal(context->owner, pthread_self());

	return owner ? &coll_progress_call : context->progress;
}

int coll_progress_check(const struct coll_context *context, const char **why)
{
	const struct coll_progress_ops *progress;
	const struct coll_engine *engine = &context->engine;

	if (!*context->here) {
		*why = "this process is a fork of the one that called coll_open(); valid: "
		       "coll_close() alone";
		return -EPERM;
	}
	progress = coll_progress_of(context);
	if ((progress == &coll_progress_call || progress == &coll_progress_kernel) &&
	    engine->ops->usable && !engine->ops->usable(engine)) {
		*why = "another thread called coll_open(), and the engine is uring; valid: that "
		       "thread, or engine=epoll, or progress=thread";
		return -EPERM;
	}
	return 0;
}

/* A forked child has no other thread; what is called there only reads and writes its copy. */
static void progress_call(struct coll_context *context, void (*function)(void *), void *argument,
			  bool urgent)
{
	if (*context->here)
		coll_progress_of(context)->call(context, function, argument, urgent);
	else
		function(argument);
}

void coll_progress_do(struct coll_context *context, void (*function)(void *), void *argument)
{
	progress_call(context, function, argument, false);
}

void coll_progress_do_now(struct coll_context *context, void (*function)(void *), void *argument)
{
	progress_call(context, function, argument, true);
}
