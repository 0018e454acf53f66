/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A circuit manager with its memory, a clock, and clients whose cookies index what they know. */
#ifndef TESTS_UNIT_CIRCUIT_WORLD_H
#define TESTS_UNIT_CIRCUIT_WORLD_H

#include "core/circuit/circuit.h"

#define MS 1000000ull
enum { NODES = 8, CIRCUITS = 28, LEASES = 200, HOLDERS = 4 };

struct world {
	struct coll_circuit_manager c;
	struct coll_circuit_node node[NODES];
	struct coll_circuit circuit[CIRCUITS];
	struct coll_circuit_lease lease[LEASES];
	struct coll_circuit_holder holder[HOLDERS];
	u64 now;
	/* Of each cookie: the last notification, how often it was UP, the lease's number. */
	u8 notified[100000];
	int error[100000];
	u32 ups[100000];
	u32 number[100000];
};
extern struct world w;

/* Starts anew with `nodes` nodes, each with the set `ports` of ports. */
struct coll_circuit_manager *world_begin(u32 nodes, u64 ports);
void read_notifications(void);
void request_flagged(u32 holder, u32 node, u32 peer, u32 flags, u64 session, u64 cookie);
void request(u32 holder, u32 node, u32 peer, u32 flags, u64 cookie);
void release(u64 cookie);
/* A switch that executes all orders at once. Returns their number. */
u32 do_orders(void);
void pass_time(u64 ns);

#endif
