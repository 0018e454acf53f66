// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: the root is its node's leader and broadcasts to those of the other
 * nodes, then each to its node. For N nodes of k ranks
 *
 *	log2(N) (alpha + n beta) + log2(k) (alpha_node + n beta_node)
 *
 * In segments the nodes broadcast one while the next crosses.
 */
#include "algo/common/levels.h"

static void bcast_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "farfirst", true);
}

static double bcast_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "farfirst", true);
}

const struct coll_algo coll_bcast_leader = {
	.collective = COLL_BCAST,
	.name = "leader",
	.about = "to one leader a node, then inside each node",
	.ordered = true,
	.levels = true,
	.options = "n, segment, across",
	.refuses = coll_levels_pipeline_refuse,
	.cost = bcast_leader_cost,
	.emit = bcast_leader_emit,
};
