/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll.ko's attribution: it counts what takes the time of a CPU, or of one process there. A watch belongs to
 * the socket that began it, and ends with it.
 */
#ifndef COLL_NODE_WATCH_MODULE_H
#define COLL_NODE_WATCH_MODULE_H

#include "netlink.h"
#include "watched.h"

/* What a watch is asked for; zeros: not. */
struct node_watch_order {
	u32 task;			/* a process: what it runs itself is not taken */
	u32 thread;			/* of its threads the first one and this one alone; 0: all */
	u32 log;			/* events kept of each CPU */
	u64 threshold;			/* ns */
	double share;			/* of a CPU's time, that it may take: what takes more counts no more there; 0: any */
	bool yields;			/* to who asks for one of its CPUs without this */
};

/* All: 0, or -errno with netlink_reason(); -EBUSY: one of the CPUs has a watch that does not yield. */
int node_watch_begin(struct netlink *netlink, const struct node_cpus *cpus, const struct node_watch_order *order);
/* This socket's watches of these CPUs end. */
int node_watch_end(struct netlink *netlink, const struct node_cpus *cpus);
/*
 * Of this socket's watches, or of all of this node, whose ever they are. A CPU that ceased to be watched meanwhile
 * is left out, all of it. A negative result of `each` ends it.
 */
enum node_watch_whose { NODE_WATCH_OWN, NODE_WATCH_ALL };
int node_watch_read(struct netlink *netlink, enum node_watch_whose whose, node_watch_each each, void *argument);

#endif
