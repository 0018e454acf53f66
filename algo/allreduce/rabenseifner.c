// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rabenseifner (ICCS 2004; Thakur, Rabenseifner, Gropp 2005): reduce-scatter by recursive
 * halving, then allgather by recursive doubling with the same partners in reverse.
 *
 *	2 K alpha + (1 - 1/2^K) n (2 beta + gamma)	for 2^K ranks;
 *	2 (alpha + n beta) + n gamma more where there are excess ranks
 *
 * Halving begins with the nearest partner, so the order of operands is kept. Each element is
 * completed by one virtual rank alone, so all ranks have the same bits. Nothing is copied:
 * halves are sent from IN or OUT, received into scratch, reduced into OUT, and finished halves
 * are received in OUT.
 *
 * In S segments that take the same path independently, the latencies and the reductions of one overlap
 * the transport of another: alpha and gamma become a part of S, for 4 K (S - 1) overheads.
 */
#include "algo/common/partial.h"

static struct coll_partial emit_doubling(struct coll_build *b, const struct coll_call *call,
					 const struct coll_fold *fold, u32 vrank, const u32 *rank,
					 struct coll_partial mine, const u32 *reading)
{
	u32 i = fold->exchanges;

	while (i--) {
		const struct coll_halves half = coll_halves_at(call, fold->vranks, vrank, i);
		u32 received;

		coll_emit_after(b, reading[i]);
		received = coll_emit_recv_nonempty(b, rank[i], mine.place + half.sent,
						   half.sent_bytes);
		coll_emit_after(b, mine.ready);
		coll_emit_send_nonempty(b, rank[i], mine.place + half.kept, half.kept_bytes);
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		mine.ready = coll_emit_join(b);
	}
	return mine;
}

/* All of it for a part of the vector that begins at `offset`. */
static void emit_segment(struct coll_build *b, const struct coll_call *part, u64 offset)
{
	const struct coll_fold fold = fold_of(part->ranks);
	const u64 out = COLL_ADDRESS(COLL_OUT, offset);
	struct coll_partial mine = { call_input(part) + offset, COLL_NONE };
	u32 rank[STEPS_MAX], reading[STEPS_MAX], vrank, i;

	if (fold_is_excess(&fold, part->rank)) {
		coll_emit_excess_rank(b, part, part->rank + 1, mine.place, out);
		return;
	}
	vrank = fold_virtual_rank(&fold, part->rank);
	if (fold_is_proxy(&fold, vrank))
		mine = coll_emit_proxy(b, part, fold_excess_rank(vrank), mine.place, out);
	for (i = 0; i < fold.exchanges; i++)
		rank[i] = fold_rank(&fold, vrank ^ 1u << i);
	mine = coll_emit_halving(b, part, &fold, vrank, rank, mine, out, reading);
	mine = emit_doubling(b, part, &fold, vrank, rank, mine, reading);
	if (fold_is_proxy(&fold, vrank)) {
		coll_emit_after(b, mine.ready);
		coll_emit_send(b, fold_excess_rank(vrank), mine.place, call_bytes(part));
	}
}

static void allreduce_rabenseifner_emit(struct coll_build *b, const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const u32 segments = pipeline_parts(call, tuning, 0);
	struct coll_call part = *call;
	u32 i;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	for (i = 0; i < segments; i++) {
		part.count = part_bytes(call, segments, i) / call->element;
		emit_segment(b, &part, part_offset(call, segments, i));
	}
}

static double allreduce_rabenseifner_cost(const struct coll_call *call,
					  const struct coll_tuning *tuning,
					  const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const double n = call_bytes(call), s = pipeline_parts(call, tuning, 0);

	const double part = 1 - 1.0 / fold.vranks, folded = fold.excess ? 1 : 0;

	return symmetric_cost(call, m,
			      segmented_cost(m, s, 2 * (fold.exchanges + folded),
					     (part + folded) * n * 2 * m->beta,
					     (part + folded) * n * m->gamma));
}

const struct coll_algo coll_allreduce_rabenseifner = {
	.collective = COLL_ALLREDUCE,
	.name = "rabenseifner",
	.about = "reduce-scatter by halving, allgather by doubling: 2 log2 p messages, 2 n bytes",
	.ordered = true,
	.regular = COLL_REGULAR | COLL_REGULAR_POWER_OF_TWO | COLL_REGULAR_EVEN_PARTS,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = allreduce_rabenseifner_cost,
	.emit = allreduce_rabenseifner_emit,
};

const struct coll_algo coll_allreduce_world = {
	.collective = COLL_ALLREDUCE,
	.name = "world",
	.about = "over all ranks as if they were near each other: rabenseifner",
	.ordered = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = allreduce_rabenseifner_cost,
	.emit = allreduce_rabenseifner_emit,
	.baseline = true,
};
