// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circulant graph (Träff 2024): in round k each rank receives, from the rank
 * skip(k) above, the skip(k+1) - skip(k) blocks that it lacks. Any p, the fewest rounds and
 * bytes, each block straight into its place. A run of blocks that wraps around after the last
 * rank is sent as two messages at once.
 *
 *	ceil(log2 p) alpha + o + (p-1)/p n beta	for n bytes in all
 */
#include "algo/common/area.h"
#include "algo/common/ranks.h"

static void allgather_circulant_emit(struct coll_build *b, const struct coll_call *call,
				     const struct coll_tuning *tuning)
{
	const u32 p = call->ranks, rounds = log2_ceil(p);
	const struct coll_area area = coll_emit_area(b, call, COLL_OUT, 0);
	u32 have = coll_emit_own_block(b, call, &area), k;

	(void)tuning;
	for (k = 0; k < rounds; k++) {
		u32 skip = circulant_skip(p, rounds, k);
		u32 above = rank_plus(call->rank, skip, p);
		u32 below = rank_minus(call->rank, skip, p), received;
		u32 count = circulant_skip(p, rounds, k + 1) - skip;

		received = coll_emit_recv_blocks(b, call, &area, above, above, count);
		coll_emit_send_blocks(b, call, &area, below, call->rank, count, have);
		have = emit_both(b, have, received);
	}
}

static double allgather_circulant_cost(const struct coll_call *call,
				       const struct coll_tuning *tuning,
				       const struct coll_machine *m)
{
	const double p = call->ranks, n = blocks_bytes(call, 0, call->ranks);
	const double around = call->ranks > 2 ? m->overhead : 0;	/* the second message */

	(void)tuning;
	return symmetric_cost(call, m,
			      log2_ceil(call->ranks) * m->alpha + around +
				      (p - 1) / p * n * m->beta);
}

const struct coll_algo coll_allgather_circulant = {
	.collective = COLL_ALLGATHER,
	.name = "circulant",
	.about = "log2 p rounds for any p, the fewest bytes, straight into place",
	.ordered = true,
	.cost = allgather_circulant_cost,
	.emit = allgather_circulant_emit,
};

const struct coll_algo coll_allgatherv_circulant = {
	.collective = COLL_ALLGATHERV,
	.name = "circulant",
	.about = "log2 p rounds for any p, the fewest bytes, straight into place",
	.ordered = true,
	.cost = allgather_circulant_cost,
	.emit = allgather_circulant_emit,
};
