// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: all ranks send their vectors to the root, which adds them up in the order of ranks. One
 * latency: few ranks, short vectors.
 *
 *	alpha + n beta + (p-2) max(n G, o + n gamma) + n gamma
 */
#include "algo/common/partial.h"

static void reduce_linear_emit(struct coll_build *b, const struct coll_call *call,
			       const struct coll_tuning *tuning)
{
	(void)tuning;
	if (call->rank != call->root)
		coll_emit_send(b, call->root, call_input(call), call_bytes(call));
	else
		coll_emit_sum(b, call, call->ranks, COLL_NONE);
}

static double reduce_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				 const struct coll_machine *m)
{
	const double n = call_bytes(call);

	(void)tuning;
	return crowded_cost(call, m,
			    fan_sum_cost(m, call->ranks - 1, n),
			    tree_share(call, m->alpha + n * (m->beta + m->gamma)));
}

const struct coll_algo coll_reduce_linear = {
	.collective = COLL_REDUCE,
	.name = "linear",
	.about = "all send to the root, which adds up: one latency",
	.ordered = true,
	.cost = reduce_linear_cost,
	.emit = reduce_linear_emit,
};
