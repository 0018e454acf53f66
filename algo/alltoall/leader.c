// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders: a node's leader collects the blocks for other nodes, exchanges with each of their
 * leaders one message, and hands out what comes. N (N-1) messages cross in all, instead of k^2 as
 * many.
 *
 *	(N-1) (alpha + k^2 m beta) + (k-1) (alpha_node + p m beta_node)	for blocks of m bytes
 */
#include "algo/common/levels.h"

static void alltoall_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_nodes_emit(b, call, tuning, "gateways", true);
}

static double alltoall_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_nodes_cost(call, tuning, m, "gateways", true);
}

const struct coll_algo coll_alltoall_leader = {
	.collective = COLL_ALLTOALL,
	.name = "leader",
	.about = "the nodes' leaders exchange k x k blocks in one message: short blocks",
	.ordered = true,
	.levels = true,
	.refuses = coll_nodes_refuse,
	.cost = alltoall_leader_cost,
	.emit = alltoall_leader_emit,
};
