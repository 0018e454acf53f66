/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Errors name the failed rank. One rank fails another in three ways: it dies (its connection
 * ends), it stands still (it does not answer; health.h), or it calls another collective (its
 * hash differs). The rank that notices first tells all ranks that it has a link to, and they
 * tell theirs. So all survivors fail with the same failed_rank, also ranks that did not wait
 * for it.
 */
#ifndef COLL_FAILURE_H
#define COLL_FAILURE_H

#include "libcoll/link/link.h"

struct coll_run;

/*
 * Fails the group: `failed_rank` is to blame, `reporter` is another rank involved (or
 * COLL_NONE). Tells the peers. Runs end when the news has left. The first failure holds.
 */
void coll_group_fail(struct coll_group *group, int error, uint32_t failed_rank, uint32_t reporter,
		     const char *reason);

/*
 * A run that was started could not begin: fails the group, unless all ranks refuse this call alike. Its number is the
 * next run's, which the program may have started by now, and other ranks would take that one's messages for this
 * one's. Not needed where the program waits for this run alone, and so hears of the error before it starts another.
 */
void coll_group_lacks_run(const struct coll_run *run, int error);

/* The peer's call differs from this rank's: fails the group with -EPROTO. */
void coll_group_mismatch(struct coll_link *link);

/* A link is lost. Its peer is blamed unless news of another failure arrives soon. */
void coll_group_link_lost(struct coll_link *link, int error, const char *reason);

/* The peer has left: fails the group if a run still needs a message from it. */
void coll_group_link_left(struct coll_link *link);

/* The peer's link is gone, and a run needs it: fails the group. */
void coll_group_peer_gone(const struct coll_link *link);

/* The news of a group's failure, as a message. */
struct coll_header coll_group_news(const struct coll_group *group);
/* Queues that message. */
void coll_group_tell(struct coll_link *link);

/* Reads all links from now on, for pings and news. */
void coll_group_watch(struct coll_group *group);

/* The one place where a group's state changes: OK -> FAILING -> FAILED. */
void coll_group_set_state(struct coll_group *group, enum coll_group_state state);

#endif
