/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Nothing hangs, and errors name the rank. Three ways a rank fails another:
 * it dies (its connection ends), it stands still (it does not answer), or it
 * calls something else (its hash differs). Whoever notices first tells all
 * ranks it has a link to, and they tell theirs; so every survivor fails with
 * the same failed_rank, also those that were not waiting for it directly.
 *
 * A rank that waits asks those it waits for, from half of the deadline on,
 * whether they are there. Who does not answer is blamed at nine tenths of the
 * deadline; the tenth that is left is for the news to reach all others.
 */
#ifndef COLL_HEALTH_H
#define COLL_HEALTH_H

#include "libcoll/link/link.h"

enum { HEALTH_FIRST_NS = 100000000 };	/* a wait of this length makes watchful */

/*
 * The group fails: `failed_rank` is to blame, `reporter` another rank involved (or
 * COLL_NONE). Tells the others; runs end when the news is out. The first
 * failure holds.
 */
void coll_group_fail(struct coll_group *group, int error, uint32_t failed_rank, uint32_t reporter,
		     const char *reason);

/* The peer's call has other arguments than ours: fails the group with -EPROTO. */
void coll_group_mismatch(struct coll_link *link);

/* A link is lost; its peer is to blame if nobody tells of another soon. */
void coll_health_lost(struct coll_link *link, int error, const char *reason);

/* What a failed group's ranks are told, as a message. */
struct coll_header coll_health_news(const struct coll_group *group);
/* Queues it. */
void coll_health_tell(struct coll_link *link);

/* The peer has left: fails the group if a run still needs a message from it. */
void coll_health_left(struct coll_link *link);

/* A control message came in. */
void coll_health_message(struct coll_link *link, const struct coll_header *header);

/* A run has completed: forgets which of its peers were pinged and whom they suspect. */
void coll_health_run_completed(const struct coll_exec *exec);

/* A completed run is checked as if it began now, until it is idle. */
void coll_health_hold(struct coll_exec *exec, uint64_t ns);

/* Deadlines and pings that are due; sets context->engine.next_check. */
void coll_health_check(struct coll_context *context, uint64_t now);

#endif
