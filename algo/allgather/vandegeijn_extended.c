// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The second half of van de Geijn, extended to clusters (paper 2): the blocks of each cluster
 * cross once, over n lanes at once, and rings bring them to all ranks.
 *
 *	A + n B_wan + n beta	for n bytes in all, one after the other
 *
 * A ring inside each cluster starts at once. On the way it gives the blocks of a lane to the
 * lane's gateway, the last of the members that the lane serves. Blocks that have crossed go
 * around a second ring. Long blocks travel one by one, so that all of this overlaps; short ones
 * together, to save messages.
 *
 * Blocks lie in order of cluster and member: in OUT if that is their order there, else in
 * scratch, from where they are copied.
 */
#include "algo/common/area.h"
#include "algo/common/clusters.h"

enum { PIECE_BYTES = 1 << 15 };	/* blocks that are less together are one message */

struct vandegeijn_gathering {
	struct coll_clusters c;
	const struct coll_call *call;
	u64 base;		/* where the blocks lie, by cluster and member */
	bool direct;		/* in OUT */
};

static u64 bytes_of(const struct vandegeijn_gathering *g, u32 first, u32 count)
{
	return (g->c.before[first + count] - g->c.before[first]) * g->call->element;
}

static u64 place_of(const struct vandegeijn_gathering *g, u32 first)
{
	return g->base + g->c.before[first] * g->call->element;
}

/* Blocks count from 0 in the order of member[]; op[] has what brought each. */
static void emit_send_run(struct coll_build *b, const struct vandegeijn_gathering *g, u32 to,
			  u32 first, u32 count)
{
	u32 i, before = COLL_NONE;

	if (!bytes_of(g, first, count))
		return;
	for (i = first; i < first + count; i++) {
		if (g->c.op[i] != before)
			coll_emit_after(b, g->c.op[i]);
		before = g->c.op[i];
	}
	coll_emit_send(b, to, place_of(g, first), bytes_of(g, first, count));
}

static void emit_recv_run(struct coll_build *b, const struct vandegeijn_gathering *g, u32 from,
			  u32 first, u32 count)
{
	u32 op, i;

	if (!bytes_of(g, first, count))
		return;
	op = coll_emit_recv(b, from, place_of(g, first), bytes_of(g, first, count));
	for (i = first; i < first + count; i++)
		g->c.op[i] = op;
}

/* As many blocks of a run of `count` as travel together. */
static u32 piece_of(const struct vandegeijn_gathering *g, u32 first, u32 count)
{
	return bytes_of(g, first, count) < PIECE_BYTES ? count : 1;
}

typedef void emit_run(struct coll_build *b, const struct vandegeijn_gathering *g, u32 peer,
		      u32 first, u32 count);

/* A lane's blocks of a cluster, piece by piece. */
static void emit_lane(struct coll_build *b, const struct vandegeijn_gathering *g, emit_run *emit,
		      u32 peer, u32 cluster, u32 lane)
{
	const u32 start = g->c.first[cluster];
	u32 first = start + lane_first(&g->c, cluster, lane);
	const u32 end = start + lane_first(&g->c, cluster, lane + 1);
	const u32 piece = piece_of(g, first, end - first);

	for (; first < end; first += piece)
		emit(b, g, peer, first, piece);
}

static void emit_own(struct coll_build *b, const struct vandegeijn_gathering *g)
{
	const u32 mine = g->c.first[g->c.mine] + g->c.index;
	u32 i;

	for (i = 0; i < g->call->ranks; i++)
		g->c.op[i] = COLL_NONE;
	if (bytes_of(g, mine, 1) && !(g->direct && g->call->in_place))
		g->c.op[mine] = coll_emit_copy(b, place_of(g, mine), call_block(g->call),
					       bytes_of(g, mine, 1));
}

static void emit_ring_of_own(struct coll_build *b, const struct vandegeijn_gathering *g)
{
	const struct coll_clusters *c = &g->c;
	const u32 size = cluster_size(c, c->mine), *rank = cluster_ranks(c, c->mine);
	u32 give = c->index, step;

	for (step = 1; step < size; step++) {
		emit_send_run(b, g, rank[rank_plus(c->index, 1, size)], c->first[c->mine] + give,
			      1);
		give = rank_minus(c->index, step, size);
		emit_recv_run(b, g, rank[rank_minus(c->index, 1, size)], c->first[c->mine] + give,
			      1);
	}
}

/*
 * In levels: the gateways of my lane get each other's blocks, by what is there for the levels
 * above. A lane's blocks of a cluster are one block there.
 */
static void emit_levels(struct coll_build *b, const struct vandegeijn_gathering *g, u32 lane)
{
	const struct coll_clusters *c = &g->c;
	struct coll_call across = call_across(c, g->call, COLL_ALLGATHERV);
	struct coll_phase part = {
		.rank = coll_lane_ranks(c, lane),
		.ranks = across.ranks,
		.out = g->base,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	u32 ready, i, k;

	for (k = 0; k < c->count; k++) {
		const u32 first = c->first[k] + lane_first(c, k, lane);
		const u32 end = c->first[k] + lane_first(c, k, lane + 1);

		c->displs[k] = c->before[first];
		c->counts[k] = c->before[end] - c->before[first];
		for (i = first; i < end && k == c->mine; i++)
			part.after = emit_both(b, part.after, c->op[i]);
	}
	across.counts = c->counts;
	across.displs = c->displs;
	across.count = c->counts[c->mine];
	across.in_place = true;
	ready = coll_emit_across(b, c, NULL, &across, &part).ready;
	for (k = 0; k < c->count; k++)
		for (i = c->first[k] + lane_first(c, k, lane);
		     i < c->first[k] + lane_first(c, k, lane + 1) && k != c->mine; i++)
			c->op[i] = ready;
}

static void emit_across(struct coll_build *b, const struct vandegeijn_gathering *g)
{
	const struct coll_clusters *c = &g->c;
	const u32 lane = lane_of(c, c->mine, c->index);
	u32 i;

	if (!is_gateway(c))
		return;
	if (c->near) {
		emit_levels(b, g, lane);
		return;
	}
	for (i = 0; i < c->count; i++)
		if (i != c->mine)
			emit_lane(b, g, emit_recv_run, gateway_rank(c, i, lane), i, lane);
	for (i = 0; i < c->count; i++)
		if (i != c->mine)
			emit_lane(b, g, emit_send_run, gateway_rank(c, i, lane), c->mine, lane);
}

/* A cluster's blocks go around among those of my cluster, from its gateways on. */
static void emit_ring_of_others(struct coll_build *b, const struct vandegeijn_gathering *g,
				u32 cluster)
{
	const struct coll_clusters *c = &g->c;
	const u32 size = cluster_size(c, c->mine), *rank = cluster_ranks(c, c->mine);
	u32 step;

	for (step = 0; step + 1 < size; step++) {
		const u32 give = rank_minus(c->index, step, size);
		const u32 take = rank_minus(give, 1, size);
		const u32 out = lane_of(c, c->mine, give), in = lane_of(c, c->mine, take);

		if (gateway_index(c, c->mine, out) == give)
			emit_lane(b, g, emit_send_run, rank[rank_plus(c->index, 1, size)], cluster,
				  out);
		if (gateway_index(c, c->mine, in) == take)
			emit_lane(b, g, emit_recv_run, rank[rank_minus(c->index, 1, size)],
				  cluster, in);
	}
}

static void emit_unpack_all(struct coll_build *b, const struct vandegeijn_gathering *g)
{
	u32 i;

	if (g->direct)
		return;
	for (i = 0; i < g->call->ranks; i++) {
		const u32 rank = g->c.member[i];

		if (!bytes_of(g, i, 1) || (rank == g->call->rank && g->call->in_place))
			continue;
		coll_emit_after(b, g->c.op[i]);
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(g->call, rank)),
			       place_of(g, i), bytes_of(g, i, 1));
	}
}

static void allgather_vandegeijn_extended_emit(struct coll_build *b, const struct coll_call *call,
					       const struct coll_tuning *tuning)
{
	struct vandegeijn_gathering g = {
		.c = coll_clusters_make(b, call, tuning),
		.call = call,
		.base = COLL_ADDRESS(COLL_OUT, 0),
		.direct = coll_clusters_are_runs(call) && coll_blocks_packed(call),
	};
	u32 i;

	coll_order_blocks(&g.c, call);
	if (!g.direct)
		g.base = coll_emit_scratch(b, bytes_of(&g, 0, call->ranks));
	emit_own(b, &g);
	emit_ring_of_own(b, &g);
	emit_across(b, &g);
	for (i = 0; i < g.c.count; i++)
		if (i != g.c.mine)
			emit_ring_of_others(b, &g, i);
	emit_unpack_all(b, &g);
}

static double allgather_vandegeijn_extended_cost(const struct coll_call *call,
						 const struct coll_tuning *tuning,
						 const struct coll_machine *m)
{
	const double p = call->ranks, k = coll_clusters_count(call), n = blocks_bytes(call, 0, p);
	const double ring = (p - 1) / p * n * m->beta;
	const double messages = (p / k + k * coll_clusters_lanes(call, tuning)) * m->alpha;
	/* Each rank but one of a cluster passes each piece on. */
	const double passed = (1 - k / p) * (p / k + (k - 1) * coll_clusters_lanes(call, tuning)) * m->alpha;

	if (call->ranks == 1)
		return 0;
	return coll_across_alpha(call, m) +
	       overlap_cost(coll_across_cost(call, tuning, m, n / k * (k > 1)),
			    phases_inside_cost(call, m, ring, (1 - k / p) * n * m->beta), p / k) +
	       phases_inside_cost(call, m, messages, passed);
}

const struct coll_algo coll_allgather_vandegeijn_extended = {
	.collective = COLL_ALLGATHER,
	.name = "vandegeijn-extended",
	.about = "rings inside, n gateways exchange across what goes around there: all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = allgather_vandegeijn_extended_cost,
	.emit = allgather_vandegeijn_extended_emit,
};

const struct coll_algo coll_allgatherv_vandegeijn_extended = {
	.collective = COLL_ALLGATHERV,
	.name = "vandegeijn-extended",
	.about = "rings inside, n gateways exchange across what goes around there: all overlap",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = allgather_vandegeijn_extended_cost,
	.emit = allgather_vandegeijn_extended_emit,
};
