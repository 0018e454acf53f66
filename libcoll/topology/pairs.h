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

#endif
