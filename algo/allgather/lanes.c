// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels: rings inside collect the blocks, each rank of a node exchanges those
 * of its lane with its like on the other nodes, and rings inside bring them to all. Each block
 * enters a node once.
 *
 *	n beta (N-1)/N + (N-1) (alpha + k o) + n beta_node	for n bytes in all
 */
#include "algo/common/levels.h"

static void allgather_lanes_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "vandegeijn-extended", false);
}

static double allgather_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "vandegeijn-extended", false);
}

const struct coll_algo coll_allgather_lanes = {
	.collective = COLL_ALLGATHER,
	.name = "lanes",
	.about = "rings inside, each rank of a node exchanges blocks with its like on the others",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = allgather_lanes_cost,
	.emit = allgather_lanes_emit,
};

const struct coll_algo coll_allgatherv_lanes = {
	.collective = COLL_ALLGATHERV,
	.name = "lanes",
	.about = "rings inside, each rank of a node exchanges blocks with its like on the others",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = allgather_lanes_cost,
	.emit = allgather_lanes_emit,
};
