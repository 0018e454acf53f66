/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Accepted connections that are nobody's until the handshake has authenticated the peer.
 * Unauthenticated ones are few; after a time they are dropped, the oldest first.
 */
#ifndef COLL_PENDING_H
#define COLL_PENDING_H

#include "libcoll/link/context.h"

/* A connection has been accepted: takes the descriptor. */
void coll_pending_add(struct coll_context *context, int fd, uint64_t now);
/* Drops the connection that has been silent longest, if since before this time. */
bool coll_pending_drop_silent(struct coll_context *context, uint64_t since);
/* Refuses those that do not prove themselves in time. */
void coll_pending_check(struct coll_context *context, uint64_t now);
/* When the next one is late; COLL_FOREVER: none will be. */
uint64_t coll_pending_due(const struct coll_context *context);
void coll_pending_drop_all(struct coll_context *context);

/* Whether a connection is here whose proof, which has arrived, may make it one of this link's peer. */
bool coll_pending_expects(const struct coll_link *link);

#endif
