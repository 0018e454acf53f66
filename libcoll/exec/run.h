/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The user's handle on an execution. */
#ifndef COLL_EXEC_RUN_H
#define COLL_EXEC_RUN_H

#include <stdatomic.h>

#include "exec.h"

struct coll_auto_call;

/* With a progress thread the owner uses it while it is posted, the application before and after. */
struct coll_run {
	struct coll_run *next;		/* in the list of runs that the owner has started */
	struct coll_run *next_handle, **slot;	/* in the context's, unless it is local */
	struct coll_group *group;
	struct coll_call call;		/* until it is planned */
	u64 *counts;			/* copies of the call's, or NULL */
	uint32_t user_op;
	int tag;			/* of a message, point to point */
	struct coll_received *received;	/* where its end is told, or NULL */
	struct coll_planned *planned;
	struct coll_exec *exec;		/* while it runs, unless the kernel has it: */
	uint32_t word;			/* one more than its completion word, or 0 */
	uint32_t number;
	uint64_t until, allowed;	/* its deadline, and the time from start to deadline */
	bool waiting;			/* for its start */
	uint32_t survey;		/* the group's survey that ends before it does, or 0 */
	uint8_t flight;			/* in the kernel: its entry of the flight page ... */
	uint16_t timed;			/* ... and that of timed runs, and one more; or 0 */
	struct coll_run *next_offloaded;
	atomic_bool posted;		/* handed to a progress thread and not ended */
	void *in, *out;
	uint64_t deadline_ns;		/* 0: the group's */
	bool persistent;
	bool active;			/* started; the application does not know its end yet */
	struct coll_auto_call *evidence; /* of the autopilot, or NULL */
	uint64_t began;			/* with evidence: when */
	enum coll_auto_choice chosen;
	char choice[96];		/* why */
	bool local;			/* on the stack of a blocking call */
	int status;
	char *explanation;
};

/* Several runs of one context. NULL entries are skipped. */
struct coll_runs {
	struct coll_run *const *runs;
	size_t count;
};

/* The index of the first active run that is not in flight; else `count`. */
size_t coll_runs_find_ended(const struct coll_runs *runs, bool (*in_flight)(struct coll_run *));


/* Copies the call's arrays, for planning later. */
int coll_run_keep_counts(struct coll_run *run);
/* Plans it unless it is planned. */
int coll_run_plan(struct coll_run *run);
int coll_run_begin(struct coll_run *run);
/* Whether it executes, here or in the kernel. For its owner. */
bool coll_run_executing(struct coll_run *run);
/* Waits until it has completed; returns its status. All work is submitted on return. */
int coll_run_await(struct coll_run *run);
/* Submits queued work to the kernel: the application may stay away for long. */
void coll_run_flush(struct coll_run *run);
/* Waits until one of them has ended. */
void coll_run_await_any(struct coll_context *context, const struct coll_runs *runs);
/* The engine has failed: ends the run, if needed in several calls. */
void coll_run_engine_failed(struct coll_run *run, int error);
/* It has ended or failed to start: releases its plan, unless it is persistent. */
void coll_run_ended(struct coll_run *run);

#endif
