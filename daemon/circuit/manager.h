/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The manager of circuits: core/circuit with the switch below it. Above it are the clients
 * of the socket and the kernel's traffic, which request circuits; what becomes of a request
 * goes up to them through one table of functions.
 */
#ifndef COLL_DAEMON_CIRCUIT_MANAGER_H
#define COLL_DAEMON_CIRCUIT_MANAGER_H

#include <sys/types.h>

#include "daemon/switch/worker.h"
#include "delays.h"
#include "setup.h"

enum {
	CIRCUIT_HOLDERS_MAX = 256,
	CIRCUIT_LEASES_MAX = 8192,
	CIRCUIT_ROOT_PART = 16,		/* of each limit: a 16th is for root alone */
};

struct circuit_manager;
struct circuit_peer;
struct circuit_clients;
struct circuit_kernel;

/* News of the manager, upwards. */
struct circuit_listener {
	/* Of a lease of the client; of a lease of the kernel's traffic. */
	void (*client_notified)(struct circuit_manager *manager, struct circuit_peer *client,
				const struct coll_circuit_notification *notification);
	void (*kernel_notified)(struct circuit_manager *manager,
				const struct coll_circuit_notification *notification);
	/* The state of the circuit, or its requests, have changed. */
	void (*circuit_changed)(struct circuit_manager *manager, u32 circuit);
};

/* The requester of a lease: it is notified. */
struct circuit_owner {
	enum { CIRCUIT_OWNER_NONE, CIRCUIT_OWNER_CLIENT, CIRCUIT_OWNER_KERNEL } kind;
	struct circuit_peer *client;	/* CLIENT only */
};

struct circuit_job {		/* a holder: all clients with this name and key */
	char name[COLL_CIRCUIT_NAME];
	u8 key[COLL_CIRCUIT_KEY];
	uid_t user;		/* of the first: its share is used */
	u32 clients;
};

struct circuit_manager {
	struct circuit_setup setup;
	const struct circuit_listener *listener;

	struct coll_circuit_manager core;	/* on the four arrays behind it */
	struct coll_circuit_node node[CIRCUIT_NODES_MAX];
	struct coll_circuit circuit[CIRCUITS_MAX];
	struct coll_circuit_lease lease[CIRCUIT_LEASES_MAX];
	struct coll_circuit_holder holder[CIRCUIT_HOLDERS_MAX];

	struct circuit_job job[CIRCUIT_HOLDERS_MAX];
	struct circuit_owner owner[CIRCUIT_LEASES_MAX];
	u32 operator;			/* its holder, or COLL_CIRCUIT_NONE */

	struct switch_device device;
	struct switch_node at[SWITCH_PORTS_MAX + 1];
	struct switch_worker *worker;
	char why[CIRCUITS_MAX][SWITCH_WHY];	/* the switch's latest error of each */
	struct circuit_times time[CIRCUITS_MAX];
	struct circuit_delays delays;
	u64 drift, refused;

	int timer;
	u64 timer_at;			/* what it is set to */

	struct circuit_clients *clients;
	struct circuit_kernel *kernel;	/* NULL: its traffic is not held */
};

/*
 * Opens the switch. It keeps the circuits of this setup that it has, and loses all others.
 * Logs why it fails; to be closed in any case.
 */
int circuit_manager_open(struct circuit_manager *manager, const struct circuit_setup *setup,
			 const struct circuit_listener *listener);
/* Circuits that are up stay up. */
void circuit_manager_close(struct circuit_manager *manager);

/* After events: gives the orders and the notifications that follow, and sets the timer. */
void circuit_manager_follow(struct circuit_manager *manager);
/* What the switch has done; when switch_worker_fd() is readable. */
void circuit_manager_switch_events(struct circuit_manager *manager);
/* When `timer` is readable. */
void circuit_manager_timer_expired(struct circuit_manager *manager);

/*
 * Whether a user that has `has` of `max` things, of which all users have `taken`, may have one
 * more: it has fewer than are left. So one user gets half at most, and each further one finds
 * something left. The numbers that /etc/subuid gives to a user count as one; those of many users
 * can have all of it but what is kept for root (user 0), who may have all.
 */
static inline bool circuit_manager_share_left(uid_t user, u32 has, u32 taken, u32 max)
{
	const u32 most = user ? max - max / CIRCUIT_ROOT_PART : max;

	return taken < most && (!user || has < most - taken);
}

/*
 * coll_circuit_request(), for an owner that hears of the lease. -EDQUOT: the holder's user has
 * its share of requests.
 */
int circuit_manager_request(struct circuit_manager *manager, struct circuit_owner owner, u32 holder,
			    u32 node, u32 peer, u32 flags, u64 session, u64 timeout, u64 cookie,
			    u32 *lease);
void circuit_manager_release(struct circuit_manager *manager, u32 lease);
/*
 * The holder of this name and key, made if it is new; COLL_CIRCUIT_NONE: the user has its share
 * of holders. Left by _leave(). A key of zeros: the user's holder of this name.
 */
u32 circuit_manager_join(struct circuit_manager *manager, const char *name,
			 const u8 key[COLL_CIRCUIT_KEY], uid_t user, u32 priority);
void circuit_manager_leave(struct circuit_manager *manager, u32 holder);
/* The node has the first `ports` of its ports from now on. */
void circuit_manager_set_ports(struct circuit_manager *manager, u32 node, u32 ports);

#endif
