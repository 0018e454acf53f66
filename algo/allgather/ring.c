// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ring (Thakur, Rabenseifner, Gropp 2005): in each of p-1 rounds a rank sends the block that it
 * received last to the next rank, straight into its place.
 *
 *	(p-1) alpha + (p-1)/p n beta	for n bytes in all
 *
 * With k ports for circuits, k rings without a common link each carry a k-th of every block:
 * a k-th of the time for bytes, and one reconfiguration delay.
 */
#include "algo/common/blocks.h"
#include "algo/circuits/rings.h"

/* Part `ring` of `rings` of a rank's block: its offset in OUT, or in the block. */
struct ring_piece {
	u64 offset, bytes;
};

static struct ring_piece piece_of(const struct coll_call *call, u32 rank, u32 rings, u32 ring)
{
	struct coll_call block = *call;

	block.count = block_bytes(call, rank) / call->element;
	return (struct ring_piece){ part_offset(&block, rings, ring), part_bytes(&block, rings, ring) };
}

static void emit_ring(struct coll_build *b, const struct coll_call *call,
		      const struct coll_rings *rings, u32 ring)
{
	const u32 p = call->ranks, stride = rings->stride[ring];
	const u32 above = ring_up(call->rank, stride, 1, p);
	const u32 below = ring_down(call->rank, stride, 1, p);
	struct ring_piece piece = piece_of(call, call->rank, rings->count, ring);
	u64 place = call_block(call) + piece.offset;
	u32 received = COLL_NONE, step;

	for (step = 1; step < p; step++) {
		u32 coming = ring_down(call->rank, stride, step, p);

		if (piece.bytes) {
			coll_emit_after(b, received);
			coll_emit_send(b, above, place, piece.bytes);
		}
		piece = piece_of(call, coming, rings->count, ring);
		place = COLL_ADDRESS(COLL_OUT, block_offset(call, coming) + piece.offset);
		if (piece.bytes)
			received = coll_emit_recv(b, below, place, piece.bytes);
	}
}

static void emit_rings(struct coll_build *b, const struct coll_call *call, struct coll_rings rings)
{
	u32 i;

	emit_copy_block(b, call);
	for (i = 0; i < rings.count; i++)
		emit_ring(b, call, &rings, i);
}

static void allgather_ring_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	(void)tuning;
	emit_rings(b, call, rings_of(call->ranks, 1));
}

static void emit_many(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning)
{
	emit_rings(b, call, rings_of(call->ranks, tuning->ports));
}

static double allgather_ring_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const double p = call->ranks;

	(void)tuning;
	return symmetric_cost(call, m,
			      (p - 1) * m->alpha +
				      (p - 1) / p * blocks_bytes(call, 0, call->ranks) * m->beta);
}

const struct coll_algo coll_allgather_ring = {
	.collective = COLL_ALLGATHER,
	.name = "ring",
	.about = "p-1 rounds around the ring, one block in each: long vectors",
	.neighbours = true,
	.ordered = true,
	.regular = COLL_REGULAR,
	.cost = allgather_ring_cost,
	.emit = allgather_ring_emit,
};

const struct coll_algo coll_allgather_world = {
	.collective = COLL_ALLGATHER,
	.name = "world",
	.about = "over all ranks as if they were near each other: ring",
	.ordered = true,
	.cost = allgather_ring_cost,
	.emit = allgather_ring_emit,
	.baseline = true,
};

const struct coll_algo coll_allgatherv_ring = {
	.collective = COLL_ALLGATHERV,
	.name = "ring",
	.about = "p-1 rounds around the ring, one block in each: long vectors",
	.neighbours = true,
	.ordered = true,
	.cost = allgather_ring_cost,
	.emit = allgather_ring_emit,
};

const struct coll_algo coll_allgatherv_world = {
	.collective = COLL_ALLGATHERV,
	.name = "world",
	.about = "over all ranks as if they were near each other: ring",
	.ordered = true,
	.cost = allgather_ring_cost,
	.emit = allgather_ring_emit,
	.baseline = true,
};

static double cost_many(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m)
{
	const double p = call->ranks, k = rings_of(call->ranks, tuning->ports).count;

	return symmetric_cost(call, m,
			      k * (p - 1) * m->alpha +
				      (p - 1) / p * blocks_bytes(call, 0, call->ranks) * m->beta);
}

const struct coll_algo coll_allgather_rings = {
	.collective = COLL_ALLGATHER,
	.name = "rings",
	.about = "as many rings as there are ports, a part on each: circuits, long vectors",
	.ordered = true,
	.cost = cost_many,
	.emit = emit_many,
};
