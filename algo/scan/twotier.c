// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two tiers, for clusters that are runs of ranks: each cluster scans; its last rank, which then
 * has the cluster's sum, receives that of the lower clusters; and each rank puts it before its
 * own.
 *
 *	A ceil(log2 c)	for c clusters, n bytes over one link, and a scan and a broadcast inside
 */
#include "algo/common/clusters.h"
#include "algo/common/levels.h"
#include "algo/common/partial.h"

struct scan_tiers {
	struct coll_clusters c;
	const struct coll_call *call;
	bool last;		/* of my cluster */
	u64 mine;		/* what the scan inside gives me ... */
	bool has_mine;		/* ... unless this is the exscan's first rank */
	u64 total;		/* last: my cluster's sum */
	u64 lower;		/* the sum of all lower clusters */
	struct coll_phase_end inside;
};

static const u32 *last_ranks(const struct coll_clusters *c)
{
	u32 i;

	for (i = 0; i < c->count; i++)
		c->lane[i] = c->member[c->first[i + 1] - 1];
	return c->lane;
}

static void emit_inside(struct coll_build *b, struct scan_tiers *t)
{
	const bool exscan = t->call->collective == COLL_EXSCAN;
	struct coll_call call = call_inside(&t->c, t->call, t->call->collective);
	const struct coll_phase part = {
		.rank = cluster_ranks(&t->c, t->c.mine),
		.ranks = call.ranks,
		.in = call_input(t->call),
		.out = t->mine,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};

	call.in_place = false;
	t->inside = coll_emit_phase(b, exscan ? coll_algo_find(COLL_EXSCAN, "doubling") : coll_algo_find(COLL_SCAN, "doubling"), &call,
				    &part);
	t->has_mine = !exscan || t->c.index;
	t->total = t->mine;
	if (!t->last || !exscan)
		return;
	t->total = part.in;
	if (t->has_mine) {
		t->total = coll_emit_scratch(b, call_bytes(&call));
		coll_emit_after(b, t->inside.ready);
		t->inside.ready =
			coll_emit_reduce(b, t->total, t->mine, part.in, call_bytes(&call));
	}
}

/* Returns the op after which the last rank of a cluster has `lower`. */
static u32 emit_across(struct coll_build *b, const struct scan_tiers *t)
{
	struct coll_call call = call_across(&t->c, t->call, COLL_EXSCAN);
	const struct coll_phase part = {
		.rank = last_ranks(&t->c),
		.ranks = call.ranks,
		.in = t->total,
		.out = t->lower,
		.after = t->inside.ready,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end end;

	call.in_place = false;
	end = coll_emit_across(b, &t->c, "doubling", &call, &part);
	return emit_both(b, end.ready, end.sent);	/* `total` may be my input */
}

static u32 emit_spread(struct coll_build *b, const struct scan_tiers *t, u32 after)
{
	struct coll_call call = call_inside(&t->c, t->call, COLL_BCAST);
	const struct coll_phase part = {
		.rank = cluster_ranks(&t->c, t->c.mine),
		.ranks = call.ranks,
		.out = t->lower,
		.after = after,
		.recv_after = COLL_NONE,
	};
	struct coll_phase_end end;

	call.root = call.ranks - 1;
	end = coll_emit_phase(b, coll_bcast_inside(&call), &call, &part);
	return emit_both(b, end.ready, after);
}

static void scan_twotier_emit(struct coll_build *b, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	struct scan_tiers t = {
		.c = coll_clusters_make(b, call, tuning),
		.call = call,
		.mine = coll_emit_scratch(b, n),
		.lower = coll_emit_scratch(b, n),
	};
	u32 ready;

	t.last = t.c.index + 1 == cluster_size(&t.c, t.c.mine);
	emit_inside(b, &t);
	ready = emit_both(b, t.inside.ready, t.inside.sent);
	if (t.c.count > 1 && t.last)
		ready = emit_both(b, ready, emit_across(b, &t));
	if (t.c.mine)
		ready = emit_both(b, ready, emit_spread(b, &t, t.last ? ready : COLL_NONE));
	coll_emit_after(b, ready);
	if (t.c.mine && t.has_mine)
		coll_emit_reduce(b, out, t.lower, t.mine, n);
	else if (t.c.mine || t.has_mine)
		coll_emit_copy(b, out, t.has_mine ? t.mine : t.lower, n);
	else
		coll_emit_join(b);
}

static const char *scan_twotier_refuses(const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	(void)tuning;
	return coll_clusters_are_runs(call) && coll_levels_are_runs(call) ? NULL : "the clusters are no runs of ranks";
}

static double scan_twotier_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				const struct coll_machine *m)
{
	const struct coll_tuning one = { .lanes = 1 };
	const double rounds = log2_ceil(coll_across_count(call, m)), n = call_bytes(call);
	struct coll_call inside = *call;

	if (call->ranks == 1)
		return 0;
	inside.cluster = NULL;
	inside.root = 0;
	inside.ranks = coll_clusters_largest(call);
	return coll_algo_find(COLL_EXSCAN, "doubling")->cost(&inside, tuning, m) +
	       rounds * (coll_across_alpha(call, m) + coll_across_cost(call, &one, m, n) +
			 n * m->gamma) +
	       (coll_clusters_count(call) > 1 ? coll_bcast_inside(&inside)->cost(&inside, tuning, m)
					      : 0);
}

const struct coll_algo coll_scan_twotier = {
	.collective = COLL_SCAN,
	.name = "twotier",
	.about = "scan inside each cluster, the clusters' sums across, broadcast inside",
	.ordered = true,
	.clusters = true,
	.refuses = scan_twotier_refuses,
	.cost = scan_twotier_cost,
	.emit = scan_twotier_emit,
};

const struct coll_algo coll_exscan_twotier = {
	.collective = COLL_EXSCAN,
	.name = "twotier",
	.about = "exscan inside each cluster, the clusters' sums across, broadcast inside",
	.ordered = true,
	.clusters = true,
	.refuses = scan_twotier_refuses,
	.cost = scan_twotier_cost,
	.emit = scan_twotier_emit,
};
