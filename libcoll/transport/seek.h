/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Peers that are to connect to this rank, and have not. Nothing tells of such a peer's end: it
 * has no connection here. So a rank that has waited for it looks it up in the job's store, and
 * on this node watches its process. Then it asks the peer whether the group has failed there.
 * For that it connects, if need be: the peer's links use that connection, and when that ends the
 * peer has ended.
 */
#ifndef COLL_SEEK_H
#define COLL_SEEK_H

#include "libcoll/link/link.h"

/*
 * A link that is awaited: loses it if its peer has ended. `look`: the wait has been long, so the
 * peer is looked up and asked. The first time asks the store, which answers at once.
 */
void coll_seek(struct coll_link *link, uint64_t now, bool look);

#endif
