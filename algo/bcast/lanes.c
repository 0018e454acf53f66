// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels: the root scatters the vector to the ranks of its node, each
 * broadcasts its part to its like on the other nodes, and rings inside the nodes bring each part
 * to all. Long parts go from node to node in a chain: n bytes enter and leave a node, and no rank
 * sends or receives more than a k-th of them there.
 *
 *	n beta + (N + S) (alpha + k o) + 2 n beta_node / S	for N nodes of k ranks, S segments
 */
#include "algo/common/levels.h"

static void bcast_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "vandegeijn-extended", false);
}

static double bcast_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "vandegeijn-extended", false);
}

const struct coll_algo coll_bcast_lanes = {
	.collective = COLL_BCAST,
	.name = "lanes",
	.about = "each rank of a node broadcasts a part to its like, rings inside; all overlap",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = bcast_lanes_cost,
	.emit = bcast_lanes_emit,
};
