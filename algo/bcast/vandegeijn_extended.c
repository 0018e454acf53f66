// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Van de Geijn, extended to clusters (paper 2): the root scatters one part per lane to the
 * gateways of its cluster, these copy their parts across, all n at once, and rings inside all
 * clusters bring each part to all ranks.
 *
 *	A + n B_wan + 2 n beta	for n bytes, one after the other (paper 2's cost)
 *
 * In S segments the three overlap: while one crosses, the next is scattered and the one before
 * goes around. The cost is then the slowest of the three and 1/S of the others, and p steps of
 * the rings. The slowest is the root's sends: to the gateways, to its neighbour in the ring, and
 * its own part across, each byte (2 (p-1) + 1) / p times.
 */
#include "algo/common/clusters.h"

struct part {
	const struct coll_clusters *c;
	const struct coll_call *vector;	/* this segment: its count */
	u64 offset;
};

static u64 lane_place(const struct part *part, u32 lane)
{
	return COLL_ADDRESS(COLL_OUT,
			    part->offset + part_offset(part->vector, part->c->lanes, lane));
}

static u64 lane_bytes(const struct part *part, u32 lane)
{
	return part_bytes(part->vector, part->c->lanes, lane);
}

/* From the root to my cluster's gateways; returns what brought my own part. */
static u32 emit_scatter(struct coll_build *b, const struct part *part, u32 mine)
{
	const struct coll_clusters *c = part->c;
	const struct coll_call *call = part->vector;
	u32 lane;

	if (call->rank != call->root)
		return mine < c->lanes && lane_bytes(part, mine) ?
			       coll_emit_recv(b, call->root, lane_place(part, mine),
					      lane_bytes(part, mine)) :
			       COLL_NONE;
	for (lane = 0; lane < c->lanes; lane++)
		if (lane != mine && lane_bytes(part, lane))
			coll_emit_send(b, gateway_rank(c, c->mine, lane), lane_place(part, lane),
				       lane_bytes(part, lane));
	return COLL_NONE;
}

/* In levels: among the lane's gateways, by what is there for the levels above. */
static u32 emit_lane(struct coll_build *b, const struct part *part, u32 lane, u32 ready)
{
	const struct coll_clusters *c = part->c;
	struct coll_call across = call_across(c, part->vector, COLL_BCAST);
	const struct coll_phase phase = {
		.rank = coll_lane_ranks(c, lane),
		.ranks = across.ranks,
		.out = lane_place(part, lane),
		.after = ready,
		.recv_after = COLL_NONE,
	};

	across.root = cluster_of(part->vector, part->vector->root);
	across.count = lane_bytes(part, lane) / across.element;
	return coll_emit_across(b, c, NULL, &across, &phase).ready;
}

/* A gateway's part crosses; returns what brought it. */
static u32 emit_copy_across(struct coll_build *b, const struct part *part, u32 lane, u32 ready)
{
	const struct coll_clusters *c = part->c;
	const u32 home = cluster_of(part->vector, part->vector->root);
	u32 i;

	if (!lane_bytes(part, lane))
		return ready;
	if (c->near)
		return emit_lane(b, part, lane, ready);
	if (c->mine != home)
		return coll_emit_recv(b, gateway_rank(c, home, lane), lane_place(part, lane),
				      lane_bytes(part, lane));
	for (i = 0; i < c->count; i++) {
		if (i == home)
			continue;
		coll_emit_after(b, ready);
		coll_emit_send(b, gateway_rank(c, i, lane), lane_place(part, lane),
			       lane_bytes(part, lane));
	}
	return ready;
}

/*
 * In each step a rank sends on the part that it received last. The root has everything, so
 * nothing is sent to it: it begins a chain, and gives all parts but those that its
 * neighbour has.
 */
static void emit_ring(struct coll_build *b, const struct part *part, u32 ready)
{
	const struct coll_clusters *c = part->c;
	const u32 size = cluster_size(c, c->mine), *rank = cluster_ranks(c, c->mine);
	const u32 above = rank_plus(c->index, 1, size), below = rank_minus(c->index, 1, size);
	const u32 root = part->vector->root;
	u32 step;

	for (step = 0; step + 1 < size; step++) {
		const u32 give = rank_minus(c->index, step, size);
		const u32 take = rank_minus(give, 1, size);
		const u32 out = lane_of(c, c->mine, give), in = lane_of(c, c->mine, take);

		if (gateway_index(c, c->mine, out) == give && rank[above] != root &&
		    lane_bytes(part, out)) {
			coll_emit_after(b, ready);
			coll_emit_send(b, rank[above], lane_place(part, out),
				       lane_bytes(part, out));
		}
		if (gateway_index(c, c->mine, in) == take && part->vector->rank != root &&
		    lane_bytes(part, in))
			ready = coll_emit_recv(b, rank[below], lane_place(part, in),
					       lane_bytes(part, in));
	}
}

static void emit_segment(struct coll_build *b, const struct part *part)
{
	const struct coll_clusters *c = part->c;
	const u32 lane = is_gateway(c) ? lane_of(c, c->mine, c->index) : c->lanes;
	u32 ready = COLL_NONE;

	if (c->mine == cluster_of(part->vector, part->vector->root))
		ready = emit_scatter(b, part, lane);
	if (lane < c->lanes)
		ready = emit_copy_across(b, part, lane, ready);
	emit_ring(b, part, ready);
}

static void bcast_vandegeijn_extended_emit(struct coll_build *b, const struct coll_call *call,
					   const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 segments = pipeline_parts(call, tuning, coll_clusters_largest(call));
	struct coll_call vector = *call;
	const struct part part = { .c = &c, .vector = &vector };
	u32 i;

	for (i = 0; i < segments; i++) {
		struct part segment = part;

		segment.offset = part_offset(call, segments, i);
		vector.count = part_bytes(call, segments, i) / call->element;
		emit_segment(b, &segment);
	}
}

static double bcast_vandegeijn_extended_cost(const struct coll_call *call,
					     const struct coll_tuning *tuning,
					     const struct coll_machine *m)
{
	const double n = call_bytes(call), p = coll_clusters_largest(call);
	/* Alone in its cluster it sends across only, and that overlaps with nothing. */
	const double root =
		p > 1 ? (2 * (p - 1) + coll_across_count(call, m) - 1) / p * n * m->beta : 0;
	const double s = pipeline_parts(call, tuning, p);
	const double part = n / s / coll_clusters_lanes(call, tuning);

	if (call->ranks == 1)
		return 0;
	return coll_across_alpha(call, m) +
	       overlap_cost(coll_across_cost(call, tuning, m, n),
			    phases_inside_cost(call, m, root, (p - 1) / p * n * m->beta), s) +
	       phases_inside_cost(call, m, (p + s) * m->alpha + (p - 1) * part * m->beta,
				  s * (p - 1) * m->alpha) +
	       s * coll_clusters_lanes(call, tuning) * message_cost(m);
}

const struct coll_algo coll_bcast_vandegeijn_extended = {
	.collective = COLL_BCAST,
	.name = "vandegeijn-extended",
	.about = "scatter inside, n gateways copy across, allgather inside; all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n, segment",
	.refuses = pipeline_refuses,
	.cost = bcast_vandegeijn_extended_cost,
	.emit = bcast_vandegeijn_extended_emit,
};
