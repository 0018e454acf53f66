// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/circuit_world.h"

struct world w;

struct coll_circuit_manager *world_begin(u32 nodes, u64 ports)
{
	u32 i;

	memset(&w, 0, sizeof(w));
	w.c = (struct coll_circuit_manager){ .node = w.node, .circuit = w.circuit, .lease = w.lease,
				      .holder = w.holder, .nodes = nodes, .circuits = CIRCUITS,
				      .leases = LEASES, .holders = HOLDERS,
				      .policy = coll_circuit_policy_default };
	w.now = 1000 * MS;
	coll_circuit_manager_init(&w.c);
	for (i = 0; i < nodes; i++)
		coll_circuit_set_ports(&w.c, w.now, i, ports);
	return &w.c;
}

void read_notifications(void)
{
	struct coll_circuit_notification n;

	while (coll_circuit_next_notification(&w.c, w.now, &n)) {
		w.notified[n.cookie] = n.kind;
		w.error[n.cookie] = n.error;
		w.ups[n.cookie] += n.kind == COLL_CIRCUIT_NOTIFY_UP;
	}
}

void request_flagged(u32 holder, u32 node, u32 peer, u32 flags, u64 session, u64 cookie)
{
	assert_int_equal(coll_circuit_request(&w.c, w.now, holder, node, peer, flags, session,
					      COLL_CIRCUIT_FOREVER, cookie, &w.number[cookie]), 0);
}

void request(u32 holder, u32 node, u32 peer, u32 flags, u64 cookie)
{
	request_flagged(holder, node, peer, flags, 0, cookie);
}

void release(u64 cookie)
{
	coll_circuit_release(&w.c, w.now, w.number[cookie]);
}

/* A switch that does at once all that it is n. Returns the number of orders. */
u32 do_orders(void)
{
	struct coll_circuit_order order;
	u32 orders = 0;

	while (coll_circuit_next_order(&w.c, w.now, &order)) {
		orders++;
		coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, 0);
	}
	read_notifications();
	return orders;
}

void pass_time(u64 ns)
{
	const u64 end = w.now + ns;

	while (coll_circuit_next_tick(&w.c) <= end) {
		if (w.now < coll_circuit_next_tick(&w.c))
			w.now = coll_circuit_next_tick(&w.c);
		coll_circuit_tick(&w.c, w.now);
		do_orders();
	}
	w.now = end;
}
