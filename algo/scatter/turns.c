// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Scatter in turns (paper 2): the root sends each rank its block; to each other cluster n blocks at
 * a time, to its own a few. A far rank confirms its block by a message without bytes where
 * other ranks wait for that.
 *
 *	A + p n beta			if n lanes fill the root's link, else
 *	(p / lanes) (2 A + n beta)	for a far cluster of p ranks and blocks of n bytes
 *
 * Only the root needs counts.
 */
#include "algo/common/clusters.h"

enum { NEAR_LANES = 2 };

/* Whether the root waits to hear that a block has come there. */
static bool scatter_turns_answers(const struct coll_clusters *c, const struct coll_call *call,
				  u32 cluster)
{
	return cluster != cluster_of(call, call->root) && cluster_size(c, cluster) > c->lanes;
}

static void emit_receiver(struct coll_build *b, const struct coll_clusters *c,
			  const struct coll_call *call)
{
	u32 come;

	if (!call_bytes(call))
		return;
	come = coll_emit_recv(b, call->root, COLL_ADDRESS(COLL_OUT, 0), call_bytes(call));
	if (!scatter_turns_answers(c, call, c->mine))
		return;
	coll_emit_after(b, come);
	coll_emit_send(b, call->root, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

static void emit_lane(struct coll_build *b, const struct coll_clusters *c,
		      const struct coll_call *call, u32 cluster, u32 lane, u32 lanes)
{
	const u32 *rank = cluster_ranks(c, cluster);
	u32 done = COLL_NONE, i;

	for (i = lane; i < cluster_size(c, cluster); i += lanes) {
		const u64 bytes = block_bytes(call, rank[i]);

		if (rank[i] == call->root || !bytes)
			continue;
		coll_emit_after(b, done);
		done = coll_emit_send(b, rank[i],
				      COLL_ADDRESS(COLL_IN, block_offset(call, rank[i])), bytes);
		if (scatter_turns_answers(c, call, cluster))
			done = coll_emit_recv(b, rank[i], COLL_ADDRESS(COLL_SCRATCH, 0), 0);
	}
}

/* What goes far goes first: it takes longer. */
static void scatter_turns_emit(struct coll_build *b, const struct coll_call *call,
			       const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u64 own = block_bytes(call, call->rank);
	u32 k, lane;

	if (call->rank != call->root) {
		emit_receiver(b, &c, call);
		return;
	}
	for (lane = 0; lane < c.lanes; lane++)
		for (k = 0; k < c.count; k++)
			if (k != c.mine)
				emit_lane(b, &c, call, k, lane, c.lanes);
	for (lane = 0; lane < NEAR_LANES; lane++)
		emit_lane(b, &c, call, c.mine, lane, NEAR_LANES);
	if (!call->in_place && own)
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0),
			       COLL_ADDRESS(COLL_IN, block_offset(call, call->rank)), own);
}

static double scatter_turns_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				 const struct coll_machine *m)
{
	const double n = call->collective == COLL_SCATTERV ? 0 : call_bytes(call);
	const double p = coll_clusters_largest(call), lanes = coll_clusters_lanes(call, tuning);
	const double turns = p > lanes ? p / lanes - 1 : 0;

	if (call->ranks == 1)
		return 0;
	return (1 + 2 * turns) * coll_across_alpha(call, m) +
	       (call->ranks - 1) * (m->alpha / NEAR_LANES + n * m->beta);
}

const struct coll_algo coll_scatter_turns = {
	.collective = COLL_SCATTER,
	.name = "turns",
	.about = "the root sends each block in turn: n at a time to far, a few to near",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = scatter_turns_cost,
	.emit = scatter_turns_emit,
};

const struct coll_algo coll_scatterv_turns = {
	.collective = COLL_SCATTERV,
	.name = "turns",
	.about = "the root sends each block in turn: n at a time to far, a few to near",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = scatter_turns_cost,
	.emit = scatter_turns_emit,
};
