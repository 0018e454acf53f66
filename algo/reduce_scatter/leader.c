// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: each node reduces all blocks to its leader, the leaders reduce and
 * scatter them by nodes, and each sends its node's blocks to their ranks.
 *
 *	n beta (N-1)/N + (N-1) (alpha + n/N gamma) + k n (beta_node + gamma)
 */
#include "algo/common/levels.h"

static void reduce_scatter_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "rabenseifner-extended", true);
}

static double reduce_scatter_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "rabenseifner-extended", true);
}

const struct coll_algo coll_reduce_scatter_leader = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "leader",
	.about = "reduce to one leader a node, reduce-scatter of the leaders, scatter inside",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = reduce_scatter_leader_cost,
	.emit = reduce_scatter_leader_emit,
};

const struct coll_algo coll_reduce_scatter_block_leader = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "leader",
	.about = "reduce to one leader a node, reduce-scatter of the leaders, scatter inside",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = reduce_scatter_leader_cost,
	.emit = reduce_scatter_leader_emit,
};
