/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which ranks share a node, and which of these an L3 cache. Rank 0's option `levels` says how that
 * is found: "auto" by what each rank tells of its machine, "flat" not at all, or the sizes of runs
 * of ranks: "4+4" for nodes, "4+4/2+2+2+2" for nodes and domains (algo/common/runs.h).
 */
#ifndef COLL_TOPOLOGY_LEVELS_H
#define COLL_TOPOLOGY_LEVELS_H

#include "libcoll/link/link.h"

/* Whether `how` has sizes, which count also where all ranks are on one node. */
bool coll_levels_are_sizes(const char *how);

/*
 * Tells the other ranks this rank's node and L3. After coll_listen(), before the fence of the
 * addresses; nothing where one node has all ranks.
 */
int coll_levels_announce(struct coll_context *context);

/*
 * Sets each rank's node and domain from rank 0's `how`. `why` has the reason of a failure.
 * Collective, unless `how` names sizes or `one_node` is true.
 */
int coll_levels_learn(struct coll_context *context, const char *how, bool one_node, char *why,
		      size_t why_bytes);

#endif
