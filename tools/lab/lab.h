/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The network lab: clusters of nodes on this machine. Each node is a process in a
 * network namespace of its own; switches and the WAN are in the lab's. Nothing has
 * a name outside, so all of it is gone with the last process; and all processes are
 * in a PID namespace whose first is the lab, so none outlives it, however it ends.
 *
 *	lab_net		namespaces, switches, links
 *	lab_wan		the WAN: a forwarder that delays and limits
 *	lab_circuits	an optical switch, and colld that drives it
 *	lab_check	whether the WAN is as it should be
 */
#ifndef COLL_LAB_H
#define COLL_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	LAB_CLUSTERS_MAX = 8,
	LAB_NODES_MAX = 250,		/* of a cluster, and in all */
	LAB_RAILS_MAX = 4,
	LAB_EVENTS_MAX = 8,
	LAB_PORTS_MAX = 16,
	LAB_NAMESPACE_FD = 500,		/* a node's, of its own namespace */
};

struct lab_event {
	double after;			/* seconds from the start of the ranks */
	int node;			/* whose links go down; -1: the WAN's */
};

struct lab {
	uint32_t clusters, nodes, rails;
	uint32_t size[LAB_CLUSTERS_MAX];
	double nic, wan;		/* bit/s; 0: no limit */
	double delay;			/* seconds, one way */
	double queue, port_queue;	/* bytes before the WAN; at a switch's port */
	double nic_queue;		/* bytes in a node, before its NIC */
	double loss;			/* of packets, 0 .. 1 */
	bool ipv6, netem;
	bool warm;			/* connections that were idle go on as fast as before */
	double timeout;			/* seconds; 0: none */
	struct lab_event event[LAB_EVENTS_MAX];
	uint32_t events;

	uint32_t ports;			/* for circuits, of a node; 0: there is no switch */
	double set_up;			/* seconds: of a circuit */
	char directory[32];		/* colld's */

	pid_t wan_pid, colld;
	struct lab_node {
		pid_t pid;
		int go;			/* tells it to go on */
		int said;		/* what it says: ready, or why not */
		uint32_t cluster, index;
	} node[LAB_NODES_MAX];
};

/* ---- lab_net ------------------------------------------------------------ */

/* What a node does once its network is there: never returns. */
typedef void lab_life(const struct lab *lab, uint32_t node, void *argument);

/* Calls `inside` in namespaces of its own; returns what it returned. */
int lab_enter(int (*inside)(void *argument), void *argument);

/*
 * Inside: builds everything, and starts the nodes, which wait. False: said on stderr why not.
 */
bool lab_build(struct lab *lab, lab_life *life, void *argument);
/* All nodes begin to live. */
void lab_begin(struct lab *lab);
/* Ends what is left of the lab's processes. */
void lab_end(struct lab *lab);
/* Takes links down. */
bool lab_down(const struct lab *lab, const struct lab_event *event);

/* A node's address on a rail, as text. */
void lab_address(const struct lab *lab, uint32_t node, uint32_t rail, char *text, size_t bytes);

/* ---- lab_wan ------------------------------------------------------------ */

/*
 * Forwards frames among the ports, packet sockets, until the process is ended: each
 * has a queue that is emptied at the WAN's rate, and what leaves it arrives after
 * the delay.
 */
void lab_forward(const struct lab *lab, const int *port, uint32_t ports)
	__attribute__((noreturn));

/* ---- lab_circuits -------------------------------------------------------- */

/* Before its nodes start, which are to know where colld will be. */
bool lab_circuits_prepare(struct lab *lab);
/* Of a lab that is built: colld manages the nodes' ports. False: said on stderr why not. */
bool lab_circuits_start(struct lab *lab);
void lab_circuits_end(struct lab *lab);

/* ---- lab_check ---------------------------------------------------------- */

struct lab_measured {
	double delay, delay_worst;	/* seconds, one way: the median, and 99 of 100 */
	double rate;			/* bit/s of frames under twice the load */
	double queue;			/* bytes that waited in front of it at most */
	double lost;			/* of that load's packets */
};

/* Between two clusters, with packets of its own. The lab must not limit NICs. */
bool lab_check(struct lab *lab, struct lab_measured *measured);

#endif
