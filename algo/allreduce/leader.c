// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: each node reduces to its leader, the leaders have an allreduce, and
 * each broadcasts to its node. Of a node one rank communicates: the fewest messages, so for short
 * vectors. For N nodes of k ranks
 *
 *	log2(N) (alpha + n beta + n gamma) + log2(k) (2 alpha_node + 2 n beta_node + n gamma)
 */
#include "algo/common/levels.h"

static void allreduce_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double allreduce_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

const struct coll_algo coll_allreduce_leader = {
	.collective = COLL_ALLREDUCE,
	.name = "leader",
	.about = "reduce to one leader a node, allreduce of the leaders, broadcast inside",
	.ordered = true,
	.levels = true,
	.regular = COLL_REGULAR_NODES,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = allreduce_leader_cost,
	.emit = allreduce_leader_emit,
};
