/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * All ranks of a collective in one process, in memory, with real bytes: the
 * schedules are stepped and matched by core/, and everything that an engine is
 * free to choose is chosen at random: which rank moves, which op finishes, when
 * a message arrives, whether a send is done at once or only when its receive
 * has happened.
 *
 * Races show, whatever the order was: the place of a receive is full of noise
 * from its start until the message comes, and neither that noise nor the bytes
 * that a send reads may have been changed by another op meanwhile. Copies and
 * reductions happen in one go, as in an engine.
 *
 *	struct interpret *world = interpret_new(algo, calls, ranks, &tuning);
 *
 *	fill interpret_buffer(world, rank, COLL_IN) ...
 *	if (interpret_run(world, seed))
 *		fail_msg("%s", world->error);
 *	look at interpret_buffer(world, rank, COLL_OUT) ...
 *	interpret_free(world);
 */
#ifndef COLL_TESTS_INTERPRET_H
#define COLL_TESTS_INTERPRET_H

#include "algo/common/algo.h"

/* Does what the op, a reduce, says; op->type, op->reduction and op->bytes are set. */
typedef void interpret_reduce(const struct coll_op *op, void *result, const void *left,
			      const void *right);

struct interpret_rank;

struct interpret {
	u32 ranks;
	struct interpret_rank *rank;
	interpret_reduce *reduce;	/* set it where there are reductions */
	u64 random;
	char error[240];
};

/*
 * Emits every rank's schedule; calls[r] is rank r's call. Buffers are exactly as
 * large as the schedules ask for, and full of noise. On an error world->error is
 * not empty, and interpret_run() gives -EINVAL. Never NULL.
 */
struct interpret *interpret_new(const struct coll_algo *algo, const struct coll_call *calls,
				u32 ranks, const struct coll_tuning *tuning);
void interpret_free(struct interpret *world);

void *interpret_buffer(struct interpret *world, u32 rank, enum coll_buffer buffer);
const struct coll_schedule *interpret_schedule(const struct interpret *world, u32 rank);

/*
 * One run of all ranks; any number of runs may follow each other. 0, or -EINVAL
 * with world->error: a race, a deadlock, an unmatched message.
 */
int interpret_run(struct interpret *world, u64 seed);

/*
 * A run in which one rank never begins: -EINVAL if another finishes all the same.
 * For barriers: no rank may leave before all have entered.
 */
int interpret_without(struct interpret *world, u32 absent, u64 seed);

/* A number below `limit` (at least 1), from the state *random. */
u32 interpret_random(u64 *random, u32 limit);

#endif
