// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Binomial tree with the root at its top. If the operation does not commute, rank 0 is at the top,
 * so that each subtree is a run of ranks, and sends the result to the root: alpha + n beta more.
 *
 *	ceil(log2 p) (alpha + n beta + n gamma), less where p is no power of two
 */
#include "algo/common/partial.h"

static u32 top_of(const struct coll_call *call)
{
	return call->commutative ? call->root : 0;
}

static void reduce_binomial_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	const u32 top = top_of(call), root = call->root;
	struct coll_partial sum;
	u32 sent;

	(void)tuning;
	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, n);
		return;
	}
	if (call->rank == top) {
		sum = coll_emit_subtree(b, call, top, top == root ? out : COLL_ANYWHERE);
		if (top != root) {
			coll_emit_after(b, sum.ready);
			coll_emit_send(b, root, sum.place, n);
		}
		return;
	}
	sum = coll_emit_subtree(b, call, top, COLL_ANYWHERE);
	coll_emit_after(b, sum.ready);
	sent = coll_emit_send(b, subtree_parent(call, top), sum.place, n);
	if (call->rank == root) {
		if (call->in_place)	/* my part is read by the send or before it */
			coll_emit_after(b, sent);
		coll_emit_recv(b, top, out, n);
	}
}

static double reduce_binomial_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	const double n = call_bytes(call);

	(void)tuning;
	return crowded_cost(call, m,
			    binomial_cost(m, call->ranks, n, m->gamma) +
				    (top_of(call) == call->root ? 0 : m->alpha + n * m->beta),
			    tree_share(call, m->alpha + n * (m->beta + m->gamma)));
}

const struct coll_algo coll_reduce_binomial = {
	.collective = COLL_REDUCE,
	.name = "binomial",
	.about = "binomial tree: log2 p messages of the whole vector",
	.ordered = true,
	.cost = reduce_binomial_cost,
	.emit = reduce_binomial_emit,
};
