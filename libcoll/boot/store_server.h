/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Private to the store's server: what store.c, store_connection.c and store_request.c share. */
#ifndef COLL_STORE_SERVER_H
#define COLL_STORE_SERVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "store.h"
#include "store_table.h"
#include "store_wire.h"

enum { COLL_STORE_SOURCE_BYTES = 8 };

struct coll_store_connection {
	int fd;				/* -1: closed, to be freed at the end of this poll */
	int rank;			/* -1: not authenticated yet */
	uint32_t stay;
	enum coll_store_verb waits;	/* STORE_GET or STORE_ALL, or 0 */
	uint32_t watched;		/* epoll events asked for */
	uint64_t deadline;		/* of its hello or its wait */
	uint32_t in_bytes, out_bytes, out_sent;
	bool challenged;		/* a rank of -1 that has said hello */
	uint8_t source[COLL_STORE_SOURCE_BYTES];
	struct coll_store_hello hello;
	struct coll_store_challenge challenge;
	uint8_t in[STORE_REQUEST_MAX];
	uint8_t out[STORE_REPLY_MAX];
	char from[INET6_ADDRSTRLEN + 16];
};

/* The connections of one rank. */
struct coll_store_member {
	uint32_t joins, leaves;		/* leaves: with a goodbye */
	uint32_t present;		/* connections now */
	uint32_t process;		/* which opened them */
};

struct coll_store {
	int listen_fd, epoll_fd, timer_fd;
	int ranks;
	char job[STORE_JOB_BYTES];
	uint8_t key[COLL_KEY_BYTES];
	struct coll_store_member *member;
	struct coll_store_connection **connection;	/* oldest first */
	int connections, capacity;
	uint64_t pause_until;		/* until then it does not accept; 0: it accepts */
	bool told_lack;			/* that it has no descriptors, or no memory, for more */
	uint64_t refused;
	struct coll_store_table table;
};

/* ---- store_crowd.c ---------------------------------------------------------- */

/*
 * The host that an address belongs to, as far as it can be told: the first 64 bits of IPv6,
 * all of IPv4. All loopback addresses are one: a user of this node has all of them.
 */
void coll_store_source(uint8_t source[COLL_STORE_SOURCE_BYTES], const struct sockaddr *from);
/*
 * Of the unauthenticated connections of one source that are equally far (all silent, or all
 * challenged), the largest crowd loses its oldest; NULL: there are none. So a source that sends
 * many pays for itself, and those that only connect do not cost a rank its handshake.
 */
struct coll_store_connection *coll_store_crowded(const struct coll_store *store);

/* ---- store_connection.c ---------------------------------------------------- */

/* The number of stays that every rank has begun: the least number of joins. */
uint32_t coll_store_stays_complete(const struct coll_store *store);
static inline bool coll_store_closed(const struct coll_store_connection *c)
{
	return c->fd < 0;
}

/* Closes it; it is freed at the end of this poll. The values of its stay go with the last one of that. */
void coll_store_disconnect(struct coll_store *store, struct coll_store_connection *c);
/* Closes it. Logs the first refusal; later ones are only counted. */
void coll_store_refuse(struct coll_store *store, struct coll_store_connection *c,
		       const char *reason);
/* Sets the epoll events that can be handled next. */
void coll_store_watch(struct coll_store *store, struct coll_store_connection *c);
/* Sends as much of the reply as the socket accepts. */
void coll_store_flush(struct coll_store *store, struct coll_store_connection *c);
/* Answers the message in c->in. */
void coll_store_say(struct coll_store *store, struct coll_store_connection *c, const void *head,
		    size_t head_bytes, const void *body, size_t body_bytes);
void coll_store_reply(struct coll_store *store, struct coll_store_connection *c, int status,
		      const void *value, uint32_t bytes);

/* ---- store_request.c: hello and requests ----------------------------------- */

/* Reads at most one message and handles it. */
void coll_store_read(struct coll_store *store, struct coll_store_connection *c);
/* The deadline of its hello or of its wait has passed. */
void coll_store_time_out(struct coll_store *store, struct coll_store_connection *c);

#endif
