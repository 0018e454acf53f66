/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An optical switch: a table of functions, a file each. They are called by one
 * thread, one after the other, and may take their time, each wait with an end.
 *
 *	fake		no switch: takes its time, and may fail to order
 *	emul		network namespaces on this machine, joined by tc
 *	scpi		Polatis, DiCon and alike over TCP
 *	restconf	Polatis over HTTP
 *
 * The switch's ports count from 1 on both sides: light that comes in at port i of
 * one side leaves at port j of the other. A circuit is two such paths, there and
 * back, between two nodes' ports.
 */
#ifndef COLL_DAEMON_SWITCH_H
#define COLL_DAEMON_SWITCH_H

#include "core/circuit/circuit.h"

enum { SWITCH_PORTS_MAX = 1024, SWITCH_WHY = COLL_CIRCUIT_TEXT };

struct switch_order {
	enum coll_circuit_order_kind what;
	u32 circuit, serial;
	u32 port[2];			/* of the switch */
	int error;			/* what became of it */
	char why[SWITCH_WHY];
	u64 ready;			/* change() has only begun it; settle() is due then */
	u64 given, begun, moved, locked;	/* when, CLOCK_MONOTONIC */
};

struct switch_path {
	u32 in, out;
};

struct circuit_switch;

struct switch_ops {
	const char *name, *valid;	/* what its argument is, for errors */
	/* Sets `ports` if the switch says so. In `why` the reason of a failure. */
	int (*open)(struct circuit_switch *s, const char *argument, char *why);
	void (*close)(struct circuit_switch *s);
	/* The whole batch at once, those down first. Sets error and why of each. */
	void (*change)(struct circuit_switch *s, struct switch_order *order, u32 orders);
	/* Ends what change() has begun. NULL: change() is never done before it is done. */
	void (*settle)(struct circuit_switch *s, struct switch_order *order);
	/* All paths that there are, sorted or not: their number, or a negative errno. */
	int (*read)(struct circuit_switch *s, struct switch_path *path, u32 max, char *why);
	/* Takes away a path that is nobody's. */
	int (*remove)(struct circuit_switch *s, struct switch_path path);
	/* Does what is due by itself; when it is next. NULL: nothing is. */
	u64 (*tick)(struct circuit_switch *s, u64 now);
};

struct circuit_switch {
	const struct switch_ops *ops;
	u32 ports;			/* 0: not known */
	u64 timeout;			/* ns, for each answer */
	const struct switch_node {	/* for who needs more than the switch's ports */
		const char *name;
		u32 index;		/* of the node */
		u32 port;		/* of the node, from 0 */
	} *at;				/* per port of the switch, from 1; name NULL: nobody's */
	void *state;			/* the driver's own */
};

extern const struct switch_ops *const switch_drivers[];	/* up to a NULL */

/* NULL: there is none. */
const struct switch_ops *switch_find(const char *name);

/* ---- the worker ---------------------------------------------------------- */

struct switch_worker;

/* What the worker tells. */
struct switch_event {
	enum { SWITCH_BEGUN, SWITCH_DONE, SWITCH_LOST, SWITCH_DRIFT, SWITCH_TROUBLE } kind;
	struct switch_order order;	/* LOST: port; TROUBLE: why */
};

/*
 * A thread that gives orders to the switch in batches, and every `reconcile` ns reads
 * back what the switch really has. It begins with the first order; one that asks for
 * nothing will do. The switch stays the caller's.
 */
int switch_worker_start(struct switch_worker **worker, struct circuit_switch *s, u64 reconcile);
/* What the switch had at the start and is to keep. Before the first order. */
int switch_worker_adopt(struct switch_worker *worker, const u32 *port);
int switch_worker_give(struct switch_worker *worker, const struct switch_order *order);
int switch_worker_fd(const struct switch_worker *worker);	/* readable: there are events */
bool switch_worker_event(struct switch_worker *worker, struct switch_event *event);
void switch_worker_stop(struct switch_worker *worker);

u64 switch_now(void);		/* CLOCK_MONOTONIC, ns */

#endif
