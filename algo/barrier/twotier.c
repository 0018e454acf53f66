// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers: a cluster's head waits for all of its cluster, then for the heads of the others,
 * then releases its cluster. For two clusters one way across, over one link.
 *
 *	A + 2 log2(p) alpha	for clusters of p ranks
 */
#include "algo/common/clusters.h"

static void barrier_twotier_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const struct coll_call inside = call_inside(&c, call, COLL_BARRIER);
	const struct coll_call across = call_across(&c, call, COLL_BARRIER);
	struct coll_phase near = {
		.rank = cluster_ranks(&c, c.mine),
		.ranks = inside.ranks,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	struct coll_phase far = near;

	far.rank = coll_head_ranks(&c, call, 0);
	far.ranks = across.ranks;
	far.after = near.after =
		coll_emit_phase(b, coll_algo_find(COLL_BARRIER, "dissemination"), &inside, &near).ready;
	if (!c.index)
		near.after = coll_emit_across(b, &c, "dissemination", &across, &far).ready;
	if (c.count > 1)
		coll_emit_phase(b, coll_algo_find(COLL_BARRIER, "dissemination"), &inside, &near);
}

static double barrier_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	(void)tuning;
	return symmetric_cost(call, m,
			      2 * log2_ceil(coll_clusters_largest(call)) * m->alpha +
				      log2_ceil(coll_clusters_count(call)) *
					      coll_across_alpha(call, m));
}

const struct coll_algo coll_barrier_twotier = {
	.collective = COLL_BARRIER,
	.name = "twotier",
	.about = "inside each cluster, among the heads, inside again: one way across",
	.ordered = true,
	.clusters = true,
	.cost = barrier_twotier_cost,
	.emit = barrier_twotier_emit,
};
