// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels whose nodes are runs of ranks: each node scans, its last rank gets
 * the sum of the nodes below by an exscan of the last ranks, and each rank puts it before its own.
 *
 *	2 log2(k) (alpha_node + n beta_node) + log2(N) (alpha + n beta)
 */
#include "algo/common/levels.h"

static void scan_leader_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	coll_levels_emit(b, call, tuning, "twotier", true);
}

static double scan_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	return coll_levels_cost(call, tuning, m, "twotier", true);
}

static const char *scan_leader_refuses(const struct coll_call *call,
				       const struct coll_tuning *tuning)
{
	const char *why = coll_levels_refuse(call, tuning);

	if (why || coll_levels_are_runs(call))
		return why;
	return "the nodes are no runs of ranks";
}

const struct coll_algo coll_scan_leader = {
	.collective = COLL_SCAN,
	.name = "leader",
	.about = "scan inside each node, exscan of the nodes' sums, broadcast inside",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = scan_leader_refuses,
	.cost = scan_leader_cost,
	.emit = scan_leader_emit,
};

const struct coll_algo coll_exscan_leader = {
	.collective = COLL_EXSCAN,
	.name = "leader",
	.about = "exscan inside each node, exscan of the nodes' sums, broadcast inside",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = scan_leader_refuses,
	.cost = scan_leader_cost,
	.emit = scan_leader_emit,
};
