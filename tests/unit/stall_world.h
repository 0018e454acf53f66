/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An allreduce of all ranks in which some stop in the middle: whom that holds up. Only the order of
 * ops is looked at, not the data. A failure fails the cmocka test.
 */
#ifndef TESTS_UNIT_STALL_WORLD_H
#define TESTS_UNIT_STALL_WORLD_H

#include "algo/common/algo.h"

struct stall_world;

/* Nobody is to stop. */
struct stall_world *stall_new(const char *algo, u32 ranks, const struct coll_tuning *tuning);
void stall_free(struct stall_world *w);

const struct coll_schedule *stall_schedule(const struct stall_world *w, u32 rank);
/* All ops of one kind. */
u32 stall_ops(const struct stall_world *w, u32 rank, enum coll_op_kind kind);
/* Of these, those that are done, or of receives have begun. */
u32 stall_begun(const struct stall_world *w, u32 rank, enum coll_op_kind kind);

/* The rank stops once it has begun so many ops of this kind; COLL_NONE: it does not stop. */
void stall_after(struct stall_world *w, u32 rank, enum coll_op_kind kind, u32 count);

/* Moves ops and messages until nothing moves any more; returns the ranks that wait for stopped ones. */
u32 stall_settle(struct stall_world *w);
/* All go on, to the end. */
void stall_go_on(struct stall_world *w);

#endif
