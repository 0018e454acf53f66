// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers, as in MPIs for grids, which expect a narrow WAN (compared in paper 2): each cluster
 * reduces to its head, the heads combine their sums, and each cluster has a broadcast.
 *
 *	A + n beta + 4 n beta + n gamma
 *
 * The vector goes in segments, one tier after the other. All bytes pass the heads three times,
 * so the tiers hardly overlap.
 */
#include "algo/common/clusters.h"
#include "algo/common/levels.h"
#include "algo/common/partial.h"

static void emit_segment(struct coll_build *b, const struct coll_clusters *c,
			 const struct coll_algo *bcast, const struct coll_call *vector, u64 offset)
{
	const bool head = !c->index;
	struct coll_call call = call_inside(c, vector, COLL_REDUCE);
	struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = call.ranks,
		.in = call_input(vector) + offset,
		.out = coll_emit_scratch(b, head ? call_bytes(vector) : 0),
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end inside, across = { COLL_NONE, COLL_NONE };
	u32 unread = COLL_NONE;

	call.in_place = false;
	inside = coll_emit_phase(b, coll_reduce_inside(vector), &call, &part);
	if (vector->in_place)
		unread = emit_both(b, inside.ready, inside.sent);
	if (head) {
		call = call_across(c, vector, COLL_ALLREDUCE);
		call.in_place = false;
		part.rank = coll_head_ranks(c, vector, 0);
		part.ranks = call.ranks;
		part.in = part.out;
		part.out = COLL_ADDRESS(COLL_OUT, offset);
		part.after = vector->in_place ? unread : inside.ready;
		part.recv_after = unread;
		across = coll_emit_across(b, c, "butterfly", &call, &part);
	}
	call = call_inside(c, vector, COLL_BCAST);
	part.rank = cluster_ranks(c, c->mine);
	part.ranks = call.ranks;
	part.out = COLL_ADDRESS(COLL_OUT, offset);
	part.after = across.ready;
	part.recv_after = unread;
	coll_emit_phase(b, bcast, &call, &part);
}

static void allreduce_twotier_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 segments = phase_segments(call, tuning);
	struct coll_call vector = *call;
	u32 i;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	for (i = 0; i < segments; i++) {
		vector.count = part_bytes(call, segments, i) / call->element;
		emit_segment(b, &c, coll_bcast_inside(call), &vector,
			     part_offset(call, segments, i));
	}
}

static double allreduce_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	const struct coll_tuning one = { .lanes = 1 };
	const double rounds = log2_ceil(coll_across_count(call, m)), n = call_bytes(call);
	const u32 s = phase_segments(call, tuning);
	struct coll_call inside = *call;

	if (call->ranks == 1)
		return 0;
	inside.cluster = NULL;
	inside.ranks = coll_clusters_largest(call);
	inside.root = 0;
	inside.count = part_bytes(call, s, 0) / call->element;
	return rounds * (coll_across_alpha(call, m) + coll_across_cost(call, &one, m, n)) +
	       s * (coll_reduce_inside(&inside)->cost(&inside, tuning, m) +
		    coll_bcast_inside(call)->cost(&inside, tuning, m)) +
	       s * message_cost(m) + 2 * nic_shared(inside.ranks) * n / s * m->beta;
}

const struct coll_algo coll_allreduce_twotier = {
	.collective = COLL_ALLREDUCE,
	.name = "twotier",
	.about = "reduce inside each cluster, the heads exchange, broadcast inside",
	.ordered = true,
	.clusters = true,
	.options = "segment",
	.refuses = coll_order_pipeline_refuses,
	.cost = allreduce_twotier_cost,
	.emit = allreduce_twotier_emit,
};
