// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By lanes, for nested levels whose nodes are runs of ranks: a reduce-scatter inside each node
 * leaves a part of the node's sum with each of its ranks, each has an exscan of its part with its
 * like on the other nodes, and an allgather inside brings the sum of the nodes below to all, who
 * put it before what a scan inside gave them. Long parts go from node to node in a chain: n bytes
 * enter and leave a node.
 *
 *	n beta + N (alpha + k o) + (log2(k) + 3) n (beta_node + gamma)	for N nodes of k ranks
 */
#include "algo/common/levels.h"
#include "algo/common/partial.h"

struct scan_lanes {
	struct coll_clusters c;
	const struct coll_call *call;	/* the view */
	u32 lane;		/* mine, or `lanes`: none */
	u64 mine;		/* what the scan inside gives me ... */
	bool has_mine;		/* ... unless this is the exscan's first rank */
	u64 sum;		/* my part of my node's sum */
	u64 lower;		/* the sum of all lower nodes */
	struct coll_phase_end inside, reduced;
};

static u64 lane_bytes(const struct scan_lanes *s)
{
	return s->lane < s->c.lanes ? part_bytes(s->call, s->c.lanes, s->lane) : 0;
}

static void emit_inside(struct coll_build *b, struct scan_lanes *s)
{
	struct coll_call call = call_inside(&s->c, s->call, s->call->collective);
	const struct coll_phase part = {
		.rank = cluster_ranks(&s->c, s->c.mine),
		.ranks = call.ranks,
		.in = call_input(s->call),
		.out = s->mine,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};

	call.in_place = false;
	s->reduced = coll_emit_reduce_to_lanes(b, &s->c, s->call, part.in, s->sum);
	s->inside = coll_emit_phase(b, coll_algo_find(call.collective, "doubling"), &call, &part);
	s->has_mine = call.collective != COLL_EXSCAN || s->c.index;
}

/* My part of the sum of the lower nodes; the first node has none. */
static u32 emit_across(struct coll_build *b, const struct scan_lanes *s)
{
	struct coll_call call = call_across(&s->c, s->call, COLL_EXSCAN);
	const struct coll_phase part = {
		.rank = coll_lane_ranks(&s->c, s->lane),
		.ranks = call.ranks,
		.in = s->sum,
		.out = s->lower + part_offset(s->call, s->c.lanes, s->lane),
		.after = s->reduced.ready,
		.recv_after = COLL_NONE,
	};

	call.count = lane_bytes(s) / call.element;
	call.in_place = false;
	return coll_emit_across(b, &s->c, NULL, &call, &part).ready;
}

static u32 emit_spread(struct coll_build *b, const struct scan_lanes *s, u32 after)
{
	struct coll_call call = call_inside(&s->c, s->call, COLL_ALLGATHERV);
	const struct coll_phase part = {
		.rank = cluster_ranks(&s->c, s->c.mine),
		.ranks = call.ranks,
		.out = s->lower,
		.after = after,
		.recv_after = COLL_NONE,
	};

	coll_share_lanes(&s->c, s->c.mine, s->call);
	call.counts = s->c.counts;
	call.displs = s->c.displs;
	call.count = s->c.counts[call.rank];
	call.in_place = true;
	return coll_emit_phase(b, coll_algo_find(COLL_ALLGATHERV, "ring"), &call, &part).ready;
}

static void scan_lanes_emit(struct coll_build *b, const struct coll_call *call,
			    const struct coll_tuning *tuning)
{
	const struct coll_call view = coll_levels_view(call, false);
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	struct scan_lanes s = {
		.c = coll_clusters_make(b, &view, tuning),
		.call = &view,
		.mine = coll_emit_scratch(b, n),
		.lower = coll_emit_scratch(b, n),
	};
	u32 ready, across = COLL_NONE;

	if (call->ranks == 1) {
		if (call->collective == COLL_SCAN)
			coll_emit_single_rank(b, call, n);
		return;
	}
	s.lane = is_gateway(&s.c) ? lane_of(&s.c, s.c.mine, s.c.index) : s.c.lanes;
	s.sum = coll_emit_scratch(b, lane_bytes(&s));
	emit_inside(b, &s);
	/* In place OUT is my input. */
	ready = emit_both(b, emit_both(b, s.inside.ready, s.inside.sent),
			  emit_both(b, s.reduced.ready, s.reduced.sent));
	if (lane_bytes(&s))
		across = emit_across(b, &s);
	if (s.c.mine)
		ready = emit_both(b, ready, emit_spread(b, &s, across));
	coll_emit_after(b, across);
	coll_emit_after(b, ready);
	if (s.c.mine && s.has_mine)
		coll_emit_reduce(b, out, s.lower, s.mine, n);
	else if (s.c.mine || s.has_mine)
		coll_emit_copy(b, out, s.has_mine ? s.mine : s.lower, n);
	else
		coll_emit_join(b);
}

static const char *scan_lanes_refuses(const struct coll_call *call,
				      const struct coll_tuning *tuning)
{
	const char *why = coll_levels_refuse(call, tuning);

	if (why || coll_levels_are_runs(call))
		return why;
	return "the nodes are no runs of ranks";
}

/* A scan inside, two rings of the whole vector, and the last reduction. */
static double inside_cost(const struct coll_call *view, const struct coll_tuning *tuning,
			  const struct coll_machine *near)
{
	const double k = view->near->largest, n = call_bytes(view);
	const double path = log2_ceil(k) * (near->alpha + n * (near->beta + near->gamma)) +
			    2 * (k - 1) * (near->alpha + n / k * near->beta) + 2 * n * near->gamma;

	(void)tuning;
	return phases_inside_cost(view, near, path, path);
}

static double scan_lanes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			      const struct coll_machine *m)
{
	return coll_levels_cost_of(call, tuning, m, inside_cost, false);
}

const struct coll_algo coll_scan_lanes = {
	.collective = COLL_SCAN,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node has an exscan of a part across",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = scan_lanes_refuses,
	.cost = scan_lanes_cost,
	.emit = scan_lanes_emit,
};

const struct coll_algo coll_exscan_lanes = {
	.collective = COLL_EXSCAN,
	.name = "lanes",
	.about = "reduce-scatter inside, each rank of a node has an exscan of a part across",
	.ordered = true,
	.levels = true,
	.options = "n, across",
	.refuses = scan_lanes_refuses,
	.cost = scan_lanes_cost,
	.emit = scan_lanes_emit,
};
