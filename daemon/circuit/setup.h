/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The file of colld --circuits: nodes, their ports, and the switch between them. */
#ifndef COLL_DAEMON_CIRCUIT_SETUP_H
#define COLL_DAEMON_CIRCUIT_SETUP_H

#include <stddef.h>

#include "core/circuit/circuit.h"

enum {
	CIRCUIT_NODES_MAX = 256,
	CIRCUITS_MAX = 4096,
	CIRCUIT_ARGUMENT = 512,
};

struct circuit_node {
	char name[COLL_CIRCUIT_NAME];
	u32 ports;
	u32 port[COLL_CIRCUIT_PORTS_MAX];	/* of the switch */
	u8 address[16];			/* for coll.ko */
	int address_bytes;		/* 4, 16, or 0: the file has none */
};

struct circuit_setup {
	char socket[108];
	char driver[16], argument[CIRCUIT_ARGUMENT];
	u64 reconcile;			/* ns between two reads of the switch's state */
	struct coll_circuit_policy policy;
	u32 kernel;			/* the node whose traffic coll.ko holds; or NONE */
	u8 kernel_prefix;		/* of its addresses */
	u32 nodes;
	struct circuit_node node[CIRCUIT_NODES_MAX];
};

/* 0, or -errno and in `why` the line and what is valid. */
int circuit_setup_read(const char *path, struct circuit_setup *setup, char *why, size_t bytes);

/* Of the switch's argument what people may see: that of restconf has a password. */
const char *circuit_setup_shown(const struct circuit_setup *setup);

/* The switch's port of a node's port. */
static inline u32 circuit_setup_port(const struct circuit_setup *setup, u32 node, u8 port)
{
	return setup->node[node].port[port];
}

/* Number of the node, or COLL_CIRCUIT_NONE. */
u32 circuit_setup_node(const struct circuit_setup *setup, const char *name);

#endif
