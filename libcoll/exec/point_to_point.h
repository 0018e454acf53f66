/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Point to point: tagged messages between two ranks of a group, in any order with its collectives.
 *
 * They have a second group of the same ranks, its twin, which each rank makes by itself when it
 * first needs it. Its links share the connections of all groups and carry nothing else, and both
 * groups fail together. Each send and each receive is an exec, without steps: so deadlines, pings
 * and the flight recorder are those of collectives.
 *
 * A message of up to 4 KB goes at once as long as the receiver has room for it, 64 KiB a sender,
 * and its send is done. A longer one is offered; when it is received the receiver grants it, and
 * the payload goes right to its place. Messages between two ranks are matched in the order in
 * which they were sent: uapi/coll_wire.h has the format.
 */
#ifndef COLL_POINT_TO_POINT_H
#define COLL_POINT_TO_POINT_H

#include "run.h"

/* The group's twin, made on first use. -errno: no memory, or the group has failed. */
int coll_point_group(struct coll_group *group, struct coll_group **twin);

/* Starts a planned send or receive, which may complete at once. */
int coll_point_start(struct coll_run *run, uint64_t deadline);

/* The event called_for() of links: a peer needs the twin of a group, and perhaps its link. */
void coll_point_called_for(struct coll_context *context, uint64_t id, uint32_t world);

#endif
