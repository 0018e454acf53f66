// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: all blocks are sent at once, straight from and to their places. Each rank begins with
 * its neighbour, so that not all ranks send to the same one.
 *
 *	alpha + n beta + (p-2) max(o, n G), or max(alpha + n beta - o, (p-1) o) + (p-1) o,
 *	whichever is longer, for blocks of n bytes
 */
#include "algo/common/fan.h"

/* In place what comes lands in scratch until the block in its place is sent. */
static void emit_in_place(struct coll_build *b, const struct coll_call *call)
{
	u32 distance;

	for (distance = 1; distance < call->ranks; distance++) {
		u32 rank = rank_plus(call->rank, distance, call->ranks), sent, received;
		struct coll_block block = block_from(call, rank);
		u64 landing;

		if (!block.bytes)
			continue;
		landing = coll_emit_scratch(b, block.bytes);
		received = coll_emit_recv(b, rank, landing, block.bytes);
		sent = coll_emit_send(b, rank, block.place, block.bytes);
		coll_emit_after(b, received);
		coll_emit_after(b, sent);
		coll_emit_copy(b, block.place, landing, block.bytes);
	}
}

static void alltoall_linear_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	u32 distance;

	(void)tuning;
	if (call->in_place) {
		emit_in_place(b, call);
		return;
	}
	for (distance = 1; distance < call->ranks; distance++) {
		u32 below = rank_minus(call->rank, distance, call->ranks);
		struct coll_block block = block_from(call, below);

		if (block.bytes)
			coll_emit_recv(b, below, block.place, block.bytes);
	}
	for (distance = 1; distance < call->ranks; distance++) {
		u32 above = rank_plus(call->rank, distance, call->ranks);
		struct coll_block block = block_to(call, above);

		if (block.bytes)
			coll_emit_send(b, above, block.place, block.bytes);
	}
	emit_copy_own(b, call);
}

static double alltoall_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	return all_at_once_cost(call, m, block_usual_bytes(call, tuning), 0,
				call->collective == COLL_ALLTOALL ? FAN_ALIKE : FAN_OTHER);
}

const struct coll_algo coll_alltoall_linear = {
	.collective = COLL_ALLTOALL,
	.name = "linear",
	.about = "all blocks at once, straight into place",
	.ordered = true,
	.cost = alltoall_linear_cost,
	.emit = alltoall_linear_emit,
};

const struct coll_algo coll_alltoall_direct = {
	.collective = COLL_ALLTOALL,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = alltoall_linear_cost,
	.emit = alltoall_linear_emit,
	.baseline = true,
};

const struct coll_algo coll_alltoallv_linear = {
	.collective = COLL_ALLTOALLV,
	.name = "linear",
	.about = "all blocks at once, straight into place",
	.ordered = true,
	.cost = alltoall_linear_cost,
	.emit = alltoall_linear_emit,
};

const struct coll_algo coll_alltoallv_direct = {
	.collective = COLL_ALLTOALLV,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = alltoall_linear_cost,
	.emit = alltoall_linear_emit,
	.baseline = true,
};
