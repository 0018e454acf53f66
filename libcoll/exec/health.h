/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Nothing hangs. After half of its deadline a waiting rank pings the ranks that it waits for.
 * A rank that does not answer is blamed at nine tenths of the deadline (failure.h); in the last
 * tenth the news reaches all others.
 */
#ifndef COLL_HEALTH_H
#define COLL_HEALTH_H

#include "libcoll/link/link.h"

enum { HEALTH_FIRST_NS = 100000000 };	/* a wait of this length has all links read */

/* A control message has arrived. */
void coll_health_message(struct coll_link *link, const struct coll_header *header);

/* The event news() of links. */
struct coll_header coll_health_news(const struct coll_group *group);

/* Whether this rank's process is on this node, and has ended. */
bool coll_health_rank_has_ended(const struct coll_group *group, uint32_t rank);

/* A completed run is checked as if it began now, until it is idle. */
void coll_health_hold(struct coll_exec *exec, uint64_t ns);

/* Checks deadlines and sends pings that are due; sets context->engine.next_check. */
void coll_health_check(struct coll_context *context, uint64_t now);

#endif
