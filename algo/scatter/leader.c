// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: the root sends the leader of each node all of the node's blocks in
 * one message, and each node scatters.
 *
 *	alpha + n beta + log2(k) alpha_node	for n bytes in all
 */
#include "algo/common/levels.h"

static void scatter_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double scatter_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

const struct coll_algo coll_scatter_leader = {
	.collective = COLL_SCATTER,
	.name = "leader",
	.about = "one message to the leader of each node, scatter inside: short blocks",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = scatter_leader_cost,
	.emit = scatter_leader_emit,
};

const struct coll_algo coll_scatterv_leader = {
	.collective = COLL_SCATTERV,
	.name = "leader",
	.about = "one message to the leader of each node, scatter inside: short blocks",
	.ordered = true,
	.levels = true,
	.needs_counts = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = scatter_leader_cost,
	.emit = scatter_leader_emit,
};
