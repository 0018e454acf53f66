// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ring: in p-1 rounds everybody hands the block it got last to the next rank.
 * (p-1) alpha + (p-1)/p n beta for n bytes in all, every block straight to its
 * place.
 */
#include "blocks.h"
#include "ranks.h"

static void emit(struct coll_build *b, const struct coll_call *call,
		 const struct coll_tuning *tuning)
{
	const u32 p = call->ranks, above = rank_plus(call->rank, 1, p);
	const u32 below = rank_minus(call->rank, 1, p);
	u64 place = call_block(call), bytes = block_bytes(call, call->rank);
	u32 received = COLL_NONE, step;

	(void)tuning;
	if (!call->in_place && bytes)
		emit_copy(b, COLL_PLACE(COLL_OUT, block_offset(call, call->rank)), place, bytes);
	for (step = 1; step < p; step++) {
		u32 coming = rank_minus(call->rank, step, p);

		if (bytes) {
			emit_after(b, received);
			emit_send(b, above, place, bytes);
		}
		place = COLL_PLACE(COLL_OUT, block_offset(call, coming));
		bytes = block_bytes(call, coming);
		if (bytes)
			received = emit_recv(b, below, place, bytes);
	}
}

static double cost(const struct coll_call *call, const struct coll_tuning *tuning,
		   const struct coll_machine *m)
{
	const double p = call->ranks;

	(void)tuning;
	return symmetric_cost(
		m, (p - 1) * m->alpha + (p - 1) / p * blocks_bytes(call, 0, call->ranks) * m->beta);
}

const struct coll_algo coll_allgather_ring = {
	.collective = COLL_ALLGATHER,
	.name = "ring",
	.about = "p-1 rounds around the ring, one block in each: long vectors",
	.ordered = true,
	.cost = cost,
	.emit = emit,
};

const struct coll_algo coll_allgather_world = {
	.collective = COLL_ALLGATHER,
	.name = "world",
	.about = "over all ranks as if they were near each other: ring",
	.ordered = true,
	.cost = cost,
	.emit = emit,
	.baseline = true,
};

const struct coll_algo coll_allgatherv_ring = {
	.collective = COLL_ALLGATHERV,
	.name = "ring",
	.about = "p-1 rounds around the ring, one block in each: long vectors",
	.ordered = true,
	.cost = cost,
	.emit = emit,
};

const struct coll_algo coll_allgatherv_world = {
	.collective = COLL_ALLGATHERV,
	.name = "world",
	.about = "over all ranks as if they were near each other: ring",
	.ordered = true,
	.cost = cost,
	.emit = emit,
	.baseline = true,
};
