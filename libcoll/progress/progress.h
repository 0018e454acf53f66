/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which thread polls the engine. What hangs on a context is touched by one thread, its
 * owner: the application's (call), or one of the library's own, to which the
 * application hands its runs (thread, helper). So nothing else needs a lock, and
 * the ring, which belongs to one thread, is opened by that one.
 *
 *	call	the application polls the engine when it calls in
 *	thread	a thread drives all runs in flight
 *	helper	a thread executes run after run, in the order of the calls
 *	kernel	the kernel carries runs on; the application's thread owns the rest
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
	 * Has the owner call function(argument), and returns when it has: after all
	 * runs handed over before have started (helper: have ended), or, urgent,
	 * before them.
	 */
	void (*call)(struct coll_context *context, void (*function)(void *), void *argument,
		     bool urgent);
	/* Plans the run if it is not planned, and starts it. Errors come here or at its end. */
	int (*start)(struct coll_run *run);
	bool (*in_flight)(struct coll_run *run);
	/* Until the run has ended; how it did. */
	int (*wait)(struct coll_run *run);
	/* Until one of the context's runs here has ended; wait() then tells how. */
	void (*wait_any)(struct coll_context *context, const struct coll_runs *runs);
	/* Moves what moves; for coll_progress() and coll_run_test(). */
	int (*poll)(struct coll_context *context);
	/* Polls readable when a run may have ended, or poll() has something to do. */
	int (*fd)(struct coll_context *context);
};

extern const struct coll_progress_ops coll_progress_call;
extern const struct coll_progress_ops coll_progress_thread;
extern const struct coll_progress_ops coll_progress_helper;
extern const struct coll_progress_ops coll_progress_kernel;
extern const struct coll_progress_ops coll_progress_auto;

/* The mode of this name, or NULL. */
const struct coll_progress_ops *coll_progress_find(const char *name);

/* The context's mode, as this thread sees it: its owner simply calls. */
const struct coll_progress_ops *coll_progress_of(const struct coll_context *context);

/* In turn with the runs, or at once. */
void coll_progress_do(struct coll_context *context, void (*function)(void *), void *argument);
void coll_progress_do_now(struct coll_context *context, void (*function)(void *), void *argument);

#endif
