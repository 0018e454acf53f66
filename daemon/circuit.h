/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The circuit manager of colld: core/circuit/circuit.c, with a switch at one side and
 * clients at the other. The parts:
 *
 *	circuit_setup	the file that says which nodes and which switch there are
 *	circuit		the manager: one thread, one descriptor
 *	circuit_client	who asks, over the daemon socket
 *	circuit_kernel	the traffic that coll.ko holds
 *	circuit/	the switch
 */
#ifndef COLL_DAEMON_CIRCUIT_H
#define COLL_DAEMON_CIRCUIT_H

#include <stdio.h>

#include "daemon/circuit/switch.h"

enum {
	CIRCUIT_NODES_MAX = 256,
	CIRCUIT_HOLDERS_MAX = 256,
	CIRCUIT_LEASES_MAX = 8192,
	CIRCUITS_MAX = 4096,
	CIRCUIT_ARGUMENT = 512,
};

/* ---- circuit_setup ------------------------------------------------------- */

struct circuit_node {
	char name[COLL_CIRCUIT_NAME];
	u32 ports;
	u32 port[COLL_CIRCUIT_PORTS_MAX];	/* of the switch */
	u8 address[16];			/* for the module */
	int address_bytes;		/* 4, 16, or 0: not said */
};

struct circuit_setup {
	char socket[108];
	char driver[16], argument[CIRCUIT_ARGUMENT];
	u64 reconcile;			/* ns between two looks at the switch */
	struct coll_circuit_policy policy;
	u32 kernel;			/* the node whose traffic coll.ko holds; or NONE */
	u8 kernel_prefix;		/* of its addresses */
	u32 nodes;
	struct circuit_node node[CIRCUIT_NODES_MAX];
};

/* 0, or -errno and in `why` the line and what is valid. */
int circuit_setup_read(const char *path, struct circuit_setup *setup, char *why, size_t bytes);

/* ---- circuit ------------------------------------------------------------- */

struct colld_circuits;

/* Says itself why it fails. Takes over what the switch has and is of this setup. */
int colld_circuits_open(struct colld_circuits **circuits, const struct circuit_setup *setup);
int colld_circuits_fd(const struct colld_circuits *circuits);	/* readable: it is its turn */
void colld_circuits_turn(struct colld_circuits *circuits);
void colld_circuits_metrics(const struct colld_circuits *circuits, FILE *to);
/* What is lit stays lit. */
void colld_circuits_close(struct colld_circuits *circuits);

/* ---- between circuit and circuit_client ---------------------------------- */

struct circuit_client;

struct circuit_job {		/* a holder: all clients that gave this name */
	char name[COLL_CIRCUIT_NAME];
	u32 clients;
};

/* The latest reconfiguration delays: their parts, and two figures of the whole. */
enum circuit_delay {
	CIRCUIT_DELAY_QUEUE,
	CIRCUIT_DELAY_SWITCH,
	CIRCUIT_DELAY_LOCK,
	CIRCUIT_DELAY_NOTIFY,
	CIRCUIT_DELAY_ALL,
	CIRCUIT_DELAY_SAMPLED,
	CIRCUIT_DELAY_P90 = CIRCUIT_DELAY_SAMPLED,	/* of ALL */
	CIRCUIT_DELAYS,
};
enum { CIRCUIT_SAMPLES = 64 };

struct colld_circuits {
	struct circuit_setup setup;
	struct coll_circuit_manager c;
	struct coll_circuit_node node[CIRCUIT_NODES_MAX];
	struct coll_circuit circuit[CIRCUITS_MAX];
	struct coll_circuit_lease lease[CIRCUIT_LEASES_MAX];
	struct coll_circuit_holder holder[CIRCUIT_HOLDERS_MAX];
	struct circuit_job job[CIRCUIT_HOLDERS_MAX];
	struct circuit_client *owner[CIRCUIT_LEASES_MAX];
	bool is_kernels[CIRCUIT_LEASES_MAX];
	struct circuit_kernel *kernel;	/* NULL: its traffic is not held */
	char why[CIRCUITS_MAX][SWITCH_WHY];	/* what the switch said of each, last */
	struct circuit_times {		/* of the latest set-up; `given` 0: of none */
		u64 given, begun, moved, locked;
	} time[CIRCUITS_MAX];
	struct circuit_switch s;
	struct switch_node at[SWITCH_PORTS_MAX + 1];
	struct switch_worker *worker;
	struct circuit_client *clients;
	int epoll, listener, timer;
	u64 next;			/* what the timer is set to */
	u32 operator;			/* its holder, or COLL_CIRCUIT_NONE */
	u64 drift, refused;
	u64 sample[CIRCUIT_DELAY_SAMPLED][CIRCUIT_SAMPLES];	/* ns */
	u64 samples;
};

/* New orders, news and the next tick: after events. */
void circuits_follow(struct colld_circuits *circuits);
/* Number of the node, or COLL_CIRCUIT_NONE. */
u32 coll_circuits_node(const struct colld_circuits *circuits, const char *name);
/* Of the latest samples: the median of a part, or the 90th percentile of the whole. */
u64 circuits_sampled(const struct colld_circuits *circuits, enum circuit_delay which);

int circuit_kernel_open(struct colld_circuits *circuits);
int circuit_kernel_fd(const struct colld_circuits *circuits);
void circuit_kernel_read(struct colld_circuits *circuits);
void circuit_kernel_tell(struct colld_circuits *circuits,
			 const struct coll_circuit_notification *told);
void circuit_kernel_close(struct colld_circuits *circuits);

int circuit_clients_open(struct colld_circuits *circuits);
void circuit_clients_accept(struct colld_circuits *circuits);
void circuit_client_read(struct colld_circuits *circuits, struct circuit_client *client);
void circuit_client_tell(struct colld_circuits *circuits, struct circuit_client *client,
			 const struct coll_circuit_notification *told);
/* To all that watch. */
void circuit_clients_changed(struct colld_circuits *circuits, u32 circuit);
void circuit_clients_close(struct colld_circuits *circuits);

#endif
