// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels: a reduce-scatter inside each node leaves a part with each of its
 * ranks, each reduces its part with its like on the other nodes, and the root's node gathers at the
 * root. All overlap in segments, and k ranks of a node share its messages and reductions.
 *
 *	n beta + (alpha + k o) log2 N + (2 n beta_node + n gamma) / S
 */
#include "algo/common/levels.h"

static void reduce_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "rabenseifner-extended", false);
}

static double reduce_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "rabenseifner-extended", false);
}

const struct coll_algo coll_reduce_lanes = {
	.collective = COLL_REDUCE,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node reduces a part across, gather at the root",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = reduce_lanes_cost,
	.emit = reduce_lanes_emit,
};
