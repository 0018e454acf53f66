/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A run as its owner sees it. */
#ifndef COLL_RUN_H
#define COLL_RUN_H

#include "libcoll/exec/run.h"

enum { COLL_EXPLANATION_BYTES = 800 };

/* Algorithm, engine and why, as one line of a planned run; returns `text`. */
const char *coll_run_describe(struct coll_run *run, char *text, size_t bytes);
/* Several, of one context. NULL entries are skipped. */
struct coll_runs {
	struct coll_run *const *runs;
	size_t count;
};

/* Whether one of those that the application has started has ended. */
bool coll_runs_any_ended(const struct coll_runs *runs);

/* Whether it was started and has not ended, as the application sees it. */
bool coll_run_in_flight(struct coll_run *run);

/* Copies the call's arrays, for planning later. */
int coll_run_keep_counts(struct coll_run *run);
/* Plans it if that is not done yet. */
int coll_run_plan(struct coll_run *run);
int coll_run_begin(struct coll_run *run);
/* Whether it has started and not ended, here or in the kernel. */
bool coll_run_moving(struct coll_run *run);
/* Until it is over; its work is with the kernel when this returns. */
int coll_run_await(struct coll_run *run);
/* What was queued last goes to the kernel: nobody may come back here for long. */
void coll_run_flush(struct coll_run *run);
/* Until one of them has ended. */
void coll_run_await_any(struct coll_context *context, const struct coll_runs *runs);
/* The engine works no more: ends the run, if need be in several turns. */
void coll_run_engine_failed(struct coll_run *run, int error);
/* It has ended, or failed to start; lets go of its plan unless it may start again. */
void coll_run_ended(struct coll_run *run);

#endif
