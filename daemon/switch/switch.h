/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An optical switch: a table of functions, one driver a file. One thread calls them, one
 * after the other. They may block; each wait has a timeout.
 *
 *	fake		simulated: delays, and failures on request
 *	emul		network namespaces on this machine, connected by tc
 *	scpi		Polatis, DiCon and compatible ones, over TCP
 *	restconf	Polatis, over HTTP
 *
 * The switch's ports count from 1 on both sides. A path leads from port i of one side to
 * port j of the other. A circuit is two paths, one each way, between two nodes' ports.
 */
#ifndef COLL_DAEMON_SWITCH_H
#define COLL_DAEMON_SWITCH_H

#include "core/circuit/circuit.h"

enum { SWITCH_PORTS_MAX = 1024, SWITCH_WHY = COLL_CIRCUIT_TEXT };

struct switch_order {
	enum coll_circuit_order_kind what;
	u32 circuit, serial;
	u32 port[2];			/* of the switch */
	int error;			/* the result */
	char why[SWITCH_WHY];
	u64 ready;			/* change() has only begun it; settle() is due then */
	u64 given, begun, moved, locked;	/* when, CLOCK_MONOTONIC */
};

struct switch_path {
	u32 in, out;
};

struct switch_device;

struct switch_ops {
	const char *name, *valid;	/* the form of its argument, for errors */
	/* Sets `ports` if the switch reports it. `why`: the reason of a failure. */
	int (*open)(struct switch_device *s, const char *argument, char *why);
	void (*close)(struct switch_device *s);
	/* Carries out a batch, orders down first. Sets error and why of each. */
	void (*change)(struct switch_device *s, struct switch_order *order, u32 orders);
	/* Completes an order that change() has begun. NULL: change() completes all itself. */
	void (*settle)(struct switch_device *s, struct switch_order *order);
	/* All present paths, in any order: their number, or a negative errno. */
	int (*read)(struct switch_device *s, struct switch_path *path, u32 max, char *why);
	/* Removes a path that belongs to no circuit. */
	int (*remove)(struct switch_device *s, struct switch_path path);
	/* Does timed work; returns when it is due next. NULL: there is none. */
	u64 (*tick)(struct switch_device *s, u64 now);
};

struct switch_device {
	const struct switch_ops *ops;
	u32 ports;			/* 0: not known */
	u64 timeout;			/* ns, for each answer */
	const struct switch_node {	/* the node of a port, for drivers that need it */
		const char *name;
		u32 index;		/* of the node */
		u32 port;		/* of the node, from 0 */
	} *at;				/* per port of the switch, from 1; name NULL: of no node */
	void *state;			/* the driver's own */
};

extern const struct switch_ops *const switch_drivers[];	/* up to a NULL */

/* Whether the path is among those that were read. */
bool switch_has_path(const struct switch_path *path, int paths, u32 in, u32 out);

/* NULL: there is none. */
const struct switch_ops *switch_find(const char *name);

#endif
