/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Replicas: the first ranks of a node, each of which has the node's sum. Which of them exchange it with
 * which of another node, and how many of them may be delayed.
 */
#ifndef COLL_REPLICAS_H
#define COLL_REPLICAS_H

#include "algo/common/algo.h"
#include "redundancy.h"

enum {
	COLL_REPLICAS = 3,	/* by default: the fewest of which any one may be delayed */
	COLL_REPLICAS_MAX = 16,
};

/* Of a node of so many ranks. */
static inline u32 replicas_of(const struct coll_tuning *tuning, u32 members)
{
	const u64 asked = tuning->replicas == COLL_UNSET ? COLL_REPLICAS : tuning->replicas;

	return asked < members ? (u32)asked : members;
}

/*
 * How many ranks of each node may be delayed if the smallest has so many replicas: fewer than half of
 * three or more, as each then has one partner, and one of two, as each has both.
 */
static inline u32 replicas_spare(u32 replicas)
{
	return replicas == 2 ? 1 : (replicas - 1) / 2;
}

/* Whether replica i of one node exchanges with replica j of the other. */
static inline bool replicas_are_linked(u32 replicas, u32 i, u32 others, u32 j)
{
	if (replicas <= 2 || others <= 2)
		return true;
	return replicas >= others ? j == i % others : i == j % replicas;
}

/* Messages between two nodes, in one direction, for each that one rank would send. */
static inline u32 replicas_links(u32 replicas, u32 others)
{
	if (replicas <= 2 || others <= 2)
		return replicas * others;
	return replicas > others ? replicas : others;
}

/* Whether replica i sends the result to a member that is none. */
static inline bool replicas_serve(u32 replicas, u32 i, u32 member)
{
	return (i + replicas - member % replicas) % replicas <= replicas_spare(replicas);
}

/* Those of a call that has levels. */
struct coll_replicas coll_replicas_of(const struct coll_call *call, const struct coll_tuning *tuning);

#endif
