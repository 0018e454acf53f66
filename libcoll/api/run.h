/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A run, for the thread that owns its context. */
#ifndef COLL_RUN_H
#define COLL_RUN_H

#include "libcoll/exec/run.h"

enum { COLL_EXPLANATION_BYTES = 1056 };

/* Algorithm, engine and why, as one line of a planned run; returns `text`. */
const char *coll_run_describe(struct coll_run *run, char *text, size_t bytes);
/* Prints that on rank 0, once for a plan, if the option `explain` is set. */
void coll_run_explain_once(struct coll_run *run);

/* ---- handle.c ------------------------------------------------------------- */

/* The application's handle, from here until it is freed or the context is closed. */
void coll_run_register(struct coll_run *run);
/* Frees the handle. */
void coll_run_unregister(struct coll_run *run);
/*
 * For the handles that are left when the context is closed. Their plans go first, by the owner,
 * when all groups have ended; the handles when no progress thread has them in its list.
 */
void coll_runs_forget_plans(struct coll_context *context);
void coll_runs_free(struct coll_context *context);

/* Says why a call of the group is refused, `why` NULL: for lack of memory. Returns `error`. */
int coll_call_refuse(struct coll_group *group, const char *call, int error, const char *why);
/* How a call ended, for the application: words for a status that has none. */
int coll_run_answer(struct coll_group *group, enum coll_collective collective, int status);

/* ---- run.c ---------------------------------------------------------------- */

/* Whether it was started and has not ended, as the application sees it. */
bool coll_run_in_flight(struct coll_run *run);

#endif
