/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Clusters: ranks near each other, with long links between clusters (paper 2). Of each cluster n
 * ranks, its *gateways*, communicate with other clusters; gateway j of all clusters together is
 * *lane* j. Between two clusters only the n lanes carry data, so at most n links are in use at
 * once, whatever the timing. Another rank sends data for other clusters to the gateway of its
 * lane, and receives from it.
 *
 * n is the requested number, but at most the number of ranks of the smallest cluster.
 */
#ifndef COLL_CLUSTERS_H
#define COLL_CLUSTERS_H

#include "blocks.h"
#include "ranks.h"

struct coll_clusters {
	u32 count, lanes;
	const u32 *first;	/* per cluster, and one more: where its ranks begin in member[] */
	const u32 *member;	/* the ranks by cluster, ascending in each */
	u32 mine, index;	/* my cluster, and which of its members I am */
	u32 *lane;		/* memory for the ranks of a lane: see coll_lane_ranks() */
	u64 *counts, *displs;	/* memory for those of a v form, for all ranks */
	u64 *before;		/* see coll_order_blocks() */
	u32 *op;		/* memory for one op of each rank */
	const struct coll_level *above;	/* levels above the parts */
	u32 levels;			/* how many */
	bool near, leader;		/* of the call */
	struct coll_tuning tuning;	/* of a phase across */
};

/* Bytes of tables that coll_clusters_make() needs, of b->tables. */
u64 coll_clusters_table_bytes(u32 ranks);

struct coll_clusters coll_clusters_make(struct coll_build *b, const struct coll_call *call,
					const struct coll_tuning *tuning);

/* Without tables, for costs: O(ranks). */
u32 coll_clusters_count(const struct coll_call *call);
u32 coll_clusters_smallest(const struct coll_call *call);
u32 coll_clusters_largest(const struct coll_call *call);
/* n as it will be. */
u32 coll_clusters_lanes(const struct coll_call *call, const struct coll_tuning *tuning);
/* Whether each cluster is a run of ranks, and lower clusters have lower ranks. */
bool coll_clusters_are_runs(const struct coll_call *call);

static inline u32 cluster_of(const struct coll_call *call, u32 rank)
{
	return call->cluster ? call->cluster[rank] : 0;
}

static inline u32 cluster_size(const struct coll_clusters *c, u32 cluster)
{
	return c->first[cluster + 1] - c->first[cluster];
}

static inline const u32 *cluster_ranks(const struct coll_clusters *c, u32 cluster)
{
	return c->member + c->first[cluster];
}

/* The index of a rank among its cluster's members. */
u32 coll_cluster_index(const struct coll_clusters *c, u32 cluster, u32 rank);

/*
 * A lane serves a run of members, from the first on. The last of them is its gateway, which
 * data going around the ring reaches early.
 */
static inline u32 lane_first(const struct coll_clusters *c, u32 cluster, u32 lane)
{
	return (u64)lane * cluster_size(c, cluster) / c->lanes;
}

static inline u32 gateway_index(const struct coll_clusters *c, u32 cluster, u32 lane)
{
	return lane_first(c, cluster, lane + 1) - 1;
}

static inline u32 gateway_rank(const struct coll_clusters *c, u32 cluster, u32 lane)
{
	return cluster_ranks(c, cluster)[gateway_index(c, cluster, lane)];
}

/* The lane that serves a member. */
static inline u32 lane_of(const struct coll_clusters *c, u32 cluster, u32 index)
{
	return ((u64)(index + 1) * c->lanes - 1) / cluster_size(c, cluster);
}

static inline bool is_gateway(const struct coll_clusters *c)
{
	return gateway_index(c, c->mine, lane_of(c, c->mine, c->index)) == c->index;
}

/* Lists the gateways of a lane, by cluster, in c->lane. */
const u32 *coll_lane_ranks(const struct coll_clusters *c, u32 lane);

/*
 * The call's blocks in the order of member[]: before[i] elements come before that
 * of member[i]; before[ranks] is all.
 */
void coll_order_blocks(const struct coll_clusters *c, const struct coll_call *call);

/* Of a cluster's blocks together, in that order. */
u64 coll_cluster_bytes(const struct coll_clusters *c, const struct coll_call *call, u32 cluster);

/*
 * Where one rank of each cluster is enough, that is its *head*: the root at home,
 * the first member elsewhere; without a root, with rank 0 for one, everywhere the
 * first member. coll_head_ranks() lists them, by cluster, in c->lane.
 */
u32 coll_head_index(const struct coll_clusters *c, const struct coll_call *call, u32 root);
const u32 *coll_head_ranks(const struct coll_clusters *c, const struct coll_call *call, u32 root);

/* The call as my cluster's ranks, or a lane's, make it among themselves. */
static inline struct coll_call call_inside(const struct coll_clusters *c,
					   const struct coll_call *call,
					   enum coll_collective collective)
{
	struct coll_call part = *call;

	part.collective = collective;
	part.rank = c->index;
	part.ranks = cluster_size(c, c->mine);
	part.root = 0;
	part.cluster = NULL;
	part.near = part.level = NULL;
	part.levels = 0;
	part.counts = part.displs = NULL;
	return part;
}

/* gather(v), scatter(v), with my cluster's blocks one after the other: needs coll_order_blocks(). */
struct coll_call coll_call_inside_v(const struct coll_clusters *c, const struct coll_call *call,
				    u32 root);

static inline struct coll_call call_across(const struct coll_clusters *c,
					   const struct coll_call *call,
					   enum coll_collective collective)
{
	struct coll_call part = call_inside(c, call, collective);

	part.rank = c->mine;
	part.ranks = c->count;
	return part;
}

/*
 * For an algorithm's `refuses`, which combines in order if the clusters are runs of ranks:
 * they had better be, if the operation does not commute. The other is for one in segments.
 */
const char *coll_order_refuses(const struct coll_call *call, const struct coll_tuning *tuning);
const char *coll_order_pipeline_refuses(const struct coll_call *call,
					const struct coll_tuning *tuning);

/* Phases of whole vectors: one, as in the paper, unless `segment` is asked for or chosen. */
static inline u32 phase_segments(const struct coll_call *call, const struct coll_tuning *tuning)
{
	return tuning->segment == COLL_UNSET ? 1 : pipeline_parts(call, tuning, 0);
}

/*
 * Broadcasts inside: by tree, or by scatter and allgather if it is long. For segments
 * what counts is the whole vector: their latencies overlap, their bytes do not.
 */
const struct coll_algo *coll_bcast_inside(const struct coll_call *call);

/* Emits `algo` for the part of the ranks that it names. */
struct coll_phase_end coll_emit_phase(struct coll_build *b, const struct coll_algo *algo,
				      const struct coll_call *call, const struct coll_phase *part);

/*
 * A phase across: `algo` by this name, but in a level algorithm's view what levels.c chooses for the
 * levels above.
 */
struct coll_phase_end coll_emit_across(struct coll_build *b, const struct coll_clusters *c,
				       const char *name, const struct coll_call *call,
				       const struct coll_phase *part);

/*
 * A reduce-scatter inside, of few large blocks: around the ring each byte enters and
 * leaves a rank once, however few own a block. If the operation does not commute,
 * each block goes straight to its owner, in rank order.
 */
const struct coll_algo *coll_reduce_scatter_inside(const struct coll_call *call);

/* Reduces a vector at `in` inside my cluster: each gateway gets its lane's part at `sum`. */
struct coll_phase_end coll_emit_reduce_to_lanes(struct coll_build *b, const struct coll_clusters *c,
						const struct coll_call *vector, u64 in, u64 sum);

/* A vector's parts, one a lane: to counts[] and displs[] at the gateways of a cluster. */
void coll_share_lanes(const struct coll_clusters *c, u32 cluster, const struct coll_call *vector);

/* ---- costs -------------------------------------------------------------- */

/* Between clusters as inside: where seconds of cores are counted, which the WAN has none of. */
static inline void machine_leave_wan(struct coll_machine *m)
{
	m->wan_alpha = m->wan_beta = m->congestion = 0;
}

/* Seconds a byte takes between clusters if `lanes` links go there together. Finite, also where beta is 0. */
double coll_across_beta(const struct coll_machine *m, u32 lanes);

/*
 * The clusters that a formula is to bring together: all of the call, but 1 for a level algorithm's phases inside, since
 * coll_above_cost() has the phase across.
 */
u32 coll_across_count(const struct coll_call *call, const struct coll_machine *m);
/* Seconds of the way across, and those that n bytes on all lanes take besides. */
double coll_across_alpha(const struct coll_call *call, const struct coll_machine *m);
double coll_across_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, double n);

/*
 * A phase of one block: messages that leave a NIC together share it, so those that
 * are to be handed on come late, by so many times the block. With van de Geijn's tree
 * of 8 ranks 11/8; docs/guide/clusters.md has what was measured.
 */
static inline double nic_shared(u32 ranks)
{
	return 1.5 * (ranks - 1) / ranks;
}

/*
 * Seconds in which all lanes reduce a vector across, in log2 rounds, and the clusters inside
 * reduce it before and spread or collect it after: in `segments` segments they overlap.
 */
double coll_reduction_across_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m, double segments);

enum { HEADER_BYTES = 98 };	/* ours, TCP's, IP's and Ethernet's */

/* Overhead of each message at its sender, besides its payload. */
static inline double message_cost(const struct coll_machine *m)
{
	return m->overhead + HEADER_BYTES * m->beta;
}

/*
 * Phases inside clusters, of all ranks of the call. Where their cores copy the bytes, those that share them
 * take turns: `share` is a rank's mean work.
 */
static inline double phases_inside_cost(const struct coll_call *call, const struct coll_machine *m, double path,
					double share)
{
	struct coll_machine all = *m;

	all.alike = 0;
	return m->copied ? crowded_cost(call, &all, path, share) : path;
}

/* Two things that overlap except for the first and the last of `segments`. */
static inline double overlap_cost(double one, double other, double segments)
{
	return one > other ? one + other / segments : other + one / segments;
}

#endif
