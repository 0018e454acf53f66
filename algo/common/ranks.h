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
 * everybody talks to the ranks circulant_skip(k) above and below. The skips are
 * 1, ..., ranks, each the half of the next, rounded up. (Träff)
 */
static inline u32 circulant_skip(u32 ranks, u32 rounds, u32 k)
{
	return ((ranks - 1) >> (rounds - k)) + 1;
}

/*
 * The fold: with 2^K the largest power of two in `ranks` and s = ranks - 2^K
 * surplus ranks, the first 2s ranks form pairs of neighbours. The lower of a
 * pair, the *guest*, hands its part to the upper, its *host*, and takes no part
 * in what the 2^K *seats* do. Neighbours, and seats in rank order, so that an
 * operation that does not commute keeps its order.
 */
struct coll_fold {
	u32 exchanges;		/* K */
	u32 seats;		/* 2^K */
	u32 surplus;
};

static inline struct coll_fold fold_of(u32 ranks)
{
	u32 k = log2_floor(ranks);

	return (struct coll_fold){ .exchanges = k, .seats = 1u << k, .surplus = ranks - (1u << k) };
}

static inline bool fold_is_guest(const struct coll_fold *fold, u32 rank)
{
	return rank < 2 * fold->surplus && !(rank & 1);
}

/* Seat of a rank that is no guest. */
static inline u32 fold_seat(const struct coll_fold *fold, u32 rank)
{
	return rank < 2 * fold->surplus ? rank / 2 : rank - fold->surplus;
}

static inline u32 fold_rank(const struct coll_fold *fold, u32 seat)
{
	return seat < fold->surplus ? 2 * seat + 1 : seat + fold->surplus;
}

/* The first rank of a seat and its guest; fold_first(fold, seats) is `ranks`. */
static inline u32 fold_first(const struct coll_fold *fold, u32 seat)
{
	return seat < fold->surplus ? 2 * seat : seat + fold->surplus;
}

/* Whether the seat hosts a guest, and who that is. */
static inline bool fold_has_guest(const struct coll_fold *fold, u32 seat)
{
	return seat < fold->surplus;
}

static inline u32 fold_guest(u32 seat)
{
	return 2 * seat;
}

#endif
