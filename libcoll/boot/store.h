/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The store: a small key-value exchange over TCP by which the ranks of a job find each
 * other. The launcher or rank 0 serves it, every rank joins it.
 *
 * Both sides must know the job's secret: each proves it by an HMAC over fresh random
 * numbers of the other. A connection without the proof is closed, logged once on stderr,
 * and has no effect. The server never blocks on a connection; sizes, connections and waits
 * are bounded.
 */
#ifndef COLL_STORE_H
#define COLL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot.h"

/* "host:port" or "[host]:port" */
enum { COLL_STORE_ADDRESS_MAX = 300 };

/* ---- serving ------------------------------------------------------------- */

struct coll_store;

/*
 * A socket that listens on `address`; port 0: any free one. A numeric host is taken as
 * given. With a name it listens on all addresses of this node, since other nodes may
 * resolve the name differently. *fd is close-on-exec.
 */
int coll_store_listen(const char *address, int *fd);

/*
 * The same at any free port: of loopback, where all ranks are on this node, or of all addresses,
 * IPv6 and IPv4, as far as the node has them.
 */
int coll_store_listen_anywhere(bool one_node, int *fd);

/* The numeric address of `fd`, as other processes of this node reach it. */
int coll_store_address(int fd, char *address, size_t bytes);

/* Serves a job on a listening socket. Takes ownership of it, also on failure. */
int coll_store_open(struct coll_store **store, int fd, int ranks, const char *job,
		    const uint8_t secret[COLL_SECRET_BYTES]);

/* Polls readable when coll_store_poll() has something to do. */
int coll_store_fd(const struct coll_store *store);

/*
 * Waits for an event, at most `timeout_ms` (-1: without limit), then serves all connections
 * without blocking.
 */
int coll_store_poll(struct coll_store *store, int timeout_ms);

/* Whether every rank has joined. */
bool coll_store_met(const struct coll_store *store);

/* The number of ranks that are connected. */
int coll_store_present(const struct coll_store *store);

/* Whether the rank is connected. */
bool coll_store_here(const struct coll_store *store, int rank);

/* Whether the rank said goodbye (not: its connection broke). */
bool coll_store_left(const struct coll_store *store, int rank);

/* Whether this process of the rank is connected. */
bool coll_store_here_as(const struct coll_store *store, int rank, uint32_t process);

/* Whether the rank has joined, and said goodbye wherever it has ended: its next process may be connected. */
bool coll_store_is_well(const struct coll_store *store, int rank);

/* Connections refused so far. Any thread may ask. */
uint64_t coll_store_refused(const struct coll_store *store);

void coll_store_close(struct coll_store *store);

/* ---- joining ------------------------------------------------------------- */

struct coll_store_client;

struct coll_store_identity {
	int rank, ranks;
	const char *job;
	const uint8_t *secret;
	uint64_t timeout;		/* ns: of a put, within 2 to 30 s; 0: 30 s */
};

/*
 * One attempt to join. COLL_STORE_TIMEOUT limits the time to reach the server, the
 * deadline that of the whole attempt. A rank may join again: its n-th stay meets the
 * others' n-th stay, with keys of its own, which the server forgets when all have been there and left.
 *
 *	-ECONNREFUSED, -ETIMEDOUT, -ECONNRESET, -EBADMSG: there is no server, it does
 *		not answer, or it is no store; may be tried again
 *	-EACCES	the secret or the job differs
 *	-EPROTO	the job has another number of ranks
 *	-EEXIST	another process is this rank
 *	-EINVAL	`address` is not an address
 */
#define COLL_STORE_TIMEOUT (2 * COLL_SECOND)
int coll_store_join(struct coll_store_client **client, const struct coll_store_identity *identity,
		    const char *address, uint64_t deadline);

/* Waits until every rank has joined. -ETIMEDOUT: `missing` lists the others, as "3, 5-7". */
int coll_store_all(struct coll_store_client *client, char *missing, size_t bytes,
		   uint64_t deadline);

/*
 * As in struct coll_boot_ops. -EEXIST: the key has another value already. After a put that was not answered in
 * time the store counts as dead.
 */
int coll_store_put(struct coll_store_client *client, const char *key, const void *value,
		   size_t bytes);
int coll_store_forget(struct coll_store_client *client, const char *key);
int coll_store_get(struct coll_store_client *client, const char *key, void *value,
		   size_t *bytes, uint64_t deadline);

/* Says goodbye. NULL is allowed. */
void coll_store_leave(struct coll_store_client *client);

#endif
