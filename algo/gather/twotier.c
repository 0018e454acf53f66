// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers: each cluster gathers at its head, which sends the root all blocks in one message: one
 * way across and the fewest messages, for short blocks.
 *
 *	A + p n beta	for a far cluster of p ranks and blocks of n bytes
 */
#include "algo/common/area.h"
#include "algo/common/clusters.h"

struct gather_tiers {
	struct coll_clusters c;
	const struct coll_call *call;
	bool direct;		/* the root's OUT has the blocks by cluster and member */
	u64 base;		/* the root's place for them */
};

static u64 cluster_place(const struct gather_tiers *t, u32 cluster)
{
	return t->base + t->c.before[t->c.first[cluster]] * t->call->element;
}

/* At the head, all of its cluster. */
static u32 emit_inside(struct coll_build *b, const struct gather_tiers *t, u32 head, u64 place)
{
	const struct coll_clusters *c = &t->c;
	const struct coll_call *call = t->call;
	struct coll_call inside = coll_call_inside_v(c, call, head);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.in = call_block(call),
		.out = place,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};

	inside.in_place = call->in_place && t->direct;
	return coll_emit_phase(b, call->collective == COLL_GATHERV ? coll_algo_find(COLL_GATHERV, "binomial") :
							       coll_algo_find(COLL_GATHER, "binomial"),
			       &inside, &part).ready;
}

static void emit_unpack_cluster(struct coll_build *b, const struct gather_tiers *t, u32 cluster,
				u32 ready)
{
	const struct coll_call *call = t->call;
	u32 i;

	for (i = t->c.first[cluster]; i < t->c.first[cluster + 1] && !t->direct; i++) {
		const u32 rank = t->c.member[i];

		if (!block_bytes(call, rank) || (rank == call->rank && call->in_place))
			continue;
		coll_emit_after(b, ready);
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, rank)),
			       t->base + t->c.before[i] * call->element, block_bytes(call, rank));
	}
}

static void emit_root(struct coll_build *b, const struct gather_tiers *t, u32 inside)
{
	const u32 *head = coll_head_ranks(&t->c, t->call, t->call->root);
	u32 k;

	for (k = 0; k < t->c.count; k++) {
		const u64 bytes = coll_cluster_bytes(&t->c, t->call, k);
		u32 ready = inside;

		if (k != t->c.mine && bytes)
			ready = coll_emit_recv(b, head[k], cluster_place(t, k), bytes);
		emit_unpack_cluster(b, t, k, ready);
	}
}

/* In levels: the heads' blocks of their clusters, by what is there for the levels above. */
static void emit_heads(struct coll_build *b, const struct gather_tiers *t, u64 place, u32 inside)
{
	const struct coll_clusters *c = &t->c;
	const bool root = t->call->rank == t->call->root;
	struct coll_call across = call_across(c, t->call, COLL_GATHERV);
	const struct coll_phase part = {
		.rank = coll_head_ranks(c, t->call, t->call->root),
		.ranks = across.ranks,
		.in = place,
		.out = t->base,
		.after = inside,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end end;
	u32 k;

	for (k = 0; k < c->count; k++) {
		c->displs[k] = c->before[c->first[k]];
		c->counts[k] = c->before[c->first[k + 1]] - c->displs[k];
	}
	across.root = cluster_of(t->call, t->call->root);
	across.counts = c->counts;
	across.displs = c->displs;
	across.count = c->counts[c->mine];
	across.in_place = root;
	end = coll_emit_across(b, c, NULL, &across, &part);
	for (k = 0; k < c->count && root; k++)
		emit_unpack_cluster(b, t, k, emit_both(b, end.ready, inside));
}

static void gather_twotier_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	struct gather_tiers t = {
		.c = coll_clusters_make(b, call, tuning),
		.call = call,
		.base = COLL_ADDRESS(COLL_OUT, 0),
	};
	const bool root = call->rank == call->root;
	const u32 head = coll_head_index(&t.c, call, call->root);
	u64 place;
	u32 ready;

	coll_order_blocks(&t.c, call);
	t.direct = root && coll_clusters_are_runs(call) && coll_blocks_packed(call);
	if (root && !t.direct)
		t.base = coll_emit_scratch(b, t.c.before[call->ranks] * call->element);
	place = root ? cluster_place(&t, t.c.mine)
		     : coll_emit_scratch(
			       b, t.c.index == head ? coll_cluster_bytes(&t.c, call, t.c.mine) : 0);
	ready = emit_inside(b, &t, head, place);
	if (t.c.near) {
		if (t.c.index == head)
			emit_heads(b, &t, place, ready);
	} else if (root) {
		emit_root(b, &t, ready);
	} else if (t.c.index == head && t.c.mine != cluster_of(call, call->root) &&
		   coll_cluster_bytes(&t.c, call, t.c.mine)) {
		coll_emit_after(b, ready);
		coll_emit_send(b, call->root, place, coll_cluster_bytes(&t.c, call, t.c.mine));
	}
}

static double gather_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const struct coll_tuning one = { .lanes = 1 };
	const double p = coll_clusters_largest(call), n = blocks_bytes(call, 0, call->ranks);
	struct coll_call inside = *call;

	if (call->ranks == 1)
		return 0;
	inside.cluster = NULL;
	inside.ranks = p;
	inside.root = 0;
	return coll_algo_find(COLL_GATHER, "binomial")->cost(&inside, tuning, m) + coll_across_alpha(call, m) +
	       coll_across_cost(call, &one, m, n * (1 - p / call->ranks)) + n * m->gamma;
}

const struct coll_algo coll_gather_twotier = {
	.collective = COLL_GATHER,
	.name = "twotier",
	.about = "gather inside each cluster, one message across: short blocks",
	.ordered = true,
	.clusters = true,
	.cost = gather_twotier_cost,
	.emit = gather_twotier_emit,
};

const struct coll_algo coll_gatherv_twotier = {
	.collective = COLL_GATHERV,
	.name = "twotier",
	.about = "gather inside each cluster, one message across: short blocks",
	.ordered = true,
	.clusters = true,
	.needs_counts = true,
	.cost = gather_twotier_cost,
	.emit = gather_twotier_emit,
};
