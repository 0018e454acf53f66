/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which ranks are near each other. Rank 0's option `clusters` says how that is found: from
 * its text, from the names of clusters on each rank, or by measurement.
 */
#ifndef COLL_TOPOLOGY_H
#define COLL_TOPOLOGY_H

#include "libcoll/link/link.h"

/*
 * Sets the clusters of the world from rank 0's `how`, unless they are measured later. `why`
 * has the reason of a failure.
 */
int coll_topology_learn(struct coll_context *context, const char *how, char *why, size_t why_bytes);

/* Whether they are measured. That needs the world and makes links. Collective. */
bool coll_topology_is_measured(const char *how);
int coll_topology_measure(struct coll_context *context, const char *how);

#endif
