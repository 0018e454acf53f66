// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The modes by name, and the one that holds for the calling thread. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "libcoll/engine/engine.h"
#include "progress.h"
#include "thread.h"

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
		       "thread, or threads=any, or engine=epoll, or progress=thread";
		return -EPERM;
	}
	return 0;
}

/* A forked child has no other thread; what is called there only reads and writes its copy. */
static void progress_call(struct coll_context *context, void (*function)(void *), void *argument,
			  bool urgent)
{
	uint64_t since;

	if (!*context->here) {
		function(argument);
		return;
	}
	since = coll_context_enter(context, false);
	coll_progress_of(context)->call(context, function, argument, urgent);
	coll_context_leave(context, since);
}

void coll_progress_do(struct coll_context *context, void (*function)(void *), void *argument)
{
	progress_call(context, function, argument, false);
}

void coll_progress_do_now(struct coll_context *context, void (*function)(void *), void *argument)
{
	progress_call(context, function, argument, true);
}
