// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The first half of Rabenseifner, extended to clusters (paper 2): a reduce-scatter inside each
 * cluster leaves all blocks that a lane serves with its gateway, the lanes reduce and scatter
 * across, n at once, and the gateways send each block to its rank.
 *
 *	A + n B_wan + n (beta + gamma)	for n bytes in all, one after the other
 *
 * The blocks are first copied into the order of lane, cluster and member, so that blocks that
 * travel together are contiguous. In S segments, each of all blocks, the rest overlaps.
 */
#include "algo/common/clusters.h"
#include "algo/common/partial.h"

/* A segment of every block. */
struct reduce_scatter_segment {
	const struct coll_clusters *c;
	const struct coll_call *call;
	u32 parts, part;	/* of each block it has this part of so many */
	u64 all;		/* the input, by lane, cluster and member */
	u32 packed;		/* the copy that completes it */
	u32 unread;		/* the copy after which no op reads the input */
};

enum { SEGMENTS_HERE = 64 };	/* the most: each has its copies */

static u64 block_elements(const struct coll_call *call, u32 rank)
{
	return call->counts ? call->counts[rank] : call->count;
}

/* Elements of a rank's block before this segment, and in it. */
static u64 start_of(const struct reduce_scatter_segment *s, u32 rank)
{
	const u64 n = block_elements(s->call, rank);

	return n / s->parts * s->part + (s->part < n % s->parts ? s->part : n % s->parts);
}

static u64 elements_of(const struct reduce_scatter_segment *s, u32 rank)
{
	const u64 n = block_elements(s->call, rank);

	return n / s->parts + (s->part < n % s->parts);
}

/* Of the blocks that a lane serves in a cluster. */
static u64 lane_elements(const struct reduce_scatter_segment *s, u32 cluster, u32 lane)
{
	const u32 *rank = cluster_ranks(s->c, cluster);
	u64 sum = 0;
	u32 i;

	for (i = lane_first(s->c, cluster, lane); i < lane_first(s->c, cluster, lane + 1); i++)
		sum += elements_of(s, rank[i]);
	return sum;
}

/* Copies follow each other, so that the last of them ends all. */
static void emit_pack_all(struct coll_build *b, struct reduce_scatter_segment *s)
{
	const u64 element = s->call->element, input = call_input(s->call);
	u64 to = s->all;
	u32 lane, k, i;

	for (lane = 0; lane < s->c->lanes; lane++)
		for (k = 0; k < s->c->count; k++)
			for (i = lane_first(s->c, k, lane); i < lane_first(s->c, k, lane + 1);
			     i++) {
				const u32 rank = cluster_ranks(s->c, k)[i];
				const u64 n = elements_of(s, rank) * element;

				if (!n)
					continue;
				coll_emit_after(b, s->packed);
				s->packed = coll_emit_copy(b, to,
							   input + block_offset(s->call, rank) +
								   start_of(s, rank) * element,
							   n);
				to += n;
			}
	s->all = to;
}

/* My lane's sums over my cluster, to `sum`; of no gateway nothing. */
static struct coll_phase_end emit_inside(struct coll_build *b,
					 const struct reduce_scatter_segment *s, u64 sum)
{
	const struct coll_clusters *c = s->c;
	struct coll_call inside = call_inside(c, s->call, COLL_REDUCE_SCATTER);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.in = s->all,
		.out = sum,
		.after = s->packed,
		.recv_after = COLL_NONE,
	};
	u32 lane, k;

	memset(c->counts, 0, inside.ranks * sizeof(*c->counts));
	for (lane = 0; lane < c->lanes; lane++)
		for (k = 0; k < c->count; k++)
			c->counts[gateway_index(c, c->mine, lane)] += lane_elements(s, k, lane);
	inside.counts = c->counts;
	inside.count = c->counts[inside.rank];
	inside.in_place = false;
	return coll_emit_phase(b, coll_reduce_scatter_inside(s->call), &inside, &part);
}

/* Over all clusters, of the blocks that my lane serves in mine; to `mine`. */
static u32 emit_across(struct coll_build *b, const struct reduce_scatter_segment *s, u32 lane,
		       u64 sum, u64 mine, u32 after)
{
	const struct coll_clusters *c = s->c;
	struct coll_call across = call_across(c, s->call, COLL_REDUCE_SCATTER);
	const struct coll_phase part = {
		.rank = coll_lane_ranks(c, lane),
		.ranks = across.ranks,
		.in = sum,
		.out = mine,
		.after = after,
		.recv_after = COLL_NONE,
	};
	u32 k;

	for (k = 0; k < c->count; k++)
		c->counts[k] = lane_elements(s, k, lane);
	across.counts = c->counts;
	across.count = c->counts[across.rank];
	across.in_place = false;
	return coll_emit_across(b, c, "pairwise", &across, &part).ready;
}

/* From my lane's gateway to its members, and to OUT, which is read no more. */
static void emit_hand_out(struct coll_build *b, const struct reduce_scatter_segment *s, u32 lane,
			  u64 mine, u32 ready)
{
	const struct coll_clusters *c = s->c;
	const struct coll_call *call = s->call;
	const u32 *rank = cluster_ranks(c, c->mine);
	const u64 own = elements_of(s, call->rank) * call->element;
	const u64 out = COLL_ADDRESS(COLL_OUT, start_of(s, call->rank) * call->element);
	u32 i;

	if (!is_gateway(c)) {
		if (call->in_place)
			coll_emit_after(b, s->unread);
		coll_emit_recv_nonempty(b, gateway_rank(c, c->mine, lane), out, own);
		return;
	}
	for (i = lane_first(c, c->mine, lane); i <= c->index; i++) {
		const u64 n = elements_of(s, rank[i]) * call->element;

		if (!n)
			continue;
		coll_emit_after(b, ready);
		if (i == c->index && call->in_place)
			coll_emit_after(b, s->unread);
		if (i == c->index)
			coll_emit_copy(b, out, mine, n);
		else
			coll_emit_send(b, rank[i], mine, n);
		mine += n;
	}
}

static void emit_segment(struct coll_build *b, struct reduce_scatter_segment *s)
{
	const struct coll_clusters *c = s->c;
	const u32 lane = lane_of(c, c->mine, c->index);
	u64 sum = COLL_ADDRESS(COLL_SCRATCH, 0), mine = sum, lanes = 0;
	struct coll_phase_end inside;
	u32 ready = COLL_NONE, k;

	if (is_gateway(c)) {
		for (k = 0; k < c->count; k++)
			lanes += lane_elements(s, k, lane);
		sum = coll_emit_scratch(b, lanes * s->call->element);
		mine = coll_emit_scratch(b, lane_elements(s, c->mine, lane) * s->call->element);
	}
	inside = emit_inside(b, s, sum);
	if (is_gateway(c))
		ready = emit_across(b, s, lane, sum, mine, inside.ready);
	emit_hand_out(b, s, lane, mine, ready);
}

static u32 segments_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const u32 segments = pipeline_parts(call, tuning, coll_clusters_largest(call));

	return segments < SEGMENTS_HERE ? segments : SEGMENTS_HERE;
}

static void reduce_scatter_rabenseifner_extended_emit(struct coll_build *b,
						      const struct coll_call *call,
						      const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u64 base = coll_emit_scratch(b, blocks_bytes(call, 0, call->ranks));
	struct reduce_scatter_segment s = {
		.c = &c,
		.call = call,
		.parts = segments_of(call, tuning),
		.all = base,
		.packed = COLL_NONE,
	};
	u32 packed[SEGMENTS_HERE], i;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, block_bytes(call, 0));
		return;
	}
	for (s.part = 0; s.part < s.parts; s.part++) {
		emit_pack_all(b, &s);
		packed[s.part] = s.packed;
	}
	s.unread = s.packed;
	s.all = base;
	for (s.part = 0; s.part < s.parts; s.part++) {
		s.packed = packed[s.part];
		emit_segment(b, &s);
		for (i = 0; i < call->ranks; i++)
			s.all += elements_of(&s, i) * call->element;
	}
}

static double reduce_scatter_rabenseifner_extended_cost(const struct coll_call *call,
							const struct coll_tuning *tuning,
							const struct coll_machine *m)
{
	const double n = blocks_bytes(call, 0, call->ranks), p = coll_clusters_largest(call);
	const double s = segments_of(call, tuning), k = coll_clusters_count(call);
	const double lanes = coll_clusters_lanes(call, tuning);
	const double share = n * ((p - 1) / p * m->beta + 2 * m->gamma);
	/* A leader gets the others' vectors straight, and adds one after the other. */
	const double inside = call->near && call->leader ? fan_sum_cost(m, p - 1, n) + n * m->gamma : share;
	/* Gateways hand out blocks that are not their own. */
	const double handed = n / k * (1 - lanes / p) / lanes * m->beta;

	if (call->ranks == 1)
		return 0;
	return coll_across_alpha(call, m) +
	       (k - 1) * s * lanes * message_cost(m) +
	       overlap_cost(coll_across_cost(call, tuning, m, n / k * (k - 1)),
			    phases_inside_cost(call, m, inside, share), s) +
	       phases_inside_cost(call, m, (p + s) * m->alpha + handed / s,
				  s * (p - 1) * m->alpha + handed * lanes / p);
}

const struct coll_algo coll_reduce_scatter_rabenseifner_extended = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "rabenseifner-extended",
	.about = "reduce-scatter inside, n gateways reduce across and hand out; all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n, segment",
	.refuses = coll_order_pipeline_refuses,
	.cost = reduce_scatter_rabenseifner_extended_cost,
	.emit = reduce_scatter_rabenseifner_extended_emit,
};

const struct coll_algo coll_reduce_scatter_block_rabenseifner_extended = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "rabenseifner-extended",
	.about = "reduce-scatter inside, n gateways reduce across and hand out; all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n, segment",
	.refuses = coll_order_pipeline_refuses,
	.cost = reduce_scatter_rabenseifner_extended_cost,
	.emit = reduce_scatter_rabenseifner_extended_emit,
};
