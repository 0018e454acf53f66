/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The messages between the store's server and its clients. Numbers are little-endian.
 *
 *	client: hello			its rank, its nonce
 *	server: challenge		its nonce, its proof (libcoll/base/handshake.h)
 *	client: proof
 *	server: welcome			0 or a negative errno
 *	client: request, key, value	one at a time
 *	server: reply, value
 */
#ifndef COLL_STORE_WIRE_H
#define COLL_STORE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include "store_value.h"

#define STORE_MAGIC "collsto4"	/* the last character is the version */

enum {
	STORE_MAGIC_BYTES = 8,
	STORE_JOB_BYTES = 64,
	STORE_VALUE_MAX = STORE_VALUE_SEALED_MAX,
};

struct coll_store_hello {
	char magic[STORE_MAGIC_BYTES];
	uint32_t rank, ranks;
	uint32_t process;		/* pid: two processes cannot be one rank */
	uint32_t zero;
	char job[STORE_JOB_BYTES];	/* padded with zeroes */
	uint8_t nonce[COLL_NONCE_BYTES];
};

struct coll_store_challenge {
	char magic[STORE_MAGIC_BYTES];
	struct coll_challenge challenge;
};

struct coll_store_welcome {
	int32_t status;
	uint32_t ranks;
};

enum coll_store_verb {
	STORE_PUT = 1,		/* key, value */
	STORE_GET,		/* key; answered when it is there or after wait_ms */
	STORE_ALL,		/* answered when all have joined; else with the missing ranks */
	STORE_LEAVE,		/* no reply */
	STORE_FORGET,		/* key */
	STORE_VERBS,
};

struct coll_store_request {
	uint32_t verb;
	uint32_t key_bytes, value_bytes;
	uint32_t wait_ms;
};

struct coll_store_reply {
	int32_t status;
	uint32_t bytes;
};

enum {
	STORE_REQUEST_MAX =
		sizeof(struct coll_store_request) + COLL_BOOT_KEY_MAX + STORE_VALUE_MAX,
	STORE_REPLY_MAX = sizeof(struct coll_store_reply) + STORE_VALUE_MAX,
};

/* The key that both sides prove to have. */
void coll_store_key(uint8_t key[COLL_KEY_BYTES], const uint8_t secret[COLL_SECRET_BYTES]);

/* Converts a request to host order; false: it is malformed. */
bool coll_store_request_read(struct coll_store_request *request, const void *wire);

struct addrinfo;

/*
 * Splits "host:port" or "[host]:port"; *port points into `address`. -EINVAL, also for a
 * bare IPv6 address, which is ambiguous.
 */
int coll_store_split(const char *address, char *host, size_t bytes, const char **port);

/*
 * A name takes as long as the resolver does; a number is resolved at once. -ENOENT: nobody knows
 * the name (yet). -EAGAIN: who should know does not answer.
 */
int coll_store_resolve(const char *address, bool listening, struct addrinfo **found);

#endif
