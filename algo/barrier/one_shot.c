// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One-shot: each rank tells all others at once, and is through when all others have told it. The
 * least latency that there can be, for p (p-1) messages.
 *
 *	alpha + (p-2) o, or (2p-2) o, whichever is longer
 */
#include "algo/common/fan.h"

static void barrier_one_shot_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const u64 nothing = COLL_ADDRESS(COLL_SCRATCH, 0);
	u32 distance;

	(void)tuning;
	for (distance = 1; distance < call->ranks; distance++) {
		coll_emit_recv(b, rank_minus(call->rank, distance, call->ranks), nothing, 0);
		coll_emit_send(b, rank_plus(call->rank, distance, call->ranks), nothing, 0);
	}
}

static double barrier_one_shot_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	(void)tuning;
	return all_at_once_cost(call, m, 0, 0, FAN_SAME);
}

const struct coll_algo coll_barrier_one_shot = {
	.collective = COLL_BARRIER,
	.name = "one-shot",
	.about = "each tells all others: one latency",
	.ordered = true,
	.regular = COLL_REGULAR,
	.cost = barrier_one_shot_cost,
	.emit = barrier_one_shot_emit,
};
