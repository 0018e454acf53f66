/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A run as its owner sees it. */
#ifndef COLL_RUN_H
#define COLL_RUN_H

#include "libcoll/internal.h"

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
/* The engine works no more: ends the run, if need be in several turns. */
void coll_run_engine_failed(struct coll_run *run, int error);
/* It has ended, or failed to start; lets go of its plan unless it may start again. */
void coll_run_ended(struct coll_run *run);

#endif
