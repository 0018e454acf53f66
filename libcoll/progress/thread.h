/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * For progress that changes its owner: the context goes from the library's thread to the
 * caller's and back, with all runs in flight.
 */
#ifndef COLL_PROGRESS_THREAD_H
#define COLL_PROGRESS_THREAD_H

#include "libcoll/exec/run.h"

/* Whether the application owns the context while the library's thread sleeps. */
bool coll_thread_is_parked(const struct coll_context *context);
/* Whether the calling thread is the library's. */
bool coll_thread_is_this(const struct coll_context *context);
/* CPU time of the library's thread so far. */
uint64_t coll_thread_cpu_ns(const struct coll_context *context);
/* Gives the context to the calling thread, and takes it back for the library's. */
void coll_thread_take(struct coll_context *context);
void coll_thread_give(struct coll_context *context);

#endif
