/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The processes of the peers on this node. A connection ends when its last descriptor is
 * closed: children of a killed rank keep its connections open. So the process itself is
 * watched, by one pidfd for all groups; when it has ended, its links end too.
 */
#ifndef COLL_LINK_PEER_PROCESS_H
#define COLL_LINK_PEER_PROCESS_H

#include "libcoll/link/context.h"

/* How this process is named to peers: its pid, and the pid namespace that it counts in. */
struct coll_process_id {
	uint32_t pid;
	uint64_t namespace;
};

struct coll_process_id coll_process_self(void);

/*
 * Watches the process of rank `world` of the job, on this node, from now on. 0 also where it
 * cannot be watched: another pid namespace, an old kernel, no descriptor. -ECONNRESET: it has
 * ended.
 */
int coll_peer_watch(struct coll_context *context, uint32_t world, struct coll_process_id id);
/* Whether the process of this rank is watched, or was until it ended. */
bool coll_peer_is_watched(const struct coll_context *context, uint32_t world);
/* Whether it was, and has ended. */
bool coll_peer_has_ended(const struct coll_context *context, uint32_t world);
/*
 * Who reads what is published to this rank (engine/published.h), until coll_peers_unwatch(). NULL: it is not watched.
 */
struct coll_published_process *coll_peer_reader(const struct coll_context *context, uint32_t world);
void coll_peers_unwatch(struct coll_context *context);

#endif
