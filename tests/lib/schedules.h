/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Schedules for tests: those of the table of algorithms, and ways to try them.
 */
#ifndef TESTS_SCHEDULES_H
#define TESTS_SCHEDULES_H

#include "algo/common/algo.h"
#include "core/check.h"
#include "core/step.h"

/* One collective: s[i] is rank i's schedule. The caller of this frees them. */
typedef void visit_collective(const char *name, struct coll_schedule *const *s, u32 ranks,
			      void *argument);

/*
 * Every algorithm that takes a usual call (5 floats, summed; root: the last
 * rank), with 1 to `most` ranks. Returns how many collectives were visited.
 */
u32 each_collective(u32 most, visit_collective *visit, void *argument);

/* A usual call, and the counts that it points to. */
enum { USUAL_RANKS_MAX = 64 };
struct usual_call {
	struct coll_call call;
	struct coll_tuning tuning;
	u64 counts[USUAL_RANKS_MAX], displs[USUAL_RANKS_MAX];
};

/*
 * This many elements of this type, summed; root: the last rank; rank 0's. False:
 * the algorithm does not take such a call.
 */
bool usual_call(struct usual_call *usual, const struct coll_algo *algo, u32 ranks, u64 elements,
		u32 type);

/* One rank's schedule, checked; free() it. */
struct coll_schedule *emit_schedule(const struct coll_algo *algo, const struct coll_call *call,
				    const struct coll_tuning *tuning);

/* coll_check() with work space of its own. */
int check_schedule(const void *schedule, u64 bytes, struct coll_refusal *refusal);

/*
 * Steps a run in which every op is done as soon as it starts; returns the
 * number of ops that started, *finished whether the run was then over.
 */
u32 step_through(const struct coll_schedule *s, bool *finished);

/* A small generator with a state of its own: the same numbers everywhere. */
u64 random_next(u64 *state);

#endif
