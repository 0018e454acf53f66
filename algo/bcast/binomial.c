// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Binomial tree: a rank that has the vector sends it on, to the largest subtree first.
 *
 *	ceil(log2 p) (alpha + n beta)
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static void bcast_binomial_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	const u32 relative = rank_minus(call->rank, call->root, call->ranks);
	u32 received = COLL_NONE, m;

	(void)tuning;
	if (!n)
		return;
	if (relative)
		received = coll_emit_recv(
			b, rank_plus(call->root, tree_parent(relative), call->ranks), out, n);
	for (m = tree_reach(relative, call->ranks); m; m /= 2) {
		coll_emit_after(b, received);
		coll_emit_send(b, rank_plus(call->rank, m, call->ranks), out, n);
	}
}

static double bcast_binomial_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	(void)tuning;
	return crowded_cost(call, m,
			    binomial_cost(m, call->ranks, call_bytes(call), 0),
			    tree_share(call, m->alpha + call_bytes(call) * m->beta));
}

const struct coll_algo coll_bcast_binomial = {
	.collective = COLL_BCAST,
	.name = "binomial",
	.about = "tree of log2 p rounds, the whole vector in each",
	.ordered = true,
	.cost = bcast_binomial_cost,
	.emit = bcast_binomial_emit,
};
