/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Pairs of ranks whose links stand for those of their class. */
#ifndef COLL_TOPOLOGY_PAIRS_H
#define COLL_TOPOLOGY_PAIRS_H

#include "libcoll/base/costs.h"

enum { PAIRS_MAX = 4 };		/* of a class: one bad link or node is outvoted */

struct coll_pair {
	uint32_t rank[2];	/* of the job */
	enum coll_link_class class;
};

/*
 * The place of each rank: numbers of its cluster, leaf switch, node and domain, each NULL if all are alike.
 * `below`: the class of links where none of them differ.
 */
struct coll_places {
	const uint32_t *cluster, *leaf, *node, *domain;
	enum coll_link_class below;
};

/*
 * Chooses at most PAIRS_MAX pairs of each class that there is, spread over the ranks, and ordered
 * by class. The same on all ranks. Costs a sort of the ranks. Returns their number, or -ENOMEM.
 */
int coll_pairs_choose(const struct coll_places *places, uint32_t ranks,
		      struct coll_pair pair[PAIRS_MAX * COLL_CLASSES]);

/* Where all ranks exchange at once, those that a rank does so with, by place. */
enum coll_partner_kind {
	PARTNER_NEXT,		/* its neighbour in its domain */
	PARTNER_ACROSS,		/* the one half of the node away, if that is of another domain */
	/*
	 * The one half of all ranks away, which is of another node, but of the same cluster: so there are none where a
	 * node has more than half of the ranks, nor with several clusters.
	 */
	PARTNER_AWAY,
	PARTNERS,
};

struct coll_partner {
	struct coll_pair pair;
	uint32_t index;		/* no other pair's; COLL_NONE: it has no partner */
	uint32_t ranks;		/* that have one, ... */
	double share;		/* ... and of a node's, the most of any node */
	uint32_t node;		/* ranks of the largest node; 0: not all ranks' partners are as they should be */
};

/* A rank's partners. Costs a sort of the ranks. Returns 0 or -ENOMEM. */
int coll_partners_choose(const struct coll_places *places, uint32_t ranks, uint32_t rank,
			 struct coll_partner partner[PARTNERS]);

struct coll_group;

/* Ends a pair's group. A rank that failed in it has failed for all, who may have no link to it. */
void coll_pair_end(struct coll_group *all, struct coll_group *group);
/* The others would wait for what this pair (NULL: this rank) is to tell. Returns the error. */
int coll_pair_failed(struct coll_group *all, const struct coll_pair *pair, int error);

#endif
