// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Gather by rendezvous (paper 2): a rank sends its block when the root asks for it, so that blocks
 * do not all arrive at once. Of each other cluster n ranks send at a time, of the root's own a
 * few: the first ones unasked, each further one when an earlier block has arrived. The request
 * is a message without bytes.
 *
 *	A + p n beta			if n lanes fill the root's link, else
 *	(p / lanes) (2 A + n beta)	for a far cluster of p ranks and blocks of n bytes
 *
 * Only the root needs counts.
 */
#include "algo/common/clusters.h"

enum { NEAR_LANES = 2 };	/* one sends while the other is asked */

static u32 lanes_of(const struct coll_clusters *c, const struct coll_call *call, u32 cluster)
{
	return cluster == cluster_of(call, call->root) ? NEAR_LANES : c->lanes;
}

/* Which of those of its cluster that send a rank is. */
static u32 turn_of(const struct coll_clusters *c, const struct coll_call *call, u32 cluster,
		   u32 index)
{
	const u32 root = call->root;

	return index - (cluster == cluster_of(call, root) &&
			index > coll_cluster_index(c, cluster, root));
}

static void emit_sender(struct coll_build *b, const struct coll_clusters *c,
			const struct coll_call *call)
{
	if (!call_bytes(call))
		return;
	if (turn_of(c, call, c->mine, c->index) >= lanes_of(c, call, c->mine))
		coll_emit_after(b, coll_emit_recv(b, call->root, COLL_ADDRESS(COLL_SCRATCH, 0), 0));
	coll_emit_send(b, call->root, COLL_ADDRESS(COLL_IN, 0), call_bytes(call));
}

/* One after the other, so that those of the lane are asked in turn. */
static void emit_lane(struct coll_build *b, const struct coll_clusters *c,
		      const struct coll_call *call, u32 cluster, u32 lane)
{
	const u32 lanes = lanes_of(c, call, cluster), *rank = cluster_ranks(c, cluster);
	u32 come = COLL_NONE, i;

	for (i = 0; i < cluster_size(c, cluster); i++) {
		const u64 bytes = block_bytes(call, rank[i]);
		const u32 turn = turn_of(c, call, cluster, i);

		if (rank[i] == call->root || turn % lanes != lane || !bytes)
			continue;
		if (turn >= lanes) {
			coll_emit_after(b, come);
			coll_emit_send(b, rank[i], COLL_ADDRESS(COLL_SCRATCH, 0), 0);
		}
		come = coll_emit_recv(b, rank[i],
				      COLL_ADDRESS(COLL_OUT, block_offset(call, rank[i])), bytes);
	}
}

static void gather_rendezvous_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u64 own = block_bytes(call, call->rank);
	u32 k, lane;

	if (call->rank != call->root) {
		emit_sender(b, &c, call);
		return;
	}
	if (!call->in_place && own)
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, call->rank)),
			       COLL_ADDRESS(COLL_IN, 0), own);
	for (k = 0; k < c.count; k++)
		for (lane = 0; lane < lanes_of(&c, call, k); lane++)
			emit_lane(b, &c, call, k, lane);
}

static double gather_rendezvous_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	const double n = call->collective == COLL_GATHERV ? 0 : call_bytes(call);
	const double p = coll_clusters_smallest(call), lanes = coll_clusters_lanes(call, tuning);
	const double far =
		coll_across_alpha(call, m) +
		(p > lanes ? (p / lanes - 1) * 2 * coll_across_alpha(call, m) : 0) +
		p * n *
			(coll_across_beta(m, lanes) > m->beta ? coll_across_beta(m, lanes)
							      : m->beta);
	const double all = (call->ranks - 1) * (m->alpha / NEAR_LANES + n * m->beta);

	if (call->ranks == 1)
		return 0;
	return far > all ? far : all;
}

const struct coll_algo coll_gather_rendezvous = {
	.collective = COLL_GATHER,
	.name = "rendezvous",
	.about = "the root asks for each block: n at a time from far, a few from near",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = gather_rendezvous_cost,
	.emit = gather_rendezvous_emit,
};

const struct coll_algo coll_gatherv_rendezvous = {
	.collective = COLL_GATHERV,
	.name = "rendezvous",
	.about = "the root asks for each block: n at a time from far, a few from near",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = gather_rendezvous_cost,
	.emit = gather_rendezvous_emit,
};
