/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Memory for a connection between two processes of a node (engine/memory.h). The connecting side
 * makes it and sends it with its proof, over a Unix socket; the accepting side maps it, seals it,
 * checks it, and says so with one byte. It has no name, and is gone when both processes are.
 *
 * Once both have mapped it neither can take pages out of it again, which the other would put back by
 * touching it, on its own cgroup's account. So the accepting side seals that, and the other one looks.
 */
#ifndef COLL_SHARED_MEMORY_H
#define COLL_SHARED_MEMORY_H

#include "connection.h"

/* The local address of a process, by the job's key and what the process has published. */
void coll_local_address(struct coll_address *address, const uint8_t key[COLL_KEY_BYTES],
			const uint8_t process[COLL_PROCESS_BYTES]);
/* Whether this process listens there: the option `memory` and others allow it. */
bool coll_listens_for_memory(const struct coll_context *context);
/* Whether the process at the other end of it is of this user, or root's. */
bool coll_local_peer_is_trusted(int fd);

/* Ranks on this node, or more: all of the job where the launcher does not say how many. */
uint64_t coll_ranks_here(const struct coll_context *context);
/*
 * Whether the memory cgroups of this process have enough left for one more of each rank of the node,
 * and for what else they may take. Else TCP it is: what waits in a Unix socket counts in the cgroup, too.
 */
bool coll_shared_memory_is_left(const struct coll_context *context);
/*
 * Memory of its own for a connection; *fd is to be sent to the peer, and closed when
 * it has taken it. NULL: there is
 * none to be had, and the bytes go over the socket.
 */
struct coll_memory *coll_shared_memory_make(const struct coll_context *context, int *fd);
/* Peers may map the regions of this process' arena (engine/shared_arena.h), which it has none of yet. */
void coll_shared_memory_offer(struct coll_context *context);
/*
 * That of the peer, which is sealed by that. Takes the descriptor. NULL: it is not what make() makes, or
 * cannot be mapped.
 */
struct coll_memory *coll_shared_memory_take(int fd);
/* What the peer has taken: whether it is sealed, and all of it is there. */
bool coll_shared_memory_is_kept(int fd);

#endif
