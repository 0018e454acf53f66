/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which ranks are near each other. Rank 0 says how that is found (its option
 * `clusters`): from its text, from names that the ranks have, or measured.
 */
#ifndef COLL_TOPOLOGY_H
#define COLL_TOPOLOGY_H

#include "libcoll/link/link.h"

/* Of the world, from rank 0's `how`; measured later. `why` says what is wrong. */
int coll_topology_learn(struct coll_context *context, const char *how, char *why, size_t why_bytes);

/* Whether it is to be measured; needs the world, and makes links. Collective. */
bool coll_topology_is_measured(const char *how);
int coll_topology_measure(struct coll_context *context, const char *how);

#endif
