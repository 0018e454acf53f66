/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Rank arithmetic: logarithms, the binomial tree, the circulant graph, and the
 * fold that brings any number of ranks to a power of two.
 */
#ifndef COLL_RANKS_H
#define COLL_RANKS_H

#include "core/port.h"

enum { LOG2_RANKS_MAX = 24 };	/* log2 COLL_RANKS_MAX: no tree is higher */

/* Largest k with 2^k <= ranks (ranks >= 1). */
static inline u32 log2_floor(u32 ranks)
{
	u32 k = 0;

	while (ranks >> (k + 1))
		k++;
	return k;
}

/* Least k with 2^k >= ranks (ranks >= 1): rounds of a doubling. */
static inline u32 log2_ceil(u32 ranks)
{
	u32 k = log2_floor(ranks);

	return k + (ranks > 1u << k);
}

/* (rank + distance) mod ranks and (rank - distance) mod ranks, distance <= ranks. */
static inline u32 rank_plus(u32 rank, u32 distance, u32 ranks)
{
	return (u32)(((u64)rank + distance) % ranks);
}

static inline u32 rank_minus(u32 rank, u32 distance, u32 ranks)
{
	return (u32)(((u64)rank + ranks - distance) % ranks);
}

/*
 * The binomial tree over ranks counted from the root, which is 0: the subtree of
 * `relative` is the tree_size() ranks from itself on. Its children, the largest
 * subtree first:
 *
 *	for (m = tree_reach(relative, ranks); m; m /= 2)
 *		child = relative + m;
 */
static inline u32 tree_parent(u32 relative)
{
	return relative & (relative - 1);
}

static inline u32 tree_size(u32 relative, u32 ranks)
{
	u32 span = relative ? relative & -relative : ranks;

	return span < ranks - relative ? span : ranks - relative;
}

static inline u32 tree_reach(u32 relative, u32 ranks)
{
	u32 size = tree_size(relative, ranks);

	return size > 1 ? 1u << log2_floor(size - 1) : 0;
}

/*
 * The circulant graph: in round k = 0 ... rounds - 1, with rounds = log2_ceil(ranks),
 * each rank talks to the ranks circulant_skip(k) above and below. The skips are
 * 1, ..., ranks, each the half of the next, rounded up. (Träff)
 */
static inline u32 circulant_skip(u32 ranks, u32 rounds, u32 k)
{
	return ((ranks - 1) >> (rounds - k)) + 1;
}

/*
 * The fold to a power of two: 2^K is the largest power of two in `ranks`, and
 * s = ranks - 2^K ranks are in excess. The first 2s ranks form pairs of neighbours.
 * The lower of a pair is the *excess rank*: it sends its vector to the upper, its
 * *proxy*, and gets the result back. The other 2^K ranks have *virtual ranks* 0 ..
 * 2^K - 1, in rank order: an operation that does not commute keeps its order.
 */
struct coll_fold {
	u32 exchanges;		/* K */
	u32 vranks;		/* 2^K */
	u32 excess;
};

static inline struct coll_fold fold_of(u32 ranks)
{
	u32 k = log2_floor(ranks);

	return (struct coll_fold){ .exchanges = k, .vranks = 1u << k, .excess = ranks - (1u << k) };
}

static inline bool fold_is_excess(const struct coll_fold *fold, u32 rank)
{
	return rank < 2 * fold->excess && !(rank & 1);
}

/* Virtual rank of a rank that is not in excess. */
static inline u32 fold_virtual_rank(const struct coll_fold *fold, u32 rank)
{
	return rank < 2 * fold->excess ? rank / 2 : rank - fold->excess;
}

static inline u32 fold_rank(const struct coll_fold *fold, u32 vrank)
{
	return vrank < fold->excess ? 2 * vrank + 1 : vrank + fold->excess;
}

/* The first rank that a virtual rank stands for; fold_first(fold, vranks) is `ranks`. */
static inline u32 fold_first(const struct coll_fold *fold, u32 vrank)
{
	return vrank < fold->excess ? 2 * vrank : vrank + fold->excess;
}

/* Whether the virtual rank is a proxy, and its excess rank. */
static inline bool fold_is_proxy(const struct coll_fold *fold, u32 vrank)
{
	return vrank < fold->excess;
}

static inline u32 fold_excess_rank(u32 vrank)
{
	return 2 * vrank;
}

#endif
