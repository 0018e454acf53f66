// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ring: each block travels once around, from the rank above its owner to the owner, and is summed
 * on the way. Only neighbours talk.
 *
 *	(p-1) alpha + (1 - 1/p) n (beta + gamma)	for n bytes in equal blocks
 */
#include "algo/common/partial.h"

static void reduce_scatter_ring_emit(struct coll_build *b, const struct coll_call *call,
				     const struct coll_tuning *tuning)
{
	const u32 ranks = call->ranks;
	const u32 left = rank_minus(call->rank, 1, ranks), right = rank_plus(call->rank, 1, ranks);
	const u64 input = call_input(call);
	u32 first, reduced = COLL_NONE, k;

	(void)tuning;
	if (ranks == 1) {
		coll_emit_single_rank(b, call, block_bytes(call, 0));
		return;
	}
	first = coll_emit_send_nonempty(b, right, input + block_offset(call, left),
					block_bytes(call, left));
	for (k = 2; k <= ranks; k++) {
		const u32 block = rank_minus(call->rank, k, ranks);
		const u64 own = input + block_offset(call, block), n = block_bytes(call, block);
		const u64 sum = coll_emit_scratch(b, n);
		u32 received = coll_emit_recv_nonempty(b, left, sum, n);

		/* In a row, so that no op reads OUT when the last one writes it. */
		coll_emit_after(b, reduced);
		coll_emit_after(b, received);
		if (k == ranks) {
			if (call->in_place)
				coll_emit_after(b, first);
			coll_emit_reduce_out(b, sum, own, sum, n);
			return;
		}
		reduced = coll_emit_reduce(b, sum, sum, own, n);
		coll_emit_after(b, reduced);
		coll_emit_send_nonempty(b, right, sum, n);
	}
}

static double reduce_scatter_ring_cost(const struct coll_call *call,
				       const struct coll_tuning *tuning,
				       const struct coll_machine *m)
{
	const double p = call->ranks, n = block_offset(call, call->ranks);

	(void)tuning;
	return symmetric_cost(call, m, (p - 1) * m->alpha + (1 - 1 / p) * n * (m->beta + m->gamma));
}

const struct coll_algo coll_reduce_scatter_ring = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "ring",
	.about = "blocks go around the ring: p - 1 messages, fewest bytes, neighbours only",
	.neighbours = true,
	.cost = reduce_scatter_ring_cost,
	.emit = reduce_scatter_ring_emit,
};

const struct coll_algo coll_reduce_scatter_block_ring = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "ring",
	.about = "blocks go around the ring: p - 1 messages, fewest bytes, neighbours only",
	.neighbours = true,
	.cost = reduce_scatter_ring_cost,
	.emit = reduce_scatter_ring_emit,
};
