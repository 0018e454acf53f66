/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One rank of a test that `coll run` starts: what all such programs need. */
#ifndef TESTS_RANK_H
#define TESTS_RANK_H

#include "libcoll/coll.h"

/* Joins the job; a failure ends the process with exit code 2. */
struct coll_context *rank_open(const char *options);

/* Says "rank R: ..." on stdout, in one piece, and ends the process with code 1. */
void rank_fail(const struct coll_group *group, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Fails with the call's text and the group's error unless `error` is 0. */
#define rank_must(group, call) rank_check(group, call, #call)
void rank_check(const struct coll_group *group, int error, const char *call);

/* Fails with the condition's text unless it holds. */
#define rank_assert(group, condition) \
	((condition) ? (void)0 : rank_fail(group, "%s:%d: %s", __FILE__, __LINE__, #condition))

/* Of a clock that only goes forward. */
double rank_seconds(void);

#endif
