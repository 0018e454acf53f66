// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers: the root sends the head of each cluster all blocks of that cluster in one message, and
 * each cluster scatters: one way across and the fewest messages, for short blocks.
 *
 *	A + p n beta	for a far cluster of p ranks and blocks of n bytes
 */
#include "algo/common/area.h"
#include "algo/common/clusters.h"

struct scatter_tiers {
	struct coll_clusters c;
	const struct coll_call *call;
	bool direct;		/* the root's IN has the blocks by cluster and member */
	u64 base;		/* the root's place for them */
};

/* Where the root has a cluster's blocks one after the other, once *ready is done. */
static u64 emit_pack_cluster(struct coll_build *b, const struct scatter_tiers *t, u32 cluster,
			     u32 *ready)
{
	const struct coll_call *call = t->call;
	u32 i;

	*ready = COLL_NONE;
	for (i = t->c.first[cluster]; i < t->c.first[cluster + 1] && !t->direct; i++) {
		const u32 rank = t->c.member[i];

		if (!block_bytes(call, rank))
			continue;
		coll_emit_after(b, *ready);
		*ready = coll_emit_copy(b, t->base + t->c.before[i] * call->element,
					COLL_ADDRESS(COLL_IN, block_offset(call, rank)),
					block_bytes(call, rank));
	}
	return t->base + t->c.before[t->c.first[cluster]] * call->element;
}

static void emit_far(struct coll_build *b, const struct scatter_tiers *t)
{
	const u32 *head = coll_head_ranks(&t->c, t->call, t->call->root);
	u32 k, ready;

	for (k = 0; k < t->c.count; k++) {
		u64 place;

		if (k == t->c.mine || !coll_cluster_bytes(&t->c, t->call, k))
			continue;
		place = emit_pack_cluster(b, t, k, &ready);
		coll_emit_after(b, ready);
		coll_emit_send(b, head[k], place, coll_cluster_bytes(&t->c, t->call, k));
	}
}

/* In levels: each head gets its cluster's blocks, by what is there for the levels above. */
static u32 emit_heads(struct coll_build *b, const struct scatter_tiers *t, u64 place)
{
	const struct coll_clusters *c = &t->c;
	const bool root = t->call->rank == t->call->root;
	struct coll_call across = call_across(c, t->call, COLL_SCATTERV);
	struct coll_phase part = {
		.rank = coll_head_ranks(c, t->call, t->call->root),
		.ranks = across.ranks,
		.in = t->base,
		.out = place,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};
	u32 k, ready;

	for (k = 0; k < c->count; k++) {
		c->displs[k] = c->before[c->first[k]];
		c->counts[k] = c->before[c->first[k + 1]] - c->displs[k];
		if (!root)
			continue;
		emit_pack_cluster(b, t, k, &ready);
		part.after = emit_both(b, part.after, ready);
	}
	across.root = cluster_of(t->call, t->call->root);
	across.counts = c->counts;
	across.displs = c->displs;
	across.count = c->counts[c->mine];
	across.in_place = root;
	return coll_emit_across(b, c, NULL, &across, &part).ready;
}

static void emit_inside(struct coll_build *b, const struct scatter_tiers *t, u32 head, u64 place,
			u32 ready)
{
	const struct coll_clusters *c = &t->c;
	const bool v = t->call->collective == COLL_SCATTERV;
	const struct coll_call inside = coll_call_inside_v(c, t->call, head);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.in = place,
		.out = COLL_ADDRESS(COLL_OUT, 0),
		.after = ready,
		.recv_after = COLL_NONE,
	};

	coll_emit_phase(b, v ? coll_algo_find(COLL_SCATTERV, "binomial") : coll_algo_find(COLL_SCATTER, "binomial"), &inside, &part);
}

static void scatter_twotier_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	struct scatter_tiers t = {
		.c = coll_clusters_make(b, call, tuning),
		.call = call,
		.base = COLL_ADDRESS(COLL_IN, 0),
	};
	const bool root = call->rank == call->root;
	const u32 head = coll_head_index(&t.c, call, call->root);
	u32 ready = COLL_NONE;
	u64 place;

	coll_order_blocks(&t.c, call);
	t.direct = root && coll_clusters_are_runs(call) && coll_blocks_packed(call);
	if (root && !t.direct)
		t.base = coll_emit_scratch(b, t.c.before[call->ranks] * call->element);
	if (t.c.near) {
		place = root ? t.base + t.c.before[t.c.first[t.c.mine]] * call->element :
			coll_emit_scratch(b, t.c.index == head ?
						 coll_cluster_bytes(&t.c, call, t.c.mine) : 0);
		if (t.c.index == head)
			ready = emit_heads(b, &t, place);
	} else if (root) {
		emit_far(b, &t);
		place = emit_pack_cluster(b, &t, t.c.mine, &ready);
	} else {
		const bool gets = t.c.index == head && t.c.mine != cluster_of(call, call->root);

		place = coll_emit_scratch(b, gets ? coll_cluster_bytes(&t.c, call, t.c.mine) : 0);
		if (gets && coll_cluster_bytes(&t.c, call, t.c.mine))
			ready = coll_emit_recv(b, call->root, place,
					       coll_cluster_bytes(&t.c, call, t.c.mine));
	}
	emit_inside(b, &t, head, place, ready);
}

/* It is the gather the other way round. */
static double scatter_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	return coll_algo_find(COLL_GATHER, "twotier")->cost(call, tuning, m);
}

const struct coll_algo coll_scatter_twotier = {
	.collective = COLL_SCATTER,
	.name = "twotier",
	.about = "one message to each cluster, which scatters inside: short blocks",
	.ordered = true,
	.clusters = true,
	.cost = scatter_twotier_cost,
	.emit = scatter_twotier_emit,
};

const struct coll_algo coll_scatterv_twotier = {
	.collective = COLL_SCATTERV,
	.name = "twotier",
	.about = "one message to each cluster, which scatters inside: short blocks",
	.ordered = true,
	.clusters = true,
	.needs_counts = true,
	.cost = scatter_twotier_cost,
	.emit = scatter_twotier_emit,
};
