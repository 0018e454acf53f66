// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers (paper 2): each cluster reduces to its head, and the heads reduce to the root, which
 * is the head of its own cluster.
 *
 *	A + n beta + 2 n beta + n gamma
 */
#include "algo/common/clusters.h"
#include "algo/common/levels.h"
#include "algo/common/partial.h"

static void reduce_twotier_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 head = coll_head_index(&c, call, call->root);
	struct coll_call tier = call_inside(&c, call, COLL_REDUCE);
	struct coll_phase part = {
		.rank = cluster_ranks(&c, c.mine),
		.ranks = tier.ranks,
		.in = call_input(call),
		.out = coll_emit_scratch(b, c.index == head ? call_bytes(call) : 0),
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end inside;

	tier.in_place = false;
	tier.root = head;
	inside = coll_emit_phase(b, coll_reduce_inside(call), &tier, &part);
	if (c.index != head)
		return;
	tier = call_across(&c, call, COLL_REDUCE);
	tier.in_place = false;
	tier.root = cluster_of(call, call->root);
	part.rank = coll_head_ranks(&c, call, call->root);
	part.ranks = tier.ranks;
	part.in = part.out;
	part.out = COLL_ADDRESS(COLL_OUT, 0);
	part.after = part.recv_after = emit_both(b, inside.ready, inside.sent);
	coll_emit_across(b, &c, "binomial", &tier, &part);
}

static double reduce_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const struct coll_tuning one = { .lanes = 1 };
	const double rounds = log2_ceil(coll_across_count(call, m));
	struct coll_call inside = *call;

	if (call->ranks == 1)
		return 0;
	inside.cluster = NULL;
	inside.ranks = coll_clusters_largest(call);
	inside.root = 0;
	return coll_reduce_inside(&inside)->cost(&inside, tuning, m) +
	       rounds * (coll_across_alpha(call, m) +
			 coll_across_cost(call, &one, m, call_bytes(call)) +
			 call_bytes(call) * m->gamma);
}

const struct coll_algo coll_reduce_twotier = {
	.collective = COLL_REDUCE,
	.name = "twotier",
	.about = "reduce inside each cluster, then the heads reduce to the root",
	.ordered = true,
	.clusters = true,
	.refuses = coll_order_refuses,
	.cost = reduce_twotier_cost,
	.emit = reduce_twotier_emit,
};
