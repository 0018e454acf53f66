// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "clusters.h"
#include "levels.h"

enum { LONG_BYTES = 1 << 15 };	/* from here on a scatter pays inside a cluster */

u64 coll_clusters_table_bytes(u32 ranks)
{
	/* counts, displs, before, and one more; first, member, lane, op, one more, and one to align. */
	return ((u64)ranks * 3 + 1) * sizeof(u64) + ((u64)ranks * 4 + 2) * sizeof(u32);
}

u32 coll_clusters_count(const struct coll_call *call)
{
	return call->cluster ? call->clusters : 1;
}

static u32 size_of(const struct coll_call *call, u32 cluster)
{
	u32 size = 0, rank;

	for (rank = 0; rank < call->ranks; rank++)
		size += cluster_of(call, rank) == cluster;
	return size;
}

u32 coll_clusters_smallest(const struct coll_call *call)
{
	u32 least = call->ranks, i;

	if (call->near)
		return call->near->smallest;
	for (i = 0; i < coll_clusters_count(call); i++) {
		u32 size = size_of(call, i);

		least = size < least ? size : least;
	}
	return least;
}

u32 coll_clusters_largest(const struct coll_call *call)
{
	u32 most = 0, i;

	if (call->near)
		return call->near->largest;
	for (i = 0; i < coll_clusters_count(call); i++) {
		u32 size = size_of(call, i);

		most = size > most ? size : most;
	}
	return most;
}

u32 coll_clusters_lanes(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const u32 most = coll_clusters_smallest(call);

	if (call->near && call->leader)
		return 1;
	/* `n` limits links between clusters: those of all lanes together. */
	if (call->near && !coll_levels_reach_clusters(call))
		return most;
	return tuning->lanes < most ? (tuning->lanes ? tuning->lanes : 1) : most;
}

bool coll_clusters_are_runs(const struct coll_call *call)
{
	u32 rank;

	if (call->near)
		return call->near->runs;
	for (rank = 1; rank < call->ranks; rank++)
		if (cluster_of(call, rank) < cluster_of(call, rank - 1))
			return false;
	return true;
}

u32 coll_cluster_index(const struct coll_clusters *c, u32 cluster, u32 rank)
{
	const u32 *member = cluster_ranks(c, cluster);
	u32 low = 0, high = cluster_size(c, cluster) - 1;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (member[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct coll_clusters coll_clusters_make(struct coll_build *b, const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const u32 p = call->ranks, count = coll_clusters_count(call);
	u64 *counts = b->tables;
	u32 *first = (u32 *)(counts + 3 * (size_t)p + 1), *member = first + count + 1, i;
	struct coll_clusters c = {
		.count = count,
		.lanes = coll_clusters_lanes(call, tuning),
		.first = first,
		.member = member,
		.mine = cluster_of(call, call->rank),
		.lane = member + p,
		.counts = counts,
		.displs = counts + p,
		.before = counts + 2 * (size_t)p,
		.op = member + 2 * (size_t)p,
		.above = call->level,
		.levels = call->near ? call->levels : 0,
		.near = call->near,
		.leader = call->leader,
		.tuning = coll_across_tuning(call, tuning),
	};

	if (call->near) {
		c.first = call->near->first;
		c.member = call->near->member;
		c.index = coll_cluster_index(&c, c.mine, call->rank);
		return c;
	}
	/* first[k + 1] counts up from the beginning of cluster k to its end. */
	memset(first, 0, (count + 1) * sizeof(*first));
	for (i = 0; i < p; i++)
		if (cluster_of(call, i) + 2 <= count)
			first[cluster_of(call, i) + 2]++;
	for (i = 1; i <= count; i++)
		first[i] += first[i - 1];
	for (i = 0; i < p; i++)
		member[first[cluster_of(call, i) + 1]++] = i;
	c.index = coll_cluster_index(&c, c.mine, call->rank);
	return c;
}

const u32 *coll_lane_ranks(const struct coll_clusters *c, u32 lane)
{
	u32 i;

	for (i = 0; i < c->count; i++)
		c->lane[i] = gateway_rank(c, i, lane);
	return c->lane;
}

void coll_order_blocks(const struct coll_clusters *c, const struct coll_call *call)
{
	u32 i;

	c->before[0] = 0;
	for (i = 0; i < call->ranks; i++)
		c->before[i + 1] = c->before[i] + (call->counts ? call->counts[c->member[i]] :
								  call->count);
}

u64 coll_cluster_bytes(const struct coll_clusters *c, const struct coll_call *call, u32 cluster)
{
	return (c->before[c->first[cluster + 1]] - c->before[c->first[cluster]]) * call->element;
}

struct coll_call coll_call_inside_v(const struct coll_clusters *c, const struct coll_call *call,
				    u32 root)
{
	struct coll_call inside = call_inside(c, call, call->collective);
	const u64 *before = c->before + c->first[c->mine];
	u32 i;

	inside.root = root;
	if (call->collective != COLL_GATHERV && call->collective != COLL_SCATTERV)
		return inside;
	for (i = 0; i < inside.ranks; i++) {
		c->counts[i] = before[i + 1] - before[i];
		c->displs[i] = before[i] - before[0];
	}
	inside.counts = c->counts;
	inside.displs = c->displs;
	return inside;
}

u32 coll_head_index(const struct coll_clusters *c, const struct coll_call *call, u32 root)
{
	return c->mine == cluster_of(call, root) ? coll_cluster_index(c, c->mine, root) : 0;
}

const u32 *coll_head_ranks(const struct coll_clusters *c, const struct coll_call *call, u32 root)
{
	u32 i;

	for (i = 0; i < c->count; i++)
		c->lane[i] = cluster_ranks(c, i)[0];
	c->lane[cluster_of(call, root)] = root;
	return c->lane;
}

const char *coll_order_refuses(const struct coll_call *call, const struct coll_tuning *tuning)
{
	(void)tuning;
	if (call->commutative || (coll_clusters_are_runs(call) && coll_levels_are_runs(call)))
		return NULL;
	return "the operation does not commute, and the clusters are no runs of ranks";
}

const char *coll_order_pipeline_refuses(const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const char *why = coll_order_refuses(call, tuning);

	return why ? why : pipeline_refuses(call, tuning);
}

const struct coll_algo *coll_bcast_inside(const struct coll_call *call)
{
	return call_bytes(call) < LONG_BYTES ? coll_algo_find(COLL_BCAST, "binomial") : coll_algo_find(COLL_BCAST, "vandegeijn");
}

struct coll_phase_end coll_emit_phase(struct coll_build *b, const struct coll_algo *algo,
				      const struct coll_call *call, const struct coll_phase *part)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;

	coll_emit_phase_begin(b, part);
	algo->emit(b, call, &tuning);
	return coll_emit_phase_end(b);
}

struct coll_phase_end coll_emit_across(struct coll_build *b, const struct coll_clusters *c,
				       const char *name, const struct coll_call *call,
				       const struct coll_phase *part)
{
	if (c->near)
		return coll_emit_above(b, c, call, part);
	return coll_emit_phase(b, coll_algo_find(call->collective, name), call, part);
}

void coll_share_lanes(const struct coll_clusters *c, u32 cluster, const struct coll_call *vector)
{
	const u32 size = cluster_size(c, cluster);
	u32 i, lane = 0;

	for (i = 0; i < size; i++) {
		bool gateway = lane < c->lanes && gateway_index(c, cluster, lane) == i;

		c->displs[i] = part_offset(vector, c->lanes, lane) / vector->element;
		c->counts[i] = 0;
		if (gateway)
			c->counts[i] = part_bytes(vector, c->lanes, lane++) / vector->element;
	}
}

const struct coll_algo *coll_reduce_scatter_inside(const struct coll_call *call)
{
	/* One block: straight to its owner. */
	if (call->near && call->leader)
		return coll_algo_find(COLL_REDUCE_SCATTER, "pairwise");
	return call->commutative ? coll_algo_find(COLL_REDUCE_SCATTER, "ring") : coll_algo_find(COLL_REDUCE_SCATTER, "pairwise");
}

struct coll_phase_end coll_emit_reduce_to_lanes(struct coll_build *b, const struct coll_clusters *c,
						const struct coll_call *vector, u64 in, u64 sum)
{
	struct coll_call inside = call_inside(c, vector, COLL_REDUCE_SCATTER);
	const struct coll_phase part = {
		.rank = cluster_ranks(c, c->mine),
		.ranks = inside.ranks,
		.in = in,
		.out = sum,
		.after = COLL_NONE,
		.recv_after = COLL_NONE,
	};

	coll_share_lanes(c, c->mine, vector);
	inside.counts = c->counts;
	inside.count = c->counts[inside.rank];
	inside.in_place = false;
	return coll_emit_phase(b, coll_reduce_scatter_inside(vector), &inside, &part);
}

/* ---- costs -------------------------------------------------------------- */

double coll_across_beta(const struct coll_machine *m, u32 lanes)
{
	double overload, whole = m->beta / lanes;

	if (m->beta <= 0)	/* no link limits it, and none says by how much it is overloaded */
		return m->wan_beta;
	overload = lanes * m->wan_beta / m->beta;
	if (overload > 1)
		whole = m->wan_beta * (1 + m->congestion * (overload - 1));
	return whole;
}

u32 coll_across_count(const struct coll_call *call, const struct coll_machine *m)
{
	return call->near && m->wan_alpha <= 0 ? 1 : coll_clusters_count(call);
}

double coll_across_alpha(const struct coll_call *call, const struct coll_machine *m)
{
	if (coll_across_count(call, m) == 1)
		return 0;
	return m->wan_alpha > m->alpha ? m->wan_alpha : m->alpha;
}

double coll_across_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, double n)
{
	if (coll_across_count(call, m) == 1)
		return 0;
	return n * coll_across_beta(m, coll_clusters_lanes(call, tuning));
}

double coll_reduction_across_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m, double segments)
{
	const double n = call_bytes(call), rounds = log2_ceil(coll_across_count(call, m));
	const double p = coll_clusters_largest(call);
	/* Each rank passes on all parts but its own, and reduces them; gateways reduce what comes from across. */
	const double inside = n * ((p - 1) / p * 2 * m->beta + m->gamma);

	return rounds * coll_across_alpha(call, m) +
	       overlap_cost(rounds * coll_across_cost(call, tuning, m, n),
			    phases_inside_cost(call, m, inside, inside), segments);
}
