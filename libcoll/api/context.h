/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_CONTEXT_H
#define COLL_CONTEXT_H

#include "libcoll/exec/run.h"

/*
 * As coll_open(), in the job that `boot` has joined; NULL: the one that the
 * environment describes. `boot` is taken over, also on failure; who brings it
 * turns the engine itself.
 */
int coll_context_open(const char *options, struct coll_boot *boot, struct coll_context **context);

/*
 * The part of coll_open() and coll_close() that is the owner's: after the options
 * are read, and before the context is freed.
 */
int coll_context_begin(struct coll_context *context);
void coll_context_end(struct coll_context *context);

/* Keeps why coll_open() fails, for this thread; returns the error. */
int coll_context_open_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * One turn: hands work to the engine, waits for something to happen until
 * `deadline` at most (0: does not wait), looks after health.
 */
int coll_context_turn(struct coll_context *context, uint64_t deadline);

#endif
