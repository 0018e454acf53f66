// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Allreduce on a de Bruijn graph of r^D ranks: in each of D steps a rank sends its partial sum
 * to r ranks and adds those of r ranks. Exactly one path of D steps leads from each rank to
 * each other, so each vector is added once. All steps use the same r circuits of a rank.
 *
 *	D (alpha + n beta + (r - 1) n gamma)	and one reconfiguration delay
 *
 * A rank's position in the graph is its number with the digits reversed: then the operands of a
 * step are runs of ranks in order. All ranks compute the same sums, so they have the same bits.
 */
#include "algo/circuits/debruijn.h"
#include "algo/common/partial.h"

/* The digits backwards: between a rank and its place, either way. */
static u32 allreduce_debruijn_reversed(const struct coll_debruijn *g, u32 number)
{
	u32 turned = 0, i;

	for (i = 0; i < g->steps; i++, number /= g->radix)
		turned = turned * g->radix + number % g->radix;
	return turned;
}

/*
 * One step; `mine` is what I have, and after the last step the result is at `out`, if
 * `read` is done: it read what lies there.
 */
static struct coll_partial emit_step(struct coll_build *b, const struct coll_call *call,
				     const struct coll_debruijn *g, struct coll_partial mine,
				     u64 out, u32 read)
{
	const u64 n = call_bytes(call);
	const u32 place = allreduce_debruijn_reversed(g, call->rank), top = g->ranks / g->radix;
	struct coll_partial sum = { 0, COLL_NONE };
	u64 to;
	u32 i;

	for (i = 0; i < g->radix; i++) {
		const u32 next = allreduce_debruijn_reversed(g, debruijn_next(g, place, i));

		if (next == call->rank)
			continue;
		coll_emit_after(b, mine.ready);
		coll_emit_send(b, next, mine.place, n);
	}
	for (i = 0; i < g->radix; i++) {
		const u32 from = allreduce_debruijn_reversed(g, place / g->radix + i * top);
		struct coll_partial part = mine;

		if (from != call->rank) {
			part.place = coll_emit_scratch(b, n);
			part.ready = coll_emit_recv(b, from, part.place, n);
		}
		if (!i) {
			sum = part;
			continue;
		}
		to = i + 1 == g->radix && out != COLL_ANYWHERE ? out : coll_emit_scratch(b, n);
		coll_emit_after(b, sum.ready);
		coll_emit_after(b, part.ready);
		coll_emit_after(b, to == out ? read : COLL_NONE);
		sum.ready = coll_emit_reduce(b, to, sum.place, part.place, n);
		sum.place = to;
	}
	return sum;
}

static void allreduce_debruijn_emit(struct coll_build *b, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	const struct coll_debruijn g = debruijn_of(call->ranks, debruijn_radix(tuning));
	struct coll_partial mine = partial_input(call);
	const u64 n = call_bytes(call);
	u32 read = COLL_NONE, i;
	u64 kept;

	if (!n || call->ranks == 1) {
		coll_emit_single_rank(b, call, n);
		return;
	}
	if (call->in_place) {	/* the result may come while the input is still being sent */
		kept = coll_emit_scratch(b, n);
		read = coll_emit_copy(b, kept, mine.place, n);
		mine = (struct coll_partial){ kept, read };
	}
	for (i = 0; i < g.steps; i++)
		mine = emit_step(b, call, &g, mine,
				 i + 1 < g.steps ? COLL_ANYWHERE : COLL_ADDRESS(COLL_OUT, 0), read);
}

static const char *allreduce_debruijn_refuses(const struct coll_call *call,
					      const struct coll_tuning *tuning)
{
	const struct coll_debruijn g = debruijn_of(call->ranks, debruijn_radix(tuning));

	return debruijn_power(&g, g.steps) == call->ranks ?
		       NULL :
		       "the number of ranks is no power of `radix`";
}

static double allreduce_debruijn_cost(const struct coll_call *call,
				      const struct coll_tuning *tuning,
				      const struct coll_machine *m)
{
	const struct coll_debruijn g = debruijn_of(call->ranks, debruijn_radix(tuning));
	const double n = call_bytes(call);

	return symmetric_cost(call, m,
			      g.steps * (m->alpha + (g.radix - 1) * m->overhead +
					 g.radix * n * m->beta + (g.radix - 1) * n * m->gamma));
}

const struct coll_algo coll_allreduce_debruijn = {
	.collective = COLL_ALLREDUCE,
	.name = "debruijn",
	.about = "log_r p steps, to r ranks in each, always the same: circuits, short vectors",
	.ordered = true,
	.options = "radix",
	.refuses = allreduce_debruijn_refuses,
	.cost = allreduce_debruijn_cost,
	.emit = allreduce_debruijn_emit,
};
