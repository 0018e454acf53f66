// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: each node reduces to its leader, the leaders to the root, which
 * is the leader of its node. For N nodes of k ranks
 *
 *	log2(k) (alpha_node + n beta_node + n gamma) + log2(N) (alpha + n beta + n gamma)
 */
#include "algo/common/levels.h"

static void reduce_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double reduce_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

const struct coll_algo coll_reduce_leader = {
	.collective = COLL_REDUCE,
	.name = "leader",
	.about = "each node reduces to its leader, the leaders to the root",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = reduce_leader_cost,
	.emit = reduce_leader_emit,
};
