// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rabenseifner, extended to clusters (paper 2): a reduce-scatter inside each cluster leaves one
 * part per lane with the lane's gateway, the lanes combine their parts across, all n at once,
 * and an allgather inside brings each part to all ranks.
 *
 *	A + n B_wan + 2 n beta + n gamma	for n bytes, one after the other
 *
 * n bytes cross each way, the fewest possible, and once. Both phases inside are rings: each byte
 * enters and leaves a rank once, however few the gateways are. In S segments the WAN and the
 * rings overlap.
 *
 * A part is completed by the ranks of one lane, which combine the same operands in the same
 * order, so all ranks have the same bits. If the operation does not commute, each rank sends
 * each part straight to its gateway instead of around the ring.
 */
#include "algo/common/clusters.h"
#include "algo/common/partial.h"

struct allreduce_segment {
	const struct coll_clusters *c;
	const struct coll_call *vector;
	u64 offset;
	u32 lane;		/* mine, or `lanes`: I am no gateway */
};

static u64 my_bytes(const struct allreduce_segment *s)
{
	return s->lane < s->c->lanes ? part_bytes(s->vector, s->c->lanes, s->lane) : 0;
}

/* From `sum` to its place in OUT, which no op reads after `inside`. */
static struct coll_phase_end emit_across(struct coll_build *b, const struct allreduce_segment *s,
					 u64 sum, const struct coll_phase_end *inside)
{
	struct coll_call across = call_across(s->c, s->vector, COLL_ALLREDUCE);
	struct coll_phase part = {
		.rank = coll_lane_ranks(s->c, s->lane),
		.ranks = across.ranks,
		.in = sum,
		.out = COLL_ADDRESS(COLL_OUT, s->offset +
				    part_offset(s->vector, s->c->lanes, s->lane)),
		.after = inside->ready,
		.recv_after = COLL_NONE,
	};

	if (s->vector->in_place)
		part.after = part.recv_after = emit_both(b, inside->ready, inside->sent);
	across.count = my_bytes(s) / s->vector->element;
	across.in_place = false;
	return coll_emit_across(b, s->c, "butterfly", &across, &part);
}

static void emit_spread(struct coll_build *b, const struct allreduce_segment *s, u32 after,
			const struct coll_phase_end *inside)
{
	struct coll_call spread = call_inside(s->c, s->vector, COLL_ALLGATHERV);
	struct coll_phase part = {
		.rank = cluster_ranks(s->c, s->c->mine),
		.ranks = spread.ranks,
		.out = COLL_ADDRESS(COLL_OUT, s->offset),
		.after = after,
		.recv_after = COLL_NONE,
	};

	if (s->vector->in_place)
		part.recv_after = emit_both(b, inside->ready, inside->sent);
	coll_share_lanes(s->c, s->c->mine, s->vector);
	spread.counts = s->c->counts;
	spread.displs = s->c->displs;
	spread.count = s->c->counts[spread.rank];
	spread.in_place = true;
	coll_emit_phase(b, coll_algo_find(COLL_ALLGATHERV, "ring"), &spread, &part);
}

static void emit_segment(struct coll_build *b, const struct allreduce_segment *s)
{
	const u64 sum = coll_emit_scratch(b, my_bytes(s));
	const struct coll_phase_end inside = coll_emit_reduce_to_lanes(
		b, s->c, s->vector, call_input(s->vector) + s->offset, sum);
	u32 ready = COLL_NONE;

	if (my_bytes(s))
		ready = emit_across(b, s, sum, &inside).ready;
	emit_spread(b, s, ready, &inside);
}

static void allreduce_rabenseifner_extended_emit(struct coll_build *b, const struct coll_call *call,
						 const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 segments = pipeline_parts(call, tuning, coll_clusters_largest(call));
	struct coll_call vector = *call;
	struct allreduce_segment segment = {
		.c = &c,
		.vector = &vector,
		.lane = is_gateway(&c) ? lane_of(&c, c.mine, c.index) : c.lanes,
	};
	u32 i;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	for (i = 0; i < segments; i++) {
		segment.offset = part_offset(call, segments, i);
		vector.count = part_bytes(call, segments, i) / call->element;
		emit_segment(b, &segment);
	}
}

static double allreduce_rabenseifner_extended_cost(const struct coll_call *call,
						   const struct coll_tuning *tuning,
						   const struct coll_machine *m)
{
	const double p = coll_clusters_largest(call);
	const double s = pipeline_parts(call, tuning, p);
	const double part = call_bytes(call) / s / coll_clusters_lanes(call, tuning);

	if (call->ranks == 1)
		return 0;
	return coll_reduction_across_cost(call, tuning, m, s) +
	       2 * (phases_inside_cost(call, m, (p + s) * m->alpha + (p - 1) * part * m->beta,
				       s * (p - 1) * m->alpha) +
		    s * coll_clusters_lanes(call, tuning) * message_cost(m));
}

const struct coll_algo coll_allreduce_rabenseifner_extended = {
	.collective = COLL_ALLREDUCE,
	.name = "rabenseifner-extended",
	.about = "reduce-scatter inside, n gateways exchange across, allgather inside; all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n, segment",
	.refuses = coll_order_pipeline_refuses,
	.cost = allreduce_rabenseifner_extended_cost,
	.emit = allreduce_rabenseifner_extended_emit,
};
