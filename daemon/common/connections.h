/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The connections of the door for HTTP. No peer has so many that others have none; all users of this node leave
 * some for root and other hosts, however many user numbers one of them has; and each is cut off by a deadline,
 * however slowly its client goes on.
 */
#ifndef COLL_DAEMON_CONNECTIONS_H
#define COLL_DAEMON_CONNECTIONS_H

#include "core/port.h"

enum {
	COLLD_CONNECTIONS = 32,		/* at once ... */
	COLLD_CONNECTIONS_PEER = 8,	/* ... of one peer, and fewer than are left for it */
	COLLD_CONNECTIONS_KEPT = 4,	/* ... for who is no user of this node but root */
};

struct colld_connection {
	int fd;				/* its owner is the library; -1: free */
	u64 who;			/* peer.h */
	u64 until;			/* colld_now(); 0: it waits for colld */
};

struct colld_connections {
	struct colld_connection one[COLLD_CONNECTIONS];
	u64 refused, slow;
};

void colld_connections_init(struct colld_connections *all);
/* NULL: it has too many, and was cut off. */
struct colld_connection *colld_connections_add(struct colld_connections *all, int fd);
void colld_connections_remove(struct colld_connection *one);
/* A request has come; it is sent an answer; another may come. */
void colld_connection_waits(struct colld_connection *one);
void colld_connection_is_sent(struct colld_connection *one);
void colld_connection_is_free(struct colld_connection *one);
/* Cuts those off whose time is over. */
void colld_connections_expire(struct colld_connections *all);
u32 colld_connections_count(const struct colld_connections *all);

#endif
