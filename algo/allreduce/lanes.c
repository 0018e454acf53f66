// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels (DPML: Bayatpour et al. 2017; Träff's lanes): a reduce-scatter inside
 * each node leaves a part of the vector with each of its k ranks, each has an allreduce of its part
 * with its like on the other nodes, and an allgather inside brings each part to all. In S segments
 * memory and network work at once. 2 n (N-1)/N bytes enter and leave a node, the fewest.
 *
 *	2 n beta (N-1)/N + log2(N) (alpha + k o) + (3 n beta_node + n gamma) / S
 */
#include "algo/common/levels.h"

static void allreduce_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "rabenseifner-extended", false);
}

static double allreduce_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "rabenseifner-extended", false);
}

const struct coll_algo coll_allreduce_lanes = {
	.collective = COLL_ALLREDUCE,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node reduces a part across, allgather inside",
	.ordered = true,
	.levels = true,
	.regular = COLL_REGULAR_NODES,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = allreduce_lanes_cost,
	.emit = allreduce_lanes_emit,
};
