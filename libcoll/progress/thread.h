/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * For progress that changes its owner: what hangs on a context goes from the
 * library's thread to the caller's and back, with all runs in flight.
 */
#ifndef COLL_PROGRESS_THREAD_H
#define COLL_PROGRESS_THREAD_H

#include "libcoll/exec/run.h"

/* The application's thread owns it; the library's sleeps. */
bool coll_thread_is_parked(const struct coll_context *context);
/* The calling thread is the library's. */
bool coll_thread_is_this(const struct coll_context *context);
/* What the library's has computed so far. */
uint64_t coll_thread_cpu_ns(const struct coll_context *context);
/* From the application's thread to the library's, and the other way. */
void coll_thread_take(struct coll_context *context);
void coll_thread_give(struct coll_context *context);

#endif
