/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Who is at the other end of a connection, as far as limits have to tell one from another. */
#ifndef COLL_DAEMON_PEER_H
#define COLL_DAEMON_PEER_H

#include <netinet/in.h>

#include "core/port.h"

/* Its user's number on this node, or an address. */
static inline u64 colld_peer_user(u32 user)
{
	return user;
}

static inline bool colld_peer_is_user(u64 who)
{
	return !(who >> 32);
}

static inline u64 colld_peer_address(u32 address)
{
	return 1ull << 32 | address;
}

/* Nobody: an end on this node that was closed. */
#define COLLD_PEER_GONE (~(u64)0)

/*
 * Of a TCP connection. On this node the kernel says whose the other end is, so a user is one, from whatever
 * address it comes. All others of this node, and root, are 127.0.0.1;
 * whose end was closed before is COLLD_PEER_GONE. It takes a message to the kernel.
 */
u64 colld_peer_find(int fd);

#endif
