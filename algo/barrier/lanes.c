// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels: the ranks of a node meet, then each of k ranks tells its like on
 * another node, at k different distances, and the ranks of a node meet again: a dissemination of
 * nodes with radix k + 1. For N nodes of k ranks with R = log(N) / log(k + 1), rounded up,
 *
 *	R alpha + (R + 1) log2(k) alpha_node
 */
#include "algo/common/levels.h"

/* The rank of my lane tells the node so far above, and hears from the one so far below. */
static u32 emit_round(struct coll_build *b, const struct coll_clusters *c, u32 lane, u64 distance,
		      u32 ready)
{
	const u32 to = rank_plus(c->mine, distance, c->count);
	const u32 from = rank_minus(c->mine, distance, c->count);
	const u32 heard = coll_emit_recv(b, gateway_rank(c, from, lane),
					 COLL_ADDRESS(COLL_SCRATCH, 0), 0);

	coll_emit_after(b, ready);
	coll_emit_send(b, gateway_rank(c, to, lane), COLL_ADDRESS(COLL_SCRATCH, 0), 0);
	return emit_both(b, ready, heard);
}

static void barrier_lanes_emit(struct coll_build *b, const struct coll_call *call,
			       const struct coll_tuning *tuning)
{
	const struct coll_call view = coll_nodes_view(call, false);
	const struct coll_clusters c = coll_clusters_make(b, &view, tuning);
	const struct coll_algo *inside = coll_algo_find(COLL_BARRIER, "dissemination");
	const struct coll_call near = call_inside(&c, &view, COLL_BARRIER);
	const u32 lane = is_gateway(&c) ? lane_of(&c, c.mine, c.index) : c.lanes;
	struct coll_phase part = {
		.rank = cluster_ranks(&c, c.mine),
		.ranks = near.ranks,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	u64 known;	/* nodes, mine and those below it */

	part.after = coll_emit_phase(b, inside, &near, &part).ready;
	for (known = 1; known < c.count; known *= c.lanes + 1) {
		if (lane < c.lanes && (lane + 1) * known < c.count)
			part.after = emit_round(b, &c, lane, (lane + 1) * known, part.after);
		part.after = coll_emit_phase(b, inside, &near, &part).ready;
	}
}

static double barrier_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				 const struct coll_machine *m)
{
	const struct coll_call view = coll_nodes_view(call, false);
	const double lanes = coll_clusters_lanes(&view, tuning);
	double inside, rounds = 0, known, work = coll_wire_work(m);

	if (call->ranks == 1 || !call->levels)
		return 0;
	inside = log2_ceil(view.near->largest) * coll_inside_cost(m, view.near->kind).alpha;
	for (known = 1; known < view.clusters; known *= lanes + 1)
		rounds++;
	if (m->crowding <= 1 && work > m->alpha)	/* nobody else's work waits for it */
		work = m->alpha;
	return rounds * (m->alpha > work ? m->alpha - work : 0) + (rounds + (rounds + 1) * log2_ceil(view.near->largest)) *
				       coll_machine_shared(call, m).core_delay +
	       symmetric_cost(call, m, rounds * work + (rounds + 1) * inside);
}

const struct coll_algo coll_barrier_lanes = {
	.collective = COLL_BARRIER,
	.name = "lanes",
	.about = "inside each node, each rank tells another node, inside again: radix k + 1",
	.ordered = true,
	.levels = true,
	.regular = COLL_REGULAR_NODES,
	.refuses = coll_nodes_refuse,
	.cost = barrier_lanes_cost,
	.emit = barrier_lanes_emit,
};
