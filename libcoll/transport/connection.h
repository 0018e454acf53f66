/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A connection between two processes: its socket and its address. */
#ifndef COLL_LINK_CONNECTION_H
#define COLL_LINK_CONNECTION_H

#include <sys/socket.h>

#include "libcoll/link/context.h"

struct coll_address {
	struct sockaddr_storage socket;
	socklen_t bytes;
};

/* A connection at the end of its handshake: the peer is authenticated. */
struct coll_connected {
	int fd;
	struct coll_seal *seal;		/* or NULL */
	struct coll_memory *memory;	/* that the bytes go through, or NULL */
};

/* Parses an IPv4 or IPv6 address. -EINVAL: it is none. */
int coll_address_parse(struct coll_address *address, const char *text, uint16_t port);

/*
 * A TCP socket that is not paced. Loopback has no congestion, and pacing costs timers
 * there; a connection that began with bbr stays paced. So all begin with reno. Connections
 * that leave the machine take another congestion control when they are up: to other clusters
 * the system's, to other nodes of the cluster also, unless that paces.
 */
int coll_connection_socket(struct coll_context *context, int family);
/* Whether a socket may have this congestion control: 0, -ENOENT, or -EPERM: not this process's. */
int coll_connection_try_congestion(const char *name);
/* Whether the peer is on this very machine and in this network namespace, by its address. */
bool coll_connection_is_local(int fd);
/* Sets the context's options on a connection's socket. */
void coll_connection_tune(const struct coll_context *context, int fd);

/*
 * How long the peer's host may leave a connection without an answer, an attempt to connect too: for the deadline;
 * or if `hurries` for 3 s: a host answers an attempt whatever the process there does, unless too many wait for that.
 */
void coll_connection_set_patience(const struct coll_context *context, int fd, bool hurries);

/* Sets what depends on the peer: its rank in the job. The connection is up. */
void coll_connection_tune_peer(struct coll_context *context, int fd, uint32_t world);

#endif
