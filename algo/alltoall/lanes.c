// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes: the pairs of nodes exchange k messages, one a lane; rank j of a node sends its blocks to
 * its like on another node, which hands them out there. With nodes of unequal numbers of ranks a
 * lane serves several. alltoallv, whose counts other ranks do not know, sends its blocks straight,
 * a lane's ranks in turn, those inside the node meanwhile.
 *
 *	(N-1) (alpha + k m beta k) + (k-1) (alpha_node + p m beta_node)	for blocks of m bytes
 */
#include "algo/common/levels.h"

static void alltoall_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_nodes_emit(b, call, tuning, "gateways", false);
}

static double alltoall_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_nodes_cost(call, tuning, m, "gateways", false);
}

const struct coll_algo coll_alltoall_lanes = {
	.collective = COLL_ALLTOALL,
	.name = "lanes",
	.about = "each rank of a node exchanges with its like on the others, which hand out",
	.ordered = true,
	.levels = true,
	.refuses = coll_nodes_refuse,
	.cost = alltoall_lanes_cost,
	.emit = alltoall_lanes_emit,
};

static void alltoallv_lanes_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	coll_nodes_emit(b, call, tuning, "turns", false);
}

static double alltoallv_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	return coll_nodes_cost(call, tuning, m, "turns", false);
}

const struct coll_algo coll_alltoallv_lanes = {
	.collective = COLL_ALLTOALLV,
	.name = "lanes",
	.about = "blocks inside the node and blocks between nodes in turn, at the same time",
	.ordered = true,
	.levels = true,
	.refuses = coll_nodes_refuse,
	.cost = alltoallv_lanes_cost,
	.emit = alltoallv_lanes_emit,
};
