// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Pairwise exchange (Thakur, Rabenseifner, Gropp 2005): in round d each rank sends one block to
 * the rank d above and receives one from the rank d below, straight into place. No rank receives
 * from two ranks at once.
 *
 *	(p-1) (alpha + n beta)	for blocks of n bytes
 *
 * In place, a block's place is free only when the block in it has been sent. There the partners
 * of a round are ranks whose sum is the round: p rounds, each block is exchanged with the one
 * that replaces it, and two blocks of scratch.
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static u64 largest_block(const struct coll_call *call)
{
	u64 bytes = 0;
	u32 rank;

	for (rank = 0; rank < call->ranks; rank++)
		if (rank != call->rank && block_from(call, rank).bytes > bytes)
			bytes = block_from(call, rank).bytes;
	return bytes;
}

static void emit_in_place(struct coll_build *b, const struct coll_call *call)
{
	const u64 bytes = largest_block(call);
	const u64 landing[2] = { coll_emit_scratch(b, bytes), coll_emit_scratch(b, bytes) };
	u32 copied[2] = { COLL_NONE, COLL_NONE }, exchanges = 0, round;

	for (round = 0; round < call->ranks; round++) {
		u32 partner = rank_minus(round, call->rank, call->ranks);
		u32 mine = exchanges % 2, sent, received;
		struct coll_block block = block_from(call, partner);

		if (partner == call->rank || !block.bytes)
			continue;
		coll_emit_after(b, copied[mine]);
		received = coll_emit_recv(b, partner, landing[mine], block.bytes);
		coll_emit_after(b, copied[!mine]);
		sent = coll_emit_send(b, partner, block.place, block.bytes);
		coll_emit_after(b, received);
		coll_emit_after(b, sent);
		copied[mine] = coll_emit_copy(b, block.place, landing[mine], block.bytes);
		exchanges++;
	}
}

static void alltoall_pairwise_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	u32 sent = COLL_NONE, received = COLL_NONE, distance;

	(void)tuning;
	if (call->in_place) {
		emit_in_place(b, call);
		return;
	}
	for (distance = 1; distance < call->ranks; distance++) {
		u32 above = rank_plus(call->rank, distance, call->ranks);
		u32 below = rank_minus(call->rank, distance, call->ranks);
		struct coll_block to = block_to(call, above), from = block_from(call, below);

		if (to.bytes) {
			coll_emit_after(b, received);
			coll_emit_after(b, sent);
			sent = coll_emit_send(b, above, to.place, to.bytes);
		}
		if (from.bytes)
			received = coll_emit_recv(b, below, from.place, from.bytes);
	}
	emit_copy_own(b, call);		/* after the first message is on its way */
}

static double alltoall_pairwise_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	(void)tuning;
	return symmetric_cost(call, m,
			      (call->ranks - 1) *
				      (m->alpha + block_usual_bytes(call, tuning) * m->beta));
}

const struct coll_algo coll_alltoall_pairwise = {
	.collective = COLL_ALLTOALL,
	.name = "pairwise",
	.about = "p-1 rounds, one partner at a time: long blocks",
	.ordered = true,
	.cost = alltoall_pairwise_cost,
	.emit = alltoall_pairwise_emit,
};

const struct coll_algo coll_alltoall_world = {
	.collective = COLL_ALLTOALL,
	.name = "world",
	.about = "over all ranks as if they were near each other: pairwise",
	.ordered = true,
	.cost = alltoall_pairwise_cost,
	.emit = alltoall_pairwise_emit,
	.baseline = true,
};

const struct coll_algo coll_alltoallv_pairwise = {
	.collective = COLL_ALLTOALLV,
	.name = "pairwise",
	.about = "p-1 rounds, one partner at a time: long blocks",
	.ordered = true,
	.cost = alltoall_pairwise_cost,
	.emit = alltoall_pairwise_emit,
};

const struct coll_algo coll_alltoallv_world = {
	.collective = COLL_ALLTOALLV,
	.name = "world",
	.about = "over all ranks as if they were near each other: pairwise",
	.ordered = true,
	.cost = alltoall_pairwise_cost,
	.emit = alltoall_pairwise_emit,
	.baseline = true,
};
