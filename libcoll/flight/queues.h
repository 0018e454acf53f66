/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The queues of ranks' TCP connections. The kernel lists those of all processes of a network
 * namespace, and looks at its whole table for that: so all ranks are looked up in one reading.
 */
#ifndef COLL_FLIGHT_QUEUES_H
#define COLL_FLIGHT_QUEUES_H

#include "find.h"

/* A rank's socket. */
struct coll_flight_socket {
	uint64_t space, inode;		/* the network namespace's */
	struct coll_flight_seen *seen;
};

struct coll_flight_sockets {
	struct coll_flight_socket *socket;
	size_t count, capacity;
};

/* Of a rank that ends meanwhile, or where memory lacks, there are none. */
void coll_flight_sockets_add(struct coll_flight_sockets *sockets, struct coll_flight_seen *seen,
			     const struct coll_flight_found *found);
/* Tells each rank its queues, and frees the list. */
void coll_flight_sockets_look(struct coll_flight_sockets *sockets);

#endif
