/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The clients of the manager: connections to its socket (uapi/coll_circuit.h). Any user may
 * connect. No user hurts another: one that is not root gets a connection, a job or a request
 * only while it has fewer of them than are left for all others, and a 16th is left for root. A user's
 * subordinate numbers count as one user (subuid.h). When
 * there are no more connections, one that has neither a job nor watches makes way for another.
 */
#ifndef COLL_DAEMON_CIRCUIT_CLIENTS_H
#define COLL_DAEMON_CIRCUIT_CLIENTS_H

#include <sys/types.h>

#include "manager.h"

enum { CIRCUIT_READ_MESSAGES = 8 };

/* What one user, or all that count as it, have had of colld's time. */
struct circuit_account {
	struct circuit_account *next;
	uid_t user;
	u32 clients;		/* of this user; 0: freed when nothing is spent any more */
	u32 spent;		/* messages, received and sent */
	u64 since;
};

struct circuit_peer {
	struct circuit_peer *next;
	int fd;
	uid_t user;
	uid_t counts_as;	/* for its share: colld_subuid_counts_as() */
	struct circuit_account *account;
	bool held;		/* it is not read before circuit_clients_refill() */
	u32 holder, node;	/* COLL_CIRCUIT_NONE: before its HELLO */
	bool large;		/* its queue holds a list of all circuits */
	bool watches, broken;
	size_t got;
	struct coll_circuit_message message[CIRCUIT_READ_MESSAGES];
};

/* Why a connection is dropped. */
enum circuit_drop { CIRCUIT_DROP_LIMIT, CIRCUIT_DROP_PROTOCOL, CIRCUIT_DROP_DESCRIPTORS, CIRCUIT_DROPS };

struct circuit_clients {
	struct circuit_peer *first;	/* the latest comes first */
	int listener, epoll;
	int pause;		/* timer: out of descriptors or memory, no accepting until then */
	int refill;		/* timer: clients are held until then */
	struct circuit_account *account;
	u32 max;
	u64 dropped[CIRCUIT_DROPS];
};

/*
 * Listens at the socket of the setup. Each connection is added to `epoll`, with its client.
 * Raises the process's limit of descriptors as far as it may.
 */
int circuit_clients_open(struct circuit_manager *manager, int epoll);
int circuit_clients_fd(const struct circuit_manager *manager);	/* readable: a connection */
void circuit_clients_accept(struct circuit_manager *manager);
/* When circuit_clients_pause_fd() is readable: accepts again. */
int circuit_clients_pause_fd(const struct circuit_manager *manager);
void circuit_clients_resume(struct circuit_manager *manager);
/*
 * A user other than root has a number of messages in each 10 ms, and a connection counts as one; then its
 * clients are held. When circuit_clients_refill_fd() is readable, those that have some again are read again.
 */
int circuit_clients_refill_fd(const struct circuit_manager *manager);
void circuit_clients_refill(struct circuit_manager *manager);
void circuit_clients_close(struct circuit_manager *manager);

/* A client of this connection; NULL: no memory. */
struct circuit_peer *circuit_client_new(struct circuit_clients *clients, int fd, uid_t user);
/* Whether its user has messages left; else it is held. */
bool circuit_client_may_read(struct circuit_manager *manager, struct circuit_peer *client);

/* One line for the first of a kind, whosever it is; the rest is counted. */
void circuit_client_count_dropped(struct circuit_clients *clients, enum circuit_drop why, uid_t user);
/* Releases all that it has requested, and frees it. */
void circuit_client_disconnect(struct circuit_manager *manager, struct circuit_peer *client);
/* Makes its queue long enough for a list of all circuits; false: this user has its share of such queues. */
bool circuit_client_enlarge(struct circuit_manager *manager, struct circuit_peer *client);
/* When its connection is readable; may free the client. */
void circuit_client_read(struct circuit_manager *manager, struct circuit_peer *client);

/* For struct circuit_listener. */
void circuit_client_notify(struct circuit_manager *manager, struct circuit_peer *client,
			   const struct coll_circuit_notification *notification);
void circuit_clients_changed(struct circuit_manager *manager, u32 circuit);

#endif
