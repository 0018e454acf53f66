/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The de Bruijn graph of radix r over n ranks: rank v sends to v r + j mod n for j = 0 .. r - 1
 * (Imase, Itoh 1981). D steps lead anywhere if r^D >= n: from u by the digits of x to u r^D + x.
 * So each x below n names one path from u, to a rank of its own. Few circuits, set up once,
 * reach all ranks in log_r n steps.
 */
#ifndef COLL_DEBRUIJN_H
#define COLL_DEBRUIJN_H

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

struct coll_debruijn {
	u32 ranks, radix;
	u32 steps;		/* D */
};

/*
 * By default as many as a node's ports reach: of a circuit for both ways half of them
 * lead here.
 */
static inline u32 debruijn_radix(const struct coll_tuning *tuning)
{
	u64 radix = 2;

	if (tuning->radix != COLL_UNSET)
		radix = tuning->radix;
	else if (tuning->ports != COLL_UNSET)
		radix = tuning->simplex == 1 ? tuning->ports : tuning->ports / 2;
	return radix < 2 ? 2 : radix < COLL_RANKS_MAX ? radix : COLL_RANKS_MAX;
}

static inline struct coll_debruijn debruijn_of(u32 ranks, u32 radix)
{
	struct coll_debruijn g = { ranks, radix < ranks ? radix : ranks < 2 ? 2 : ranks, 0 };
	u64 reach;

	for (reach = 1; reach < ranks; reach *= g.radix)
		g.steps++;
	return g;
}

static inline u64 debruijn_power(const struct coll_debruijn *g, u32 exponent)
{
	u64 power = 1;

	while (exponent--)
		power *= g->radix;
	return power;
}

static inline u32 debruijn_next(const struct coll_debruijn *g, u32 rank, u32 digit)
{
	return (u32)(((u64)rank * g->radix + digit) % g->ranks);
}

/* The digit that leads from one rank to another; at least `radix`: none does. */
static inline u32 debruijn_digit(const struct coll_debruijn *g, u32 from, u32 to)
{
	return rank_minus(to, debruijn_next(g, from, 0), g->ranks);
}

#endif
