// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: each node gathers at its leader, which sends the root all of its
 * node's blocks in one message. The root is the leader of its node.
 *
 *	alpha + n beta + log2(k) alpha_node	for n bytes in all
 */
#include "algo/common/levels.h"

static void gather_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double gather_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

const struct coll_algo coll_gather_leader = {
	.collective = COLL_GATHER,
	.name = "leader",
	.about = "gather inside each node, one message from each: short blocks",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = gather_leader_cost,
	.emit = gather_leader_emit,
};

const struct coll_algo coll_gatherv_leader = {
	.collective = COLL_GATHERV,
	.name = "leader",
	.about = "gather inside each node, one message from each: short blocks",
	.ordered = true,
	.levels = true,
	.needs_counts = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = gather_leader_cost,
	.emit = gather_leader_emit,
};
