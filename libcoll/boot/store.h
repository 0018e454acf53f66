/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The store: a small key-value exchange over TCP by which the ranks of a job
 * find each other. The launcher or rank 0 serves it, every rank joins it.
 *
 * Who joins must know the job's secret, and so must who serves: both prove it by
 * an HMAC over fresh random numbers of the other. A connection that does not is
 * closed, told once on stderr, and disturbs nobody. The server never blocks on a
 * connection; sizes, connections and waits are bounded.
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
 * A socket that listens on `address`; port 0: any free one. A numeric host is
 * taken as it is; under a name we listen on all addresses of this node, since
 * other nodes may resolve it differently. *fd is close-on-exec.
 */
int coll_store_listen(const char *address, int *fd);

/* The numeric address `fd` is bound to, as other processes of this node reach it. */
int coll_store_address(int fd, char *address, size_t bytes);

/* Serves a job on a listening socket, which it owns from then on, also on failure. */
int coll_store_open(struct coll_store **store, int fd, int ranks, const char *job,
		    const uint8_t secret[COLL_SECRET_BYTES]);

/* Polls readable when coll_store_poll() has something to do. */
int coll_store_fd(const struct coll_store *store);

/*
 * Waits at most `timeout_ms` (-1: until something happens), then does what there
 * is to do, without blocking on anybody.
 */
int coll_store_poll(struct coll_store *store, int timeout_ms);

/* Every rank has been here. */
bool coll_store_met(const struct coll_store *store);

/* Ranks that are connected now. */
int coll_store_present(const struct coll_store *store);

/* The rank is connected now. */
bool coll_store_here(const struct coll_store *store, int rank);

/* The rank was here and said good-bye (not: its connection broke). */
bool coll_store_left(const struct coll_store *store, int rank);

/* Connections refused so far. */
uint64_t coll_store_refused(const struct coll_store *store);

void coll_store_close(struct coll_store *store);

/* ---- joining ------------------------------------------------------------- */

struct coll_store_client;

struct coll_store_who {
	int rank, ranks;
	const char *job;
	const uint8_t *secret;
};

/*
 * One attempt to join. How long it may take to reach the server is bounded by
 * COLL_STORE_PATIENCE, all of it by the deadline. A rank may join again: its
 * n-th stay meets the others' n-th stay, with keys of their own.
 *	-ECONNREFUSED, -ETIMEDOUT, -ECONNRESET, -EBADMSG: nobody, nobody who
 *		answers, or somebody else is there; may be tried again
 *	-EACCES	the secret or the job is another
 *	-EPROTO	the job has another number of ranks
 *	-EEXIST	another process is this rank
 *	-EINVAL	`address` is not an address
 */
#define COLL_STORE_PATIENCE (2 * COLL_SECOND)
int coll_store_join(struct coll_store_client **client, const struct coll_store_who *who,
		    const char *address, uint64_t deadline);

/*
 * Waits until every rank has joined. -ETIMEDOUT: `missing` says which have not,
 * as "3, 5-7".
 */
int coll_store_all(struct coll_store_client *client, char *missing, size_t bytes,
		   uint64_t deadline);

/* As in struct coll_boot_ops. -EEXIST: the key has another value already. */
int coll_store_put(struct coll_store_client *client, const char *key, const void *value,
		   size_t bytes);
int coll_store_get(struct coll_store_client *client, const char *key, void *value,
		   size_t *bytes, uint64_t deadline);

/* Says good-bye. NULL is allowed. */
void coll_store_leave(struct coll_store_client *client);

#endif
