/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The manager of circuits of a domain, without any switch. Nodes have ports; a circuit takes
 * one at both its ends. Holders (jobs, processes) request circuits; the caller carries out
 * the orders that follow and reports their results. colld, which knows all nodes, and coll.ko
 * use the same code; coll.ko knows its own node and leaves the peers' ports to others
 * (`unbounded`).
 *
 *	down ── order up ──▶ requested ──▶ switching ──▶ up ── grace ──▶ draining ──▶ down
 *	  ▲                      └── fails: order down ──▶ draining ──▶ failed ──┐
 *	  └─────────────────────────── after a pause ────────────────────────────┘
 *
 * - A port is taken from the order up until the order down is confirmed: whatever the
 *   switch does late, a node never has more circuits than ports.
 * - A port whose setup has failed is taken again when no other is free.
 * - Both ports are taken at once or none: no request waits for one port and holds another.
 * - Requests are served in this order: what is needed now before what is ahead of time,
 *   priority, the holder with the least port time, the oldest. A request that cannot be
 *   served reserves the ports that are free: later ones do not overtake it for ever.
 * - To serve it, circuits are taken down: idle ones first; then those made ahead of time,
 *   or for a lower priority; then, after a grace time, those whose lease (a guaranteed time)
 *   has expired. A holder that loses a circuit so waits for its turn again: a request ends by
 *   its release, by its deadline, or when the switch has failed too often; none is lost.
 *
 * No allocation, clock, lock or I/O: memory is the caller's, time (ns, monotonic) is passed
 * in, one caller at a time. An event costs a pass over all circuits, and one over all waiting
 * circuits for each that waits: enough for some thousands of circuits.
 */
#ifndef COLL_CORE_CIRCUIT_H
#define COLL_CORE_CIRCUIT_H

#include "core/port.h"
#include "uapi/coll_circuit.h"

#define COLL_CIRCUIT_NONE	0xffffffffu
#define COLL_CIRCUIT_FOREVER	(~(u64)0)

/* Times in ns. */
struct coll_circuit_policy {
	u64 lease;		/* guaranteed to a holder while others wait */
	u64 grace;		/* between the notification and the order down */
	u64 keep;		/* an unused circuit stays up so long */
	u64 timeout;		/* the switch has so long for an order */
	u64 retry;		/* after a failure; twice as much after the next */
	u32 retries;
	u32 limit;		/* circuits at once in the domain (wavelengths); 0: no limit */
};

/* 2 s, 20 ms, 1 s, 2 s, 50 ms, 4, no limit */
extern const struct coll_circuit_policy coll_circuit_policy_default;

struct coll_circuit_node {
	u64 ports;		/* a bit each */
	u64 taken;		/* may have bits that are not in ports any more */
	u64 suspect;		/* the latest set-up of these has failed: taken last */
	bool unbounded;		/* its ports are not managed here */
	u32 reserved;		/* used inside one pass, ... */
	bool spoken_for;	/* ... as is this: each port is reserved, or it has none */
};

struct coll_circuit_holder {
	bool known;
	u32 priority;		/* higher first */
	u32 requests;
	u64 used;		/* ns of port time */
};

/* What a holder is notified of; the latest replaces earlier ones. */
enum coll_circuit_notify {
	COLL_CIRCUIT_NOTIFY_NONE,
	COLL_CIRCUIT_NOTIFY_UP,
	COLL_CIRCUIT_NOTIFY_DRAINING,
	COLL_CIRCUIT_NOTIFY_DOWN,
	COLL_CIRCUIT_NOTIFY_ENDED,	/* with the error; the lease's number is free again */
};

struct coll_circuit_lease {	/* a request, and the lease while it is up */
	bool used;
	u8 side;		/* which end of the circuit the holder is at */
	u8 flags;		/* enum coll_circuit_request_flags */
	u8 notify;		/* enum coll_circuit_notify */
	bool up;		/* as far as its holder knows */
	int error;
	u32 circuit, holder;
	u32 was;		/* the circuit, when it is over */
	u32 next;		/* of the circuit's */
	u64 deadline;
	u64 session;		/* which of the uses of the circuit that follow each other */
	u64 ticket;		/* age; new after each time it was taken away */
	u64 cookie;		/* the caller's own */
};

enum coll_circuit_order_kind {
	COLL_CIRCUIT_NO_ORDER,
	COLL_CIRCUIT_ORDER_UP,
	COLL_CIRCUIT_ORDER_DOWN,
};

struct coll_circuit {
	bool used;
	u8 state;		/* enum coll_circuit_state */
	u8 order;		/* the order that is not fetched yet */
	bool down_ordered;		/* draining: the order down was given */
	bool passed;		/* used inside one pass */
	bool changed;		/* since it was fetched last */
	u8 port[2];
	u32 node[2];
	u32 serial;		/* of the latest order */
	u32 attempts;		/* that failed, in a row */
	int error;		/* of the latest */
	u64 since;		/* in this state */
	u64 until;		/* when the state ends by itself */
	u64 charged;
	u32 leases;		/* the first; COLL_CIRCUIT_NONE: unused */
	u32 next;		/* of its bucket */
};

enum { COLL_CIRCUIT_BUCKETS = 256 };

struct coll_circuit_manager {
	/* The caller's memory, all zero, and how much. */
	struct coll_circuit_node *node;
	struct coll_circuit *circuit;
	struct coll_circuit_lease *lease;
	struct coll_circuit_holder *holder;
	u32 nodes, circuits, leases, holders;
	struct coll_circuit_policy policy;

	/* Its own. */
	u32 bucket[COLL_CIRCUIT_BUCKETS];
	u32 made;		/* circuits that were ever used; unused ones are recycled */
	u32 free_lease;
	u32 leased;		/* leases that were ever used: none has a higher number */
	u32 with_ports;		/* circuits that have ports: `limit` is for these */
	bool orders, notifications, changes;	/* whether there may be some */
	u64 ticket;
	u64 served;		/* time of the latest pass over the waiting */
	u64 setups, failures, lost, revoked;
};

/* After the caller has set memory, sizes and policy. */
void coll_circuit_manager_init(struct coll_circuit_manager *c);

/* ---- nodes and holders ---------------------------------------------------- */

/* A node's ports from now on. Circuits on ports that it has no more are drained. */
void coll_circuit_set_ports(struct coll_circuit_manager *c, u64 now, u32 node, u64 ports);

/* A holder's number, or COLL_CIRCUIT_NONE: no room. */
u32 coll_circuit_add_holder(struct coll_circuit_manager *c, u32 priority);
/* Its requests are released, without notifications. */
void coll_circuit_remove_holder(struct coll_circuit_manager *c, u64 now, u32 holder);

/* ---- requests ------------------------------------------------------------- */

/*
 * The holder requests a circuit from the node to the peer. *lease is the request's number;
 * `cookie` comes back in its notifications. `session` names a use of the circuit: it is up
 * for one end when the other end has requested the same session, even if the circuit is up
 * already for an earlier one; else one end could finish before the other has come. The
 * request ends if it is not up by `deadline` (COLL_CIRCUIT_FOREVER: none). -EINVAL: no such
 * node or holder, or both nodes are one. -ENOSPC.
 */
int coll_circuit_request(struct coll_circuit_manager *c, u64 now, u32 holder, u32 node, u32 peer,
			 u32 flags, u64 session, u64 deadline, u64 cookie, u32 *lease);
/* Not after its news were OVER. */
void coll_circuit_release(struct coll_circuit_manager *c, u64 now, u32 lease);

struct coll_circuit_notification {
	u32 lease, circuit, holder;	/* of one that is over: which it was of */
	enum coll_circuit_notify kind;
	int error;
	u64 time;		/* UP: ns guaranteed; DRAINING: ns that are left */
	u64 cookie;
};
/* The next notification, or false. */
bool coll_circuit_next_notification(struct coll_circuit_manager *c, u64 now,
				    struct coll_circuit_notification *n);

/* ---- the switch ----------------------------------------------------------- */

struct coll_circuit_order {
	enum coll_circuit_order_kind kind;
	u32 circuit, serial;
	u32 node[2];
	u8 port[2];
};
/* The next thing that the switch is to do, or false. Orders down come first. */
bool coll_circuit_next_order(struct coll_circuit_manager *c, u64 now,
			     struct coll_circuit_order *order);

/* What became of an order; late ones, by their serial, are ignored. error: 0 or negative. */
void coll_circuit_order_begun(struct coll_circuit_manager *c, u64 now, u32 circuit, u32 serial);
void coll_circuit_order_done(struct coll_circuit_manager *c, u64 now, u32 circuit, u32 serial,
			     int error);
/* A circuit went down without an order. */
void coll_circuit_lost(struct coll_circuit_manager *c, u64 now, u32 circuit);
/* The switch has this circuit already: it is up and unused. -EBUSY: not with these ports. */
int coll_circuit_adopt(struct coll_circuit_manager *c, u64 now, u32 node, u8 port, u32 peer,
		       u8 peer_port);
/* Takes it down after the grace time; its requests wait for their turn again. */
void coll_circuit_drain(struct coll_circuit_manager *c, u64 now, u32 circuit);

/* ---- time and looking ----------------------------------------------------- */

/* When coll_circuit_tick() is due. */
u64 coll_circuit_next_tick(const struct coll_circuit_manager *c);
void coll_circuit_tick(struct coll_circuit_manager *c, u64 now);

/* COLL_CIRCUIT_NONE: none is known, so it is down. */
u32 coll_circuit_find(const struct coll_circuit_manager *c, u32 node, u32 peer);
/* The next circuit whose state has changed since it was given last, or false. */
bool coll_circuit_next_change(struct coll_circuit_manager *c, u32 *circuit);

extern const char *const coll_circuit_state_names[COLL_CIRCUIT_STATES];

#endif
