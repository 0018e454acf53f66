// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Binomial reduce to rank 0, then binomial broadcast from it, over the same tree. Only rank 0
 * computes the result, so all ranks have the same bits.
 *
 *	2 ceil(log2 p) (alpha + n beta) + ceil(log2 p) n gamma
 */
#include "algo/common/partial.h"

/* The largest subtree first: it has the longest way to go. */
static void emit_bcast(struct coll_build *b, const struct coll_call *call, u32 ready)
{
	u32 distance = call->rank ? call->rank & -call->rank : 1u << log2_ceil(call->ranks);

	while (distance /= 2) {
		if (distance >= call->ranks - call->rank)
			continue;
		coll_emit_after(b, ready);
		coll_emit_send(b, call->rank + distance, COLL_ADDRESS(COLL_OUT, 0),
			       call_bytes(call));
	}
}

static void allreduce_reduce_bcast_emit(struct coll_build *b, const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	const u32 parent = subtree_parent(call, 0);
	struct coll_partial sum;
	u32 sent;

	(void)tuning;
	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, n);
		return;
	}
	sum = coll_emit_subtree(b, call, 0, parent == COLL_NONE ? out : COLL_ANYWHERE);
	if (parent != COLL_NONE) {
		coll_emit_after(b, sum.ready);
		sent = coll_emit_send(b, parent, sum.place, n);
		if (call->in_place)	/* my part is read by the send or before it */
			coll_emit_after(b, sent);
		sum.ready = coll_emit_recv(b, parent, out, n);
	}
	emit_bcast(b, call, sum.ready);
}

static double allreduce_reduce_bcast_cost(const struct coll_call *call,
					  const struct coll_tuning *tuning,
					  const struct coll_machine *m)
{
	const double n = call_bytes(call);

	(void)tuning;
	return crowded_cost(call, m,
			    binomial_cost(m, call->ranks, n, m->gamma) +
				    binomial_cost(m, call->ranks, n, 0),
			    tree_share(call, 2 * (m->alpha + n * m->beta) + n * m->gamma));
}

const struct coll_algo coll_allreduce_reduce_bcast = {
	.collective = COLL_ALLREDUCE,
	.name = "reduce-bcast",
	.about = "binomial reduce to rank 0, binomial bcast from it",
	.ordered = true,
	.cost = allreduce_reduce_bcast_cost,
	.emit = allreduce_reduce_bcast_emit,
};
