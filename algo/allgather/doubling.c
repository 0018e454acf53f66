// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Recursive doubling (Thakur, Rabenseifner, Gropp 2005): in exchange i two virtual ranks that
 * differ in bit i exchange all blocks that they have, so that the number doubles. An excess
 * rank of the fold gives its block to its proxy before, and receives all others after.
 *
 *	K alpha + (p-1)/p n beta	for 2^K ranks and n bytes in all;
 *	two messages and n beta more for other numbers
 *
 * The blocks of a virtual rank are always a run of ranks: one message, no rotation.
 */
#include "algo/common/area.h"
#include "algo/common/ranks.h"

static void coll_emit_excess_rank(struct coll_build *b, const struct coll_call *call,
				  const struct coll_area *area)
{
	const u32 proxy = call->rank + 1;

	coll_emit_own_block(b, call, area);
	if (block_bytes(call, call->rank))
		coll_emit_send(b, proxy, call_block(call), block_bytes(call, call->rank));
	coll_emit_recv_blocks(b, call, area, proxy, 0, call->rank);
	coll_emit_recv_blocks(b, call, area, proxy, proxy, call->ranks - proxy);
}

static void allgather_doubling_emit(struct coll_build *b, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const struct coll_area area = coll_emit_area(b, call, COLL_OUT, 0);
	const u32 vrank = fold_virtual_rank(&fold, call->rank),
		  excess_rank = fold_excess_rank(vrank);
	u32 have, i;

	(void)tuning;
	if (fold_is_excess(&fold, call->rank)) {
		coll_emit_excess_rank(b, call, &area);
		return;
	}
	have = coll_emit_own_block(b, call, &area);
	if (fold_is_proxy(&fold, vrank))
		have = emit_both(
			b, have,
			coll_emit_recv_blocks(b, call, &area, excess_rank, excess_rank, 1));
	for (i = 0; i < fold.exchanges; i++) {
		u32 mine = vrank >> i << i, theirs = mine ^ 1u << i;
		u32 partner = fold_rank(&fold, vrank ^ 1u << i), received;
		u32 first = fold_first(&fold, theirs);

		received = coll_emit_recv_blocks(b, call, &area, partner, first,
						 fold_first(&fold, theirs + (1u << i)) - first);
		first = fold_first(&fold, mine);
		coll_emit_send_blocks(b, call, &area, partner, first,
				      fold_first(&fold, mine + (1u << i)) - first, have);
		have = emit_both(b, have, received);
	}
	if (fold_is_proxy(&fold, vrank)) {
		coll_emit_send_blocks(b, call, &area, excess_rank, 0, excess_rank, have);
		coll_emit_send_blocks(b, call, &area, excess_rank, excess_rank + 1,
				      call->ranks - excess_rank - 1, have);
	}
}

static double allgather_doubling_cost(const struct coll_call *call,
				      const struct coll_tuning *tuning,
				      const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const double p = call->ranks, n = blocks_bytes(call, 0, call->ranks);

	(void)tuning;
	return symmetric_cost(call, m,
			      (fold.exchanges + (fold.excess ? 2 : 0)) * m->alpha +
				      ((p - 1) / p + (fold.excess ? 1 : 0)) * n * m->beta);
}

const struct coll_algo coll_allgather_doubling = {
	.collective = COLL_ALLGATHER,
	.name = "doubling",
	.about = "recursive doubling: log2 p exchanges, two messages more if p is no power of two",
	.ordered = true,
	.cost = allgather_doubling_cost,
	.emit = allgather_doubling_emit,
};

const struct coll_algo coll_allgatherv_doubling = {
	.collective = COLL_ALLGATHERV,
	.name = "doubling",
	.about = "recursive doubling: log2 p exchanges, two messages more if p is no power of two",
	.ordered = true,
	.cost = allgather_doubling_cost,
	.emit = allgather_doubling_emit,
};
