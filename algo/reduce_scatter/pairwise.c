// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Pairwise exchange (Thakur, Rabenseifner, Gropp 2005): in step k each rank sends its part of a
 * block straight to the owner, the rank k above.
 *
 *	alpha + n beta + (p-2) max(o, n G) + n gamma, or
 *	max(alpha + n beta - o, (p-1) o) + (p-1) (o + n gamma), whichever is longer
 *
 * for blocks of n bytes: nothing that is sent waits for what comes, and what has come is
 * reduced meanwhile.
 *
 * Parts arrive from the ranks below in descending order, then from the last rank in descending
 * order: two runs of ranks, each summed as it arrives, then joined. So the order of operands is
 * kept.
 */
#include "algo/common/fan.h"
#include "algo/common/partial.h"

/* One send under way at a time: no rank is flooded. Returns the last. */
static u32 emit_sends(struct coll_build *b, const struct coll_call *call)
{
	u32 sent = COLL_NONE, k;

	for (k = 1; k < call->ranks; k++) {
		const u32 to = rank_plus(call->rank, k, call->ranks);

		coll_emit_after(b, sent);
		sent = coll_emit_send_nonempty(b, to, call_input(call) + block_offset(call, to),
					       block_bytes(call, to));
	}
	return sent;
}

/* The result: `spare` is one of the operands and lies in scratch. */
static void emit_last(struct coll_build *b, const struct coll_call *call, u32 sent,
		      const struct coll_partial *left, const struct coll_partial *right, u64 spare,
		      u64 n)
{
	coll_emit_after(b, left->ready);
	coll_emit_after(b, right->ready);
	if (call->in_place)
		coll_emit_after(b, sent);
	coll_emit_reduce_out(b, left->place, right->place, spare, n);
}

static void reduce_scatter_pairwise_emit(struct coll_build *b, const struct coll_call *call,
					 const struct coll_tuning *tuning)
{
	const u32 ranks = call->ranks, last = ranks - 1;
	const u64 n = block_bytes(call, call->rank);
	struct coll_partial low = { call_input(call) + block_offset(call, call->rank), COLL_NONE };
	struct coll_partial high = { 0, COLL_NONE };
	u32 sent, k;

	(void)tuning;
	if (ranks == 1) {
		coll_emit_single_rank(b, call, n);
		return;
	}
	sent = emit_sends(b, call);
	for (k = 1; n && k < ranks; k++) {
		const u32 from = rank_minus(call->rank, k, ranks);
		struct coll_partial *sum = from < call->rank ? &low : &high, theirs;

		theirs.place = coll_emit_scratch(b, n);
		theirs.ready = coll_emit_recv(b, from, theirs.place, n);
		if (from == last) {
			high = theirs;
		} else if (from == 0 && call->rank == last) {
			emit_last(b, call, sent, &theirs, &low, theirs.place, n);
		} else {
			coll_emit_after(b, theirs.ready);
			coll_emit_after(b, sum->ready);
			sum->ready = coll_emit_reduce(b, theirs.place, theirs.place, sum->place, n);
			sum->place = theirs.place;
		}
	}
	if (n && call->rank != last)
		emit_last(b, call, sent, &low, &high, high.place, n);
}

static double reduce_scatter_pairwise_cost(const struct coll_call *call,
					   const struct coll_tuning *tuning,
					   const struct coll_machine *m)
{
	(void)tuning;
	return all_at_once_cost(call, m, block_offset(call, call->ranks) / (double)call->ranks, m->gamma, FAN_OTHER);
}

const struct coll_algo coll_reduce_scatter_pairwise = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "pairwise",
	.about = "each part straight to its owner: p - 1 messages, fewest bytes",
	.ordered = true,
	.cost = reduce_scatter_pairwise_cost,
	.emit = reduce_scatter_pairwise_emit,
};

const struct coll_algo coll_reduce_scatter_block_pairwise = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "pairwise",
	.about = "each part straight to its owner: p - 1 messages, fewest bytes",
	.ordered = true,
	.cost = reduce_scatter_pairwise_cost,
	.emit = reduce_scatter_pairwise_emit,
};
