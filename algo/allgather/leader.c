// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By leaders, for nested levels: each node gathers its blocks at its leader, the leaders exchange
 * the nodes' blocks, and each broadcasts all of them to its node: the fewest messages, for short
 * blocks. For N nodes of k ranks, and n bytes in all
 *
 *	2 log2(k) alpha_node + log2(N) alpha + n (beta + log2(k) beta_node)
 *
 * Blocks lie by node and member: in OUT if that is their order there, else in scratch.
 */
#include "algo/common/area.h"
#include "algo/common/levels.h"

struct leader_gathering {
	struct coll_clusters c;
	const struct coll_call *call;	/* the view */
	u64 base;		/* where the blocks lie */
	bool direct;		/* in OUT */
};

static u64 part_place(const struct leader_gathering *g, u32 part)
{
	return g->base + g->c.before[g->c.first[part]] * g->call->element;
}

/* The blocks of my node, at its leader. */
static struct coll_phase_end emit_inside(struct coll_build *b, const struct leader_gathering *g)
{
	const struct coll_clusters *c = &g->c;
	const u64 *before = c->before + c->first[c->mine];
	struct coll_call inside = call_inside(c, g->call, COLL_GATHERV);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.in = call_block(g->call),
		.out = part_place(g, c->mine),
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	u32 i;

	for (i = 0; i < inside.ranks; i++) {
		c->counts[i] = before[i + 1] - before[i];
		c->displs[i] = before[i] - before[0];
	}
	inside.counts = c->counts;
	inside.displs = c->displs;
	inside.count = c->counts[inside.rank];
	inside.in_place = g->call->in_place && g->direct && !c->index;
	return coll_emit_phase(b, coll_algo_find(COLL_GATHERV, "binomial"), &inside, &part);
}

static u32 emit_across(struct coll_build *b, const struct leader_gathering *g, u32 after)
{
	const struct coll_clusters *c = &g->c;
	struct coll_call across = call_across(c, g->call, COLL_ALLGATHERV);
	const struct coll_phase part = {
		.rank = coll_head_ranks(c, g->call, 0),
		.ranks = across.ranks,
		.out = g->base,
		.after = after,
		.recv_after = COLL_NONE,
	};
	u32 k;

	for (k = 0; k < c->count; k++) {
		c->displs[k] = c->before[c->first[k]];
		c->counts[k] = c->before[c->first[k + 1]] - c->displs[k];
	}
	across.counts = c->counts;
	across.displs = c->displs;
	across.count = c->counts[c->mine];
	across.in_place = true;
	return coll_emit_across(b, c, NULL, &across, &part).ready;
}

static u32 emit_spread(struct coll_build *b, const struct leader_gathering *g, u32 after,
		       u32 recv_after)
{
	struct coll_call inside = call_inside(&g->c, g->call, COLL_BCAST);
	const struct coll_phase part = {
		.rank = cluster_ranks(&g->c, g->c.mine),
		.ranks = inside.ranks,
		.out = g->base,
		.after = after,
		.recv_after = recv_after,
	};

	inside.count = g->c.before[g->call->ranks];
	return coll_emit_phase(b, coll_bcast_inside(&inside), &inside, &part).ready;
}

static void emit_unpack_all(struct coll_build *b, const struct leader_gathering *g, u32 ready)
{
	const struct coll_call *call = g->call;
	u32 i;

	for (i = 0; i < call->ranks && !g->direct; i++) {
		const u32 rank = g->c.member[i];

		if (!block_bytes(call, rank) || (rank == call->rank && call->in_place))
			continue;
		coll_emit_after(b, ready);
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, rank)),
			       g->base + g->c.before[i] * call->element, block_bytes(call, rank));
	}
}

static void allgather_leader_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const struct coll_call view = coll_levels_view(call, true);
	struct leader_gathering g = {
		.c = coll_clusters_make(b, &view, tuning),
		.call = &view,
		.base = COLL_ADDRESS(COLL_OUT, 0),
		.direct = coll_clusters_are_runs(&view) && coll_blocks_packed(call),
	};
	struct coll_phase_end inside;
	u32 ready, unread;

	if (call->ranks == 1) {
		if (!call->in_place && call_bytes(call))
			coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, 0)),
				       call_block(call), call_bytes(call));
		return;
	}
	coll_order_blocks(&g.c, &view);
	if (!g.direct)
		g.base = coll_emit_scratch(b, g.c.before[call->ranks] * call->element);
	inside = emit_inside(b, &g);
	/* My block in OUT is not overwritten before it has been sent. */
	unread = emit_both(b, inside.ready, inside.sent);
	ready = COLL_NONE;
	if (!g.c.index)
		ready = emit_both(b, emit_across(b, &g, inside.ready), inside.ready);
	ready = emit_spread(b, &g, ready, unread);
	emit_unpack_all(b, &g, emit_both(b, ready, inside.ready));
}

static double inside_cost(const struct coll_call *view, const struct coll_tuning *tuning,
			  const struct coll_machine *near)
{
	const double n = blocks_bytes(view, 0, view->ranks), once = near->alpha + n * near->beta;
	struct coll_call inside = *view;

	inside.near = NULL;
	inside.cluster = NULL;
	inside.rank = inside.root = 0;
	inside.ranks = view->near->largest;
	inside.counts = inside.displs = NULL;
	inside.count = n / view->element / view->ranks;
	inside.collective = COLL_GATHER;
	return coll_algo_find(COLL_GATHER, "binomial")->cost(&inside, tuning, near) +
	       crowded_cost(&inside, near, log2_ceil(inside.ranks) * once, tree_share(&inside, once)) +
	       (view->near->runs ? 0 : n * near->gamma);
}

static double allgather_leader_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	return coll_levels_cost_of(call, tuning, m, inside_cost, true);
}

const struct coll_algo coll_allgather_leader = {
	.collective = COLL_ALLGATHER,
	.name = "leader",
	.about = "gather at one leader a node, allgather of the leaders, broadcast inside",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = allgather_leader_cost,
	.emit = allgather_leader_emit,
};

const struct coll_algo coll_allgatherv_leader = {
	.collective = COLL_ALLGATHERV,
	.name = "leader",
	.about = "gather at one leader a node, allgather of the leaders, broadcast inside",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = coll_levels_refuse,
	.cost = allgather_leader_cost,
	.emit = allgather_leader_emit,
};
