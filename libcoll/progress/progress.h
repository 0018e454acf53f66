/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which thread polls the engine. All that belongs to a context is used by one thread, its
 * owner: the application's (call), or one of the library's, which gets the application's
 * runs (thread, helper). So no lock is needed, and the owner opens the ring, which belongs
 * to one thread.
 *
 *	call	the application polls the engine when it calls
 *	thread	a thread progresses all runs in flight
 *	helper	a thread executes one run after another, in the order of the calls
 *	kernel	the kernel progresses runs; the application's thread owns the rest
 *	auto	one of call, thread and kernel, chosen for each run
 */
#ifndef COLL_PROGRESS_H
#define COLL_PROGRESS_H

#include "libcoll/exec/run.h"

struct coll_runs;

struct coll_progress_ops {
	const char *name;
	/* Opens the context on its owner; close() frees what open() made, not the context. */
	int (*open)(struct coll_context *context);
	void (*close)(struct coll_context *context);
	/*
	 * Has the owner call function(argument), and returns when it has: after all runs
	 * that were posted before have started (helper: ended), or, if urgent, before them.
	 */
	void (*call)(struct coll_context *context, void (*function)(void *), void *argument,
		     bool urgent);
	/*
	 * Plans the run unless it is planned, and starts it. Errors are returned here or by
	 * wait().
	 */
	int (*start)(struct coll_run *run);
	bool (*in_flight)(struct coll_run *run);
	/* Waits until the run has ended; returns its status. */
	int (*wait)(struct coll_run *run);
	/* Waits until one of these runs has ended; wait() then returns its status. */
	void (*wait_any)(struct coll_context *context, const struct coll_runs *runs);
	/* Progresses without waiting; for coll_progress() and coll_run_test(). */
	int (*poll)(struct coll_context *context);
	/* A descriptor that polls readable when a run may have ended or poll() has work. */
	int (*fd)(struct coll_context *context);
};

extern const struct coll_progress_ops coll_progress_call;
extern const struct coll_progress_ops coll_progress_thread;
extern const struct coll_progress_ops coll_progress_helper;
extern const struct coll_progress_ops coll_progress_kernel;
extern const struct coll_progress_ops coll_progress_auto;

/* The mode of this name, or NULL. */
const struct coll_progress_ops *coll_progress_find(const char *name);

/*
 * Whether a call may come from this thread of this process: asked before anything is done for
 * the call, so that one that may not come fails alone. -EPERM: *why in words.
 */
int coll_progress_check(const struct coll_context *context, const char **why);

/* The context's mode for the calling thread: the owner uses `call`. */
const struct coll_progress_ops *coll_progress_of(const struct coll_context *context);

/* Calls a function on the owner, after the posted runs or at once. */
void coll_progress_do(struct coll_context *context, void (*function)(void *), void *argument);
void coll_progress_do_now(struct coll_context *context, void (*function)(void *), void *argument);

#endif
