// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels: a reduce-scatter inside each node leaves the blocks of lane j of all
 * nodes with the node's rank j, the lanes reduce and scatter across, and a node's ranks get their
 * blocks from the rank of their lane: with nodes of k ranks each is its own.
 *
 *	n beta (N-1)/N + (N-1) (alpha + k o) + n (2 beta_node + gamma) / S
 */
#include "algo/common/levels.h"

static void reduce_scatter_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "rabenseifner-extended", false);
}

static double reduce_scatter_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "rabenseifner-extended", false);
}

const struct coll_algo coll_reduce_scatter_lanes = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node reduces its blocks across",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = reduce_scatter_lanes_cost,
	.emit = reduce_scatter_lanes_emit,
};

const struct coll_algo coll_reduce_scatter_block_lanes = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node reduces its blocks across",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = reduce_scatter_lanes_cost,
	.emit = reduce_scatter_lanes_emit,
};
