// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Pipelined chain: each rank sends the vector to the next in N segments, each as soon as it has
 * arrived.
 *
 *	(p-1) (alpha + n/N beta) + (N-1) (2 o + n/N beta)
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static u32 parts_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	return pipeline_parts(call, tuning, call->ranks > 2 ? call->ranks - 2 : 0);
}

static void bcast_chain_emit(struct coll_build *b, const struct coll_call *call,
			     const struct coll_tuning *tuning)
{
	const u32 relative = rank_minus(call->rank, call->root, call->ranks);
	const u32 above = rank_plus(call->rank, 1, call->ranks);
	const u32 below = rank_minus(call->rank, 1, call->ranks);
	const u32 parts = parts_of(call, tuning);
	u32 i;

	if (!call_bytes(call))
		return;
	for (i = 0; i < parts; i++) {
		u64 place = COLL_ADDRESS(COLL_OUT, part_offset(call, parts, i));
		u64 bytes = part_bytes(call, parts, i);
		u32 received = COLL_NONE;

		if (relative)
			received = coll_emit_recv(b, below, place, bytes);
		if (relative == call->ranks - 1)
			continue;
		coll_emit_after(b, received);
		coll_emit_send(b, above, place, bytes);
	}
}

static double bcast_chain_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			       const struct coll_machine *m)
{
	const double parts = parts_of(call, tuning), p = call->ranks;

	if (call->ranks == 1)
		return 0;
	return pipeline_cost(call, m, p - 1, parts, call_bytes(call), 0);
}

const struct coll_algo coll_bcast_chain = {
	.collective = COLL_BCAST,
	.name = "chain",
	.about = "pipeline of segments from rank to rank: long vectors, few ranks",
	.neighbours = true,
	.ordered = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = bcast_chain_cost,
	.emit = bcast_chain_emit,
};
