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

struct switch_device;

struct switch_ops {
	const char *name, *valid;	/* what its argument is, for errors */
	/* Sets `ports` if the switch says so. In `why` the reason of a failure. */
	int (*open)(struct switch_device *s, const char *argument, char *why);
	void (*close)(struct switch_device *s);
	/* The whole batch at once, those down first. Sets error and why of each. */
	void (*change)(struct switch_device *s, struct switch_order *order, u32 orders);
	/* Ends what change() has begun. NULL: change() is never done before it is done. */
	void (*settle)(struct switch_device *s, struct switch_order *order);
	/* All paths that there are, sorted or not: their number, or a negative errno. */
	int (*read)(struct switch_device *s, struct switch_path *path, u32 max, char *why);
	/* Takes away a path that is nobody's. */
	int (*remove)(struct switch_device *s, struct switch_path path);
	/* Does what is due by itself; when it is next. NULL: nothing is. */
	u64 (*tick)(struct switch_device *s, u64 now);
};

struct switch_device {
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

#endif
