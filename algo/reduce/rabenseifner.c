// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rabenseifner (ICCS 2004; Thakur, Rabenseifner, Gropp 2005): reduce-scatter by recursive
 * halving, then the shares are gathered to the root along the same partners.
 *
 *	2 K alpha + (1 - 1/2^K) n (2 beta + gamma)	for 2^K ranks;
 *	alpha + n beta + n gamma more where there are excess ranks
 *
 * Halving begins with the nearest partner, so the order of operands is kept. The root is never an
 * excess rank: if the fold makes it one, it and its proxy swap, and the proxy sends its vector.
 */
#include "algo/common/partial.h"

static u32 vrank_rank(const struct coll_fold *fold, u32 root, u32 vrank)
{
	u32 rank = fold_rank(fold, vrank);

	return fold_is_proxy(fold, vrank) && root == fold_excess_rank(vrank) ? root : rank;
}

/* From the last partner back to the first, towards the root. */
static void emit_gather(struct coll_build *b, const struct coll_call *call,
			const struct coll_fold *fold, u32 vrank, u32 root_vrank, const u32 *rank,
			struct coll_partial mine, const u32 *reading)
{
	u32 i = fold->exchanges;

	while (i--) {
		const struct coll_halves half = coll_halves_at(call, fold->vranks, vrank, i);
		u32 received;

		if ((vrank ^ root_vrank) >> i & 1) {
			coll_emit_after(b, mine.ready);
			coll_emit_send_nonempty(b, rank[i], mine.place + half.kept,
						half.kept_bytes);
			return;
		}
		coll_emit_after(b, reading[i]);
		received = coll_emit_recv_nonempty(b, rank[i], mine.place + half.sent,
						   half.sent_bytes);
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		mine.ready = coll_emit_join(b);
	}
}

static void reduce_rabenseifner_emit(struct coll_build *b, const struct coll_call *call,
				     const struct coll_tuning *tuning)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const u32 root = call->root, me = call->rank;
	/* A excess rank and its proxy are neighbours, and share a virtual rank. */
	const u32 vrank = me < 2 * fold.excess ? me / 2 : me - fold.excess;
	const u32 root_vrank = root < 2 * fold.excess ? root / 2 : root - fold.excess;
	const u64 out = me == root ? COLL_ADDRESS(COLL_OUT, 0) : COLL_ANYWHERE;
	struct coll_partial mine = partial_input(call);
	u32 rank[STEPS_MAX], reading[STEPS_MAX], i;

	(void)tuning;
	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	if (vrank_rank(&fold, root, vrank) != me) {
		coll_emit_send(b, me ^ 1, mine.place, call_bytes(call));
		return;
	}
	if (fold_is_proxy(&fold, vrank))
		mine = coll_emit_proxy(b, call, me ^ 1, mine.place, out);
	for (i = 0; i < fold.exchanges; i++)
		rank[i] = vrank_rank(&fold, root, vrank ^ 1u << i);
	mine = coll_emit_halving(b, call, &fold, vrank, rank, mine, out, reading);
	emit_gather(b, call, &fold, vrank, root_vrank, rank, mine, reading);
}

static double reduce_rabenseifner_cost(const struct coll_call *call,
				       const struct coll_tuning *tuning,
				       const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const double n = call_bytes(call);
	const double k = fold.exchanges, part = 1 - 1.0 / fold.vranks;
	const double fold_time = fold.excess ? m->alpha + n * (m->beta + m->gamma) : 0;

	(void)tuning;
	/* Of each exchange of the second half one of two ranks sends, and that half of the vector all together. */
	return crowded_cost(call, m, 2 * k * m->alpha + part * n * (2 * m->beta + m->gamma) + fold_time,
			    (k + part) * m->alpha + part * n * (m->beta + m->gamma) +
				    k * n / 2 / fold.vranks * m->beta + fold_time);
}

const struct coll_algo coll_reduce_rabenseifner = {
	.collective = COLL_REDUCE,
	.name = "rabenseifner",
	.about = "reduce-scatter by halving, then gather: each byte goes twice at most",
	.ordered = true,
	.cost = reduce_rabenseifner_cost,
	.emit = reduce_rabenseifner_emit,
};

const struct coll_algo coll_reduce_world = {
	.collective = COLL_REDUCE,
	.name = "world",
	.about = "over all ranks as if they were near each other: rabenseifner",
	.ordered = true,
	.cost = reduce_rabenseifner_cost,
	.emit = reduce_rabenseifner_emit,
	.baseline = true,
};
