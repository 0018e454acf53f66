/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Ranks that are often late, made leaves: nobody waits for what such a rank does after its first
 * messages. Which they are, who sends in their place, and what is gained.
 * docs/guide/late-ranks.md has the idea and the model.
 */
#ifndef COLL_LEAF_H
#define COLL_LEAF_H

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

/*
 * A butterfly's ranks. Late ranks with a virtual rank are *mute*: they receive as all do, but another
 * rank of their block, which has the same sum, sends for them.
 *
 * In the order of ranks (`last` false) a late rank sends its vector in exchange 1 and is mute from
 * then on. A late rank of the fold's pairs is the excess rank, which is a leaf anyway.
 *
 * Last (`last` true): the others compute their sum without the late ranks, and add their vectors at
 * the end. These are mute from the start. They take virtual ranks only where that saves the fold: a
 * butterfly of 2^k ranks stays one. The others are *aside*, and get the result from a *host*.
 */
struct coll_leaves {
	u32 ranks;
	bool last;
	struct coll_fold fold;		/* of the ranks that are not aside */
	/* All ascending: late ranks; of them, those aside; virtual ranks of mute ones. */
	u32 late[COLL_LATE_MAX], lates;
	u32 aside[COLL_LATE_MAX], asides;
	u32 mute[COLL_LATE_MAX], mutes;
};

/* Without the option `late` there are none, nor if all ranks were. */
struct coll_leaves coll_leaves_of(const struct coll_call *call, const struct coll_tuning *tuning,
				  bool last);

/* For `refuses`: each late rank must be there. */
const char *coll_leaves_refuse(const struct coll_call *call, const struct coll_tuning *tuning);

bool coll_leaf_is_late(const struct coll_leaves *l, u32 rank);
bool coll_leaf_is_aside(const struct coll_leaves *l, u32 rank);
bool coll_leaf_is_mute(const struct coll_leaves *l, u32 vrank);
/* Not of a rank that is aside. */
bool coll_leaf_is_excess(const struct coll_leaves *l, u32 rank);
/* Also of an excess rank: that of its proxy. */
u32 coll_leaf_virtual_rank(const struct coll_leaves *l, u32 rank);
u32 coll_leaf_rank(const struct coll_leaves *l, u32 vrank);
/* The excess rank of a proxy. */
u32 coll_leaf_excess_rank(const struct coll_leaves *l, u32 vrank);

/*
 * The virtual rank that sends in exchange i (0 ..) what this one would: itself, or the nearest of its
 * block that is not mute. COLL_NONE: the block has nothing, for all of it are mute from the start.
 */
u32 coll_leaf_sender(const struct coll_leaves *l, u32 vrank, u32 i);

/* The virtual rank that gives late rank `aside[i]` the result. */
u32 coll_leaf_host(const struct coll_leaves *l, u32 i);

/*
 * The tree that takes the vector of late[which] to all virtual ranks: node 0 is the late rank, the
 * others have virtual ranks. Node 1 is the rank that the late one has messages from in any case. Mute
 * ranks are the last nodes, where they have no children. The parent of a node is (node - 1) / radix.
 */
struct coll_leaf_tree {
	u32 nodes, radix;
	u32 own;		/* the late rank's virtual rank, or COLL_NONE */
	u32 speaking, first;	/* nodes that are not mute; the number of node 1 among them */
};

enum { COLL_LEAF_RADIX = 4 };		/* children, by default */

struct coll_leaf_tree coll_leaf_tree_of(const struct coll_leaves *l, u32 which, u32 radix);
u32 coll_leaf_node_rank(const struct coll_leaves *l, const struct coll_leaf_tree *tree, u32 which,
			u32 node);
/* The node of a virtual rank. */
u32 coll_leaf_node(const struct coll_leaves *l, const struct coll_leaf_tree *tree, u32 vrank);

u32 coll_leaf_radix(const struct coll_call *call, const struct coll_tuning *tuning);

/* ---- costs ---------------------------------------------------------------- */

/* Seconds without noise. */
double coll_leaf_cost(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
		      const struct coll_machine *m);

/*
 * Mean seconds that the machine's late ranks add, where these are the leaves: what is left of their
 * lateness at the begin, and of their stops at the end.
 */
double coll_leaf_begin_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m);
double coll_leaf_stops_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m);
/* ... of late messages of and to it, where there is one alone. */
double coll_leaf_links_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m);

#endif
