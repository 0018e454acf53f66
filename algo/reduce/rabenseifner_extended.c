// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rabenseifner, extended to clusters (paper 2): a reduce-scatter inside each cluster leaves one
 * part per lane with the lane's gateway, the lanes reduce to the root's cluster, all n at once,
 * and the gateways there send their parts to the root.
 *
 *	A + n B_wan + 2 n beta + n gamma	for n bytes, one after the other
 *
 * In S segments they overlap. The ring inside serves any number of gateways: each byte enters
 * and leaves a rank once.
 */
#include "algo/common/clusters.h"
#include "algo/common/partial.h"

/* The root gets the parts of its cluster's other gateways. */
static void emit_collect(struct coll_build *b, const struct coll_clusters *c,
			 const struct coll_call *vector, u64 offset, u32 unread)
{
	u32 lane;

	for (lane = 0; lane < c->lanes; lane++) {
		const u64 n = part_bytes(vector, c->lanes, lane);

		if (!n || gateway_rank(c, c->mine, lane) == vector->rank)
			continue;
		coll_emit_after(b, unread);
		coll_emit_recv(b, gateway_rank(c, c->mine, lane),
			       COLL_ADDRESS(COLL_OUT, offset + part_offset(vector, c->lanes, lane)),
			       n);
	}
}

/* My lane's part at home, in `sum`, is complete, and goes to the root if I am not it. */
static void emit_lane(struct coll_build *b, const struct coll_clusters *c,
		      const struct coll_call *vector, u32 lane, u64 offset, u64 sum,
		      const struct coll_phase_end *inside)
{
	const u32 home = cluster_of(vector, vector->root);
	const bool root = vector->rank == vector->root;
	struct coll_call call = call_across(c, vector, COLL_REDUCE);
	struct coll_phase part = {
		.rank = coll_lane_ranks(c, lane),
		.ranks = call.ranks,
		.in = sum,
		.out = COLL_ADDRESS(COLL_OUT, offset + part_offset(vector, c->lanes, lane)),
		.after = inside->ready,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end across;

	call.count = part_bytes(vector, c->lanes, lane) / vector->element;
	call.root = home;
	call.in_place = false;
	if (root && vector->in_place)
		part.after = part.recv_after = emit_both(b, inside->ready, inside->sent);
	if (!root && c->mine == home)
		part.out = coll_emit_scratch(b, call_bytes(&call));
	across = coll_emit_across(b, c, "binomial", &call, &part);
	if (!root && c->mine == home) {
		coll_emit_after(b, across.ready);
		coll_emit_send(b, vector->root, part.out, call_bytes(&call));
	}
}

static void emit_segment(struct coll_build *b, const struct coll_clusters *c,
			 const struct coll_call *vector, u64 offset)
{
	const u32 lane = is_gateway(c) ? lane_of(c, c->mine, c->index) : c->lanes;
	const u64 n = lane < c->lanes ? part_bytes(vector, c->lanes, lane) : 0;
	const u64 sum = coll_emit_scratch(b, n);
	const struct coll_phase_end inside =
		coll_emit_reduce_to_lanes(b, c, vector, call_input(vector) + offset, sum);
	u32 unread = COLL_NONE;

	if (n)
		emit_lane(b, c, vector, lane, offset, sum, &inside);
	if (vector->rank != vector->root)
		return;
	if (vector->in_place)
		unread = emit_both(b, inside.ready, inside.sent);
	emit_collect(b, c, vector, offset, unread);
}

static void reduce_rabenseifner_extended_emit(struct coll_build *b, const struct coll_call *call,
					      const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 segments = pipeline_parts(call, tuning, coll_clusters_largest(call));
	struct coll_call vector = *call;
	u32 i;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	for (i = 0; i < segments; i++) {
		vector.count = part_bytes(call, segments, i) / call->element;
		emit_segment(b, &c, &vector, part_offset(call, segments, i));
	}
}

static double reduce_rabenseifner_extended_cost(const struct coll_call *call,
						const struct coll_tuning *tuning,
						const struct coll_machine *m)
{
	const double p = coll_clusters_largest(call);
	const double s = pipeline_parts(call, tuning, p);
	const double part = call_bytes(call) / s / coll_clusters_lanes(call, tuning);

	if (call->ranks == 1)
		return 0;
	return coll_reduction_across_cost(call, tuning, m, s) +
	       phases_inside_cost(call, m, (p + s + coll_clusters_lanes(call, tuning)) * m->alpha +
				  (p - 1) * part * m->beta, s * (p - 1) * m->alpha) +
	       2 * s * coll_clusters_lanes(call, tuning) * message_cost(m);
}

const struct coll_algo coll_reduce_rabenseifner_extended = {
	.collective = COLL_REDUCE,
	.name = "rabenseifner-extended",
	.about = "reduce-scatter inside, n gateways reduce across, gather to the root; all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n, segment",
	.refuses = coll_order_pipeline_refuses,
	.cost = reduce_rabenseifner_extended_cost,
	.emit = reduce_rabenseifner_extended_emit,
};
