/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Nothing hangs, and errors name the failed rank. One rank fails another in three ways: it
 * dies (its connection ends), it stands still (it does not answer), or it calls another
 * collective (its hash differs). The rank that notices first tells all ranks that it has a
 * link to, and they tell theirs. So all survivors fail with the same failed_rank, also
 * ranks that did not wait for it.
 *
 * After half of its deadline a waiting rank pings the ranks that it waits for. A rank that
 * does not answer is blamed at nine tenths of the deadline; in the last tenth the news
 * reaches all others.
 */
#ifndef COLL_HEALTH_H
#define COLL_HEALTH_H

#include "libcoll/link/link.h"

enum { HEALTH_FIRST_NS = 100000000 };	/* a wait of this length has all links read */

/*
 * Fails the group: `failed_rank` is to blame, `reporter` is another rank involved (or
 * COLL_NONE). Tells the peers. Runs end when the news has left. The first failure holds.
 */
void coll_group_fail(struct coll_group *group, int error, uint32_t failed_rank, uint32_t reporter,
		     const char *reason);

/* The peer's call differs from this rank's: fails the group with -EPROTO. */
void coll_group_mismatch(struct coll_link *link);

/* A link is lost. Its peer is blamed unless news of another failure arrives soon. */
void coll_health_lost(struct coll_link *link, int error, const char *reason);

/* The news of a group's failure, as a message. */
struct coll_header coll_health_news(const struct coll_group *group);
/* Queues that message. */
void coll_health_tell(struct coll_link *link);

/* The peer has left: fails the group if a run still needs a message from it. */
void coll_health_left(struct coll_link *link);

/* A control message has arrived. */
void coll_health_message(struct coll_link *link, const struct coll_header *header);

/* A run has completed: forgets which of its peers were pinged and whom they suspect. */
void coll_health_run_completed(const struct coll_exec *exec);

/* A completed run is checked as if it began now, until it is idle. */
void coll_health_hold(struct coll_exec *exec, uint64_t ns);

/* Checks deadlines and sends pings that are due; sets context->engine.next_check. */
void coll_health_check(struct coll_context *context, uint64_t now);

#endif
