// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Alltoall by gateways: blocks for another cluster are collected by the n gateways, cross in few
 * messages, and are distributed there. The fewest messages: for short blocks, and for all blocks
 * where n = p.
 *
 *	A + p q m B_wan + ((p/n - 1) q + (p-1) q/n) m beta + (p-1) m beta
 *
 * for clusters of p and q ranks and blocks of m bytes: crossing, collecting, distributing, and
 * the blocks inside. One way across and n full streams cost two extra ways inside for each
 * byte, except for a gateway's own.
 *
 * A lane's blocks to a cluster are sorted by target, so that each target's are contiguous. Long
 * ones cross target by target, and are distributed while others cross.
 */
#include "algo/common/exchange.h"
#include "algo/common/levels.h"

enum { PIECE_BYTES = 1 << 15 };	/* a target's blocks that are less are not sent alone */

struct gateways {
	struct coll_exchange x;
	u64 block;		/* bytes of one */
	u32 lane;		/* mine */
};

static u32 lane_size(const struct coll_clusters *c, u32 cluster, u32 lane)
{
	return lane_first(c, cluster, lane + 1) - lane_first(c, cluster, lane);
}

/* Whether some members of a cluster have consecutive ranks. */
static bool is_run(const u32 *rank, u32 count)
{
	return rank[count - 1] - rank[0] == count - 1;
}

/* Targets whose blocks from one lane cross together. */
static u32 piece_of(const struct gateways *g, u32 sources, u32 targets)
{
	return sources * g->block * targets < PIECE_BYTES ? targets : 1;
}

/*
 * My blocks to another cluster, `stride` apart from `place` on: the copies that
 * bring them there. The last of them ends all.
 */
static u32 emit_pack_mine(struct coll_build *b, const struct gateways *g, u32 cluster, u64 place,
			  u64 stride)
{
	const struct coll_clusters *c = &g->x.c;
	const u32 *rank = cluster_ranks(c, cluster);
	u32 packed = COLL_NONE, i;

	for (i = 0; i < cluster_size(c, cluster); i++) {
		coll_emit_after(b, packed);
		packed = coll_emit_copy(b, place + i * stride, block_to(g->x.call, rank[i]).place,
					g->block);
		c->op[rank[i]] = packed;
	}
	return packed;
}

/* Hands my gateway my blocks to another cluster. */
static void emit_hand_up(struct coll_build *b, const struct gateways *g, u32 cluster)
{
	const struct coll_clusters *c = &g->x.c;
	const u32 *rank = cluster_ranks(c, cluster), size = cluster_size(c, cluster);
	const u32 to = gateway_rank(c, c->mine, g->lane);
	u64 place = block_to(g->x.call, rank[0]).place;
	u32 packed = COLL_NONE, sent, i;

	if (!is_run(rank, size)) {
		place = coll_emit_scratch(b, size * g->block);
		packed = emit_pack_mine(b, g, cluster, place, g->block);
	}
	coll_emit_after(b, packed);
	sent = coll_emit_send(b, to, place, size * g->block);
	for (i = 0; i < size && packed == COLL_NONE; i++)
		c->op[rank[i]] = sent;
}

/*
 * A gateway collects what its lane sends to a cluster, by target and source, at
 * `place`. Returns the op after which it is there.
 */
static u32 emit_collect(struct coll_build *b, const struct gateways *g, u32 cluster, u64 place)
{
	const struct coll_clusters *c = &g->x.c;
	const u32 targets = cluster_size(c, cluster), sources = lane_size(c, c->mine, g->lane);
	const u32 first = lane_first(c, c->mine, g->lane);
	u32 all = COLL_NONE, i, k;

	for (i = 0; i + 1 < sources; i++) {
		const u64 row = coll_emit_scratch(b, targets * g->block);
		const u32 come = coll_emit_recv(b, cluster_ranks(c, c->mine)[first + i], row,
						targets * g->block);
		u32 moved = come;

		for (k = 0; k < targets; k++) {
			coll_emit_after(b, moved);
			moved = coll_emit_copy(b, place + (k * sources + i) * g->block,
					       row + k * g->block, g->block);
		}
		all = emit_both(b, all, moved);
	}
	return emit_both(b, all, emit_pack_mine(b, g, cluster, place + i * g->block,
						sources * g->block));
}

/* What came from another cluster's lane for me lies at `place` once `come` is done. */
static void emit_take_column(struct coll_build *b, const struct gateways *g, u32 cluster, u32 lane,
			     u64 place, u32 come)
{
	const struct coll_clusters *c = &g->x.c;
	const u32 *rank = cluster_ranks(c, cluster) + lane_first(c, cluster, lane);
	u32 i;

	for (i = 0; i < lane_size(c, cluster, lane); i++) {
		coll_emit_after(b, come);
		if (g->x.call->in_place)
			coll_emit_after(b, c->op[rank[i]]);
		coll_emit_copy(b, block_from(g->x.call, rank[i]).place, place + i * g->block,
			       g->block);
	}
}

/* A gateway exchanges with that of another cluster, and hands out what comes. */
static void emit_cross(struct coll_build *b, const struct gateways *g, u32 cluster)
{
	const struct coll_clusters *c = &g->x.c;
	const u32 far = gateway_rank(c, cluster, g->lane), *rank = cluster_ranks(c, c->mine);
	const u32 mine = cluster_size(c, c->mine), theirs = cluster_size(c, cluster);
	const u64 out = lane_size(c, c->mine, g->lane) * g->block;
	const u64 in = lane_size(c, cluster, g->lane) * g->block;
	const u64 up = coll_emit_scratch(b, theirs * out), down = coll_emit_scratch(b, mine * in);
	const u32 collected = emit_collect(b, g, cluster, up);
	u32 piece = piece_of(g, lane_size(c, c->mine, g->lane), theirs), i, k;

	for (i = 0; i < theirs; i += piece) {
		coll_emit_after(b, collected);
		coll_emit_send(b, far, up + i * out, piece * out);
	}
	piece = piece_of(g, lane_size(c, cluster, g->lane), mine);
	for (i = 0; i < mine; i += piece) {
		const u32 come = coll_emit_recv(b, far, down + i * in, piece * in);

		for (k = i; k < i + piece; k++) {
			if (k == c->index) {
				emit_take_column(b, g, cluster, g->lane, down + k * in, come);
				continue;
			}
			coll_emit_after(b, come);
			coll_emit_send(b, rank[k], down + k * in, in);
		}
	}
}

/* From my cluster's gateways what came to me from another cluster. */
static void emit_hand_down(struct coll_build *b, const struct gateways *g, u32 cluster)
{
	const struct coll_clusters *c = &g->x.c;
	u32 lane;

	for (lane = 0; lane < c->lanes; lane++) {
		const u32 from = gateway_rank(c, c->mine, lane),
			  count = lane_size(c, cluster, lane);
		const u32 *rank = cluster_ranks(c, cluster) + lane_first(c, cluster, lane);
		u64 place;

		if (from == g->x.call->rank)
			continue;
		if (!g->x.call->in_place && is_run(rank, count)) {
			coll_emit_recv(b, from, block_from(g->x.call, rank[0]).place,
				       count * g->block);
			continue;
		}
		place = coll_emit_scratch(b, count * g->block);
		emit_take_column(b, g, cluster, lane, place,
				 coll_emit_recv(b, from, place, count * g->block));
	}
}

static void alltoall_gateways_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	struct gateways g = {
		.x = { .c = coll_clusters_make(b, call, tuning), .call = call },
		.block = call_bytes(call),
	};
	u32 distance;

	if (!g.block)
		return;
	g.lane = lane_of(&g.x.c, g.x.c.mine, g.x.c.index);
	coll_emit_exchange_inside(b, &g.x);
	/* Each begins with the next cluster: else all would send to the first one, then to the second. */
	for (distance = 1; distance < g.x.c.count; distance++) {
		const u32 k = rank_plus(g.x.c.mine, distance, g.x.c.count);

		if (is_gateway(&g.x.c))
			emit_cross(b, &g, k);
		else
			emit_hand_up(b, &g, k);
		emit_hand_down(b, &g, k);
	}
}

/* Of a message across; m->overhead is its ends'. */
static double across_work(const struct coll_call *call, const struct coll_machine *m)
{
	struct coll_machine across = *m;

	across.alpha = coll_across_alpha(call, m);
	return coll_wire_work(&across);
}

/* A rank's mean share of the work of all: messages inside, and `messages` of each gateway to each other cluster. */
static double gateways_share(const struct coll_call *call, const struct coll_machine *m, double lanes,
			     double messages)
{
	const double n = call_bytes(call), p = coll_clusters_largest(call), q = call->ranks - p;
	const double others = coll_clusters_count(call) - 1;
	const double inside = p * (p - 1) + others * (p - lanes + lanes * (p - 1));
	const double bytes = (p * (p - 1) + (p - lanes) * q + (p - 1) * q) * n;

	return (inside * message_work(m) + bytes * (m->copied ? m->beta : byte_work(m, m->beta)) +
		lanes * others * messages * across_work(call, m) + p * q * n * byte_work(m, m->wan_beta)) / p;
}

/*
 * While what crosses is on its way, blocks inside are exchanged, and where ranks share cores others have them. Of a
 * message inside, half is its sender's, half its receiver's: gateways collect, and hand out what comes from each
 * other cluster.
 */
static double alltoall_gateways_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	const double n = call_bytes(call), p = coll_clusters_largest(call), q = call->ranks - p;
	const double lanes = coll_clusters_lanes(call, tuning), others = coll_clusters_count(call) - 1;
	const double messages = p / lanes * p * n < PIECE_BYTES ? 1 : p;
	const double near = (p - 1) * (m->alpha + n * m->beta);
	double flight, busy;

	if (call->ranks == 1)
		return 0;
	if (!others)
		return near;
	flight = coll_across_alpha(call, m) + coll_across_cost(call, tuning, m, p * q * n) - across_work(call, m);
	busy = across_work(call, m) + (others * messages - 1) * m->overhead +
	       others * (p / lanes - 1 + p - 1) / 2 * message_work(m) + m->alpha +
	       (p / lanes - 1 + (p - 1) / lanes) * q * n * (m->beta + m->gamma);
	return (flight > near ? flight : near) +
	       crowded_cost(call, m, busy, gateways_share(call, m, lanes, messages));
}

const struct coll_algo coll_alltoall_gateways = {
	.collective = COLL_ALLTOALL,
	.name = "gateways",
	.about = "n gateways collect what goes across and hand out what comes: few messages",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = alltoall_gateways_cost,
	.emit = alltoall_gateways_emit,
};
