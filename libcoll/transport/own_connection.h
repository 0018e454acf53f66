/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A transport: a connection of the link alone. For what the kernel of either side takes over,
 * and for what is measured. The lower rank connects, the higher accepts.
 */
#ifndef COLL_OWN_CONNECTION_H
#define COLL_OWN_CONNECTION_H

#include "libcoll/link/link.h"

struct coll_connected;

extern const struct coll_transport coll_own_connection;

/*
 * The connection is up: of a link that will have so many streams, or of one of these streams.
 * -errno: all of it is still the caller's. If the floor above
 * cannot use the link, the link is lost.
 */
int coll_own_connection_attach(struct coll_link *link, uint32_t streams,
			       const struct coll_connected *connected);

#endif
