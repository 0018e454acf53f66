// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: the ranks of a node, then the nodes' leaders, then the ranks of a
 * node again; twotier is the step of each level. For N nodes of k ranks
 *
 *	2 log2(k) alpha_node + log2(N) alpha
 */
#include "algo/common/levels.h"

static void barrier_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double barrier_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

const struct coll_algo coll_barrier_leader = {
	.collective = COLL_BARRIER,
	.name = "leader",
	.about = "inside each node, among the nodes' leaders, inside again",
	.ordered = true,
	.levels = true,
	.regular = COLL_REGULAR_NODES,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = barrier_leader_cost,
	.emit = barrier_leader_emit,
};
