// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Far first, as in MPIs for grids, which expect a narrow WAN (compared in paper 2): the root first
 * sends the vector to one rank of each other cluster, then each cluster has its own broadcast.
 *
 *	A + n beta + 2 n beta
 *
 * In segments the clusters broadcast one piece while the next one crosses. Without segments the
 * root's messages share its NIC, and pieces to be sent on arrive late (nic_shared()).
 */
#include "algo/common/clusters.h"

/* In levels: among the heads, by what is there for the levels above. */
static u32 emit_heads(struct coll_build *b, const struct coll_clusters *c,
		      const struct coll_call *call, u64 place)
{
	struct coll_call across = call_across(c, call, COLL_BCAST);
	const struct coll_phase part = {
		.rank = coll_head_ranks(c, call, call->root),
		.ranks = across.ranks,
		.out = place,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};

	across.root = cluster_of(call, call->root);
	return coll_emit_across(b, c, NULL, &across, &part).ready;
}

/* Returns what the broadcast inside waits for: the far sends, or what came. */
static u32 emit_far(struct coll_build *b, const struct coll_clusters *c,
		    const struct coll_call *call, u64 place)
{
	const u32 home = cluster_of(call, call->root), n = c->count;
	u32 done = COLL_NONE, i;

	if (c->index != coll_head_index(c, call, call->root))
		return COLL_NONE;
	if (c->near)
		return emit_heads(b, c, call, place);
	if (c->mine != home)
		return coll_emit_recv(b, call->root, place, call_bytes(call));
	for (i = 0; i < n; i++)
		if (i != home)
			done = emit_both(b, done, coll_emit_send(b, cluster_ranks(c, i)[0], place,
								 call_bytes(call)));
	return done;
}

static void emit_near(struct coll_build *b, const struct coll_clusters *c,
		      const struct coll_algo *bcast, const struct coll_call *call, u64 place,
		      u32 after)
{
	struct coll_call inside = call_inside(c, call, COLL_BCAST);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.out = place,
		.after = after,
		.recv_after = COLL_NONE,
	};

	inside.root = coll_head_index(c, call, call->root);
	coll_emit_phase(b, bcast, &inside, &part);
}

static void bcast_farfirst_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	const struct coll_clusters c = coll_clusters_make(b, call, tuning);
	const u32 segments = phase_segments(call, tuning);
	struct coll_call vector = *call;
	u32 i;

	for (i = 0; i < segments && call_bytes(call); i++) {
		const u64 place = COLL_ADDRESS(COLL_OUT, part_offset(call, segments, i));

		vector.count = part_bytes(call, segments, i) / call->element;
		emit_near(b, &c, coll_bcast_inside(call), &vector, place,
			  emit_far(b, &c, &vector, place));
	}
}

/*
 * The root's far copies and its part of the broadcast inside leave by one NIC, one
 * after the other: nothing of that overlaps.
 */
static double bcast_farfirst_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const struct coll_tuning one = { .lanes = 1 };
	const u32 s = phase_segments(call, tuning);
	const double n = call_bytes(call);
	struct coll_call inside = *call;

	if (call->ranks == 1)
		return 0;
	inside.ranks = coll_clusters_largest(call);
	inside.count = part_bytes(call, s, 0) / call->element;
	return coll_across_alpha(call, m) +
	       coll_across_cost(call, &one, m, n) * (coll_clusters_count(call) - 1) +
	       s * coll_bcast_inside(call)->cost(&inside, tuning, m) +
	       s * message_cost(m) + nic_shared(inside.ranks) * n / s * m->beta;
}

const struct coll_algo coll_bcast_farfirst = {
	.collective = COLL_BCAST,
	.name = "farfirst",
	.about = "the root crosses to each other cluster, then a broadcast inside each",
	.ordered = true,
	.clusters = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = bcast_farfirst_cost,
	.emit = bcast_farfirst_emit,
};
