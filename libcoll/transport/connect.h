/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The connecting side of connections; listen.c has the other. Every process listens, and
 * publishes in the store
 *
 *	addr/<rank in the job> = "<node> <process> <pid>@<namespace> <links> <port> <address> ..."
 *
 * A process that needs a connection looks that up and connects: over loopback on the same
 * node (machine and network namespace), else over the addresses in turn, so connections
 * spread over a node's rails; one where nothing answers costs 3 s, unless it is the last. A
 * connection begins with a handshake (base/handshake.h). In it
 * both processes prove that they belong to the job, and the accepting one that it is the
 * process that published the address. Nothing else is sent before. The peer answers when it
 * polls its engine. <links> says which connections the process
 * takes: "own", one a link, where the kernel takes connections over; "shared"; or "memory", which
 * are shared, and within the node begin at a Unix socket and go through memory
 * (shared_memory.h).
 */
#ifndef COLL_CONNECT_H
#define COLL_CONNECT_H

#include "connection.h"

/* An attempt to connect; lives in its owner, which sets these fields. */
struct coll_connect {
	struct coll_context *context;
	uint32_t world;			/* the peer's rank in the job */
	uint32_t spread;		/* the number of the address to begin with */
	struct coll_hello hello;	/* streams, stream, from, to, group: the rest is set here */
	void *owner;
	/*
	 * Connected and authenticated: takes all of it. -errno: it is closed, and the next
	 * address is tried.
	 */
	int (*connected)(struct coll_connect *attempt, const struct coll_connected *connected);
	void (*failed)(struct coll_connect *attempt, int error);

	/* Of connect.c. */
	struct coll_watch watch;
	struct coll_challenge challenge;
	struct coll_memory *memory;	/* offered to the peer, or NULL */
	int memory_file;		/* ... until it has answered; or -1 */
	uint32_t got;			/* bytes of the challenge */
	uint32_t attempts;		/* addresses tried so far */
	uint32_t again;			/* how often the same address has been tried once more */
	int error;			/* why the latest address led nowhere */
	bool has_others;		/* there are addresses after it, which come first */
	bool left_early;		/* one of them had 3 s: its host may only have lost what was sent */
	bool patient;			/* all led nowhere: those have the deadline now */
	bool may_be_elsewhere;		/* it was loopback, of a node that says that it is another */
};

/*
 * Begins. Afterwards connected() or failed() is called, on the engine's thread, unless
 * coll_connect_abandon() comes first. -errno: it has failed already, and neither is called.
 */
int coll_connect_begin(struct coll_connect *attempt);

/*
 * Whether links to this process may share a connection. Asks the store if this is the first time
 * that the process is connected to. -ETIMEDOUT: it has not published itself yet. Other -errno.
 */
int coll_connect_shares(struct coll_context *context, uint32_t world, bool *shares);

/*
 * Looks at a process that does not connect here: 0: it is on this node, and is watched from now
 * on. -ECONNRESET: it has ended. -ENOTSUP: it cannot be watched. Other -errno: it has published
 * nothing yet, or there is no store.
 */
int coll_connect_look(struct coll_context *context, uint32_t world);

/* Stops the attempt; harmless when it has ended. */
void coll_connect_abandon(struct coll_connect *attempt);

#endif
