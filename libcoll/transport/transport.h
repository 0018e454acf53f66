/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which transport a link has: a channel of the connection that the two processes share
 * (channel.h), or a connection of its own (own_connection.h). It is decided when the link opens,
 * since it depends on what the peer's process has published.
 */
#ifndef COLL_TRANSPORT_H
#define COLL_TRANSPORT_H

#include "libcoll/link/link.h"

/* The transport of links that have not opened yet. */
extern const struct coll_transport coll_transport_undecided;

/* Opens links whose peers have published their addresses since, if context->unpublished is due. */
void coll_transport_check(struct coll_context *context, uint64_t now);

/* Links of this context have these transports. Before its first group. */
void coll_transport_begin(struct coll_context *context);

#endif
