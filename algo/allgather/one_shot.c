// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One-shot: each rank sends its block to all others at once, straight into place. The least
 * latency that there can be, for p (p-1) messages.
 *
 *	alpha + n beta + (p-2) max(o, n G), or max(alpha + n beta - o, (p-1) o) + (p-1) o,
 *	whichever is longer, for blocks of n bytes
 */
#include "algo/common/fan.h"

static void allgather_one_shot_emit(struct coll_build *b, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	const u64 own = block_bytes(call, call->rank);
	u32 distance;

	(void)tuning;
	for (distance = 1; distance < call->ranks; distance++) {
		const u32 below = rank_minus(call->rank, distance, call->ranks);

		if (block_bytes(call, below))
			coll_emit_recv(b, below, COLL_ADDRESS(COLL_OUT, block_offset(call, below)),
				       block_bytes(call, below));
	}
	for (distance = 1; own && distance < call->ranks; distance++)
		coll_emit_send(b, rank_plus(call->rank, distance, call->ranks), call_block(call), own);
	emit_copy_block(b, call);
}

/* The rank with the largest block sends it to each other one. */
static double allgather_one_shot_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				      const struct coll_machine *m)
{
	u64 largest = 0;
	u32 rank;

	(void)tuning;
	for (rank = 0; rank < (call->counts ? call->ranks : 1); rank++)
		largest = block_bytes(call, rank) > largest ? block_bytes(call, rank) : largest;
	return all_at_once_cost(call, m, largest, 0, FAN_SAME);
}

const struct coll_algo coll_allgather_one_shot = {
	.collective = COLL_ALLGATHER,
	.name = "one-shot",
	.about = "each sends its block to all others at once, straight into place: one latency",
	.ordered = true,
	.regular = COLL_REGULAR,
	.cost = allgather_one_shot_cost,
	.emit = allgather_one_shot_emit,
};

const struct coll_algo coll_allgatherv_one_shot = {
	.collective = COLL_ALLGATHERV,
	.name = "one-shot",
	.about = "each sends its block to all others at once, straight into place: one latency",
	.ordered = true,
	.cost = allgather_one_shot_cost,
	.emit = allgather_one_shot_emit,
};
