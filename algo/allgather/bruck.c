// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Bruck (Bruck, Ho, Kipnis, Upfal, Weathersby 1997): in round k each rank sends all blocks that
 * it has to the rank 2^k below and receives as many from the rank 2^k above. The blocks lie in
 * scratch, the rank's own first, so that each round is one message for any p. At the end they
 * are copied to their places.
 *
 *	ceil(log2 p) alpha + (p-1)/p n beta + o + n gamma	for n bytes in all
 */
#include "algo/common/area.h"
#include "algo/common/ranks.h"

static void allgather_bruck_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const u32 p = call->ranks;
	const struct coll_area area = coll_emit_area(b, call, COLL_OUT, call->rank);
	u32 have = coll_emit_own_block(b, call, &area), distance;

	(void)tuning;
	for (distance = 1; distance < p; distance *= 2) {
		u32 above = rank_plus(call->rank, distance, p);
		u32 below = rank_minus(call->rank, distance, p), received;
		u32 count = distance < p - distance ? distance : p - distance;

		received = coll_emit_recv_blocks(b, call, &area, above, above, count);
		coll_emit_send_blocks(b, call, &area, below, call->rank, count, have);
		have = emit_both(b, have, received);
	}
}

static double allgather_bruck_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	const double p = call->ranks, n = blocks_bytes(call, 0, call->ranks);
	const double turned = call->ranks > 1 ? m->overhead + n * m->gamma : 0;	/* into place */

	(void)tuning;
	return symmetric_cost(call, m,
			      log2_ceil(call->ranks) * m->alpha + (p - 1) / p * n * m->beta +
				      turned);
}

const struct coll_algo coll_allgather_bruck = {
	.collective = COLL_ALLGATHER,
	.name = "bruck",
	.about = "log2 p rounds for any p through scratch: short vectors",
	.ordered = true,
	.cost = allgather_bruck_cost,
	.emit = allgather_bruck_emit,
};

const struct coll_algo coll_allgatherv_bruck = {
	.collective = COLL_ALLGATHERV,
	.name = "bruck",
	.about = "log2 p rounds for any p through scratch: short vectors",
	.ordered = true,
	.cost = allgather_bruck_cost,
	.emit = allgather_bruck_emit,
};
