/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The network lab: clusters of nodes on this machine. Each node is a process in its own network
 * namespace; switches and the WAN are in the lab's namespace. No namespace has a name, so the last
 * process takes all of it with it. All processes are in a PID namespace with the lab as its init,
 * so none outlives it, however it ends.
 *
 *	net.c		namespaces, switches, links
 *	wan.c		the WAN: a forwarder that delays and limits
 *	circuits.c	an optical switch, and colld that drives it
 *	check.c		measures whether the WAN is as requested
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
};

struct lab_event {
	double after;			/* seconds from the start of the ranks */
	const char *file;		/* or, if not NULL: when there is this file */
	int node;			/* whose links go down; -1: the WAN's */
};

struct lab {
	uint32_t clusters, nodes, rails;
	uint32_t size[LAB_CLUSTERS_MAX];
	double nic, wan;		/* bit/s; 0: no limit */
	double delay;			/* seconds, one way */
	double queue, port_queue;	/* bytes: queue of the WAN; of a switch's port */
	double nic_queue;		/* bytes: queue of a node, before its NIC */
	double loss;			/* share of packets, 0 to 1 */
	bool ipv6, netem;
	bool warm;			/* idle connections keep their rate */
	double timeout;			/* seconds; 0: none */
	struct lab_event event[LAB_EVENTS_MAX];
	uint32_t events;

	uint32_t ports;			/* optical ports of a node; 0: no switch */
	double set_up;			/* seconds: reconfiguration delay of a circuit */
	char directory[32];		/* colld's files */

	pid_t wan_pid, colld;
	struct lab_node {
		pid_t pid;
		int go;			/* the node reads: go on */
		/* The node writes: ready; end of file: it failed. As the node's descriptor: its namespace. */
		int ready;
		int namespace;		/* while its devices are made */
		uint32_t cluster, index;
	} node[LAB_NODES_MAX];
};

/* ---- lab_net ------------------------------------------------------------ */

/* Runs in a node's process when its network is configured. Never returns. */
typedef void lab_node_main(const struct lab *lab, uint32_t node, void *argument);

/* Calls `inside` in new namespaces; returns its result. */
int lab_enter(int (*inside)(void *argument), void *argument);

/*
 * Inside: builds the network and starts the nodes' processes, which wait. False: stderr has the
 * reason.
 */
bool lab_build(struct lab *lab, lab_node_main *node_life, void *argument);
/* A descriptor of the node's network namespace, closed in exec. -1: stderr has the reason. */
int lab_namespace(const struct lab *lab, uint32_t node);
/* Lets all nodes go on. */
void lab_begin(struct lab *lab);
/* Ends all processes of the lab. */
void lab_end(struct lab *lab);
/* Takes the event's links down. */
bool lab_down(const struct lab *lab, const struct lab_event *event);

/* Address of a node on a rail, as text. */
void lab_address(const struct lab *lab, uint32_t node, uint32_t rail, char *text, size_t bytes);

/* ---- lab_wan ------------------------------------------------------------ */

/*
 * Forwards frames between the ports (packet sockets) until the process is killed. Each port has a
 * queue that drains at the WAN's rate; a frame arrives one delay after it left the queue.
 */
void lab_forward(const struct lab *lab, const int *port, uint32_t ports)
	__attribute__((noreturn));

/* ---- lab_circuits -------------------------------------------------------- */

/* Call before the nodes start: they inherit the path of colld's socket. */
bool lab_circuits_prepare(struct lab *lab);
/*
 * Call when the network is built: starts colld, which manages the nodes' ports. False: stderr has
 * the reason.
 */
bool lab_circuits_start(struct lab *lab);
void lab_circuits_end(struct lab *lab);

/* ---- lab_check ---------------------------------------------------------- */

struct lab_measured {
	double delay, delay_worst;	/* seconds, one way: median and 99th percentile */
	double rate;			/* bit/s of frames at twice the load */
	double queue;			/* maximum of bytes queued before the WAN */
	double lost;			/* share of that load's packets */
};

/* Measures between two clusters with packets of its own. Nodes must have no NIC limit. */
bool lab_check(struct lab *lab, struct lab_measured *measured);

#endif
