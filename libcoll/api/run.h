/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A run, for the thread that owns its context. */
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

/* Whether one that the application has started has ended. */
bool coll_runs_any_ended(const struct coll_runs *runs);

/* Whether it was started and has not ended, as the application sees it. */
bool coll_run_in_flight(struct coll_run *run);

/* Copies the call's arrays, for planning later. */
int coll_run_keep_counts(struct coll_run *run);
/* Plans it if that is not done yet. */
int coll_run_plan(struct coll_run *run);
int coll_run_begin(struct coll_run *run);
/* Whether it is in flight, here or in the kernel. For its owner. */
bool coll_run_moving(struct coll_run *run);
/* Waits until it has completed; returns how. All work is submitted when this returns. */
int coll_run_await(struct coll_run *run);
/* Submits queued work to the kernel: the application may stay away for long. */
void coll_run_flush(struct coll_run *run);
/* Waits until one of them has ended. */
void coll_run_await_any(struct coll_context *context, const struct coll_runs *runs);
/* The engine works no more: ends the run, if needed in several calls. */
void coll_run_engine_failed(struct coll_run *run, int error);
/* It has ended or failed to start: releases its plan, unless it is persistent. */
void coll_run_ended(struct coll_run *run);

#endif
