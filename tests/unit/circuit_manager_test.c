// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The circuit manager: each rule once, then random events against a switch that is
 * late, fails and loses circuits: never more circuits than ports, no want lost, all
 * ends, and holders get the same.
 *
 * Length: each rule of the manager is one small test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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
	/* What each cookie was told last, and how often it was lit. */
	u8 told[100000];
	int error[100000];
	u32 lit[100000];
	u32 number[100000];
};
static struct world w;

static struct coll_circuit_manager *begin(u32 nodes, u64 ports)
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

static void hear(void)
{
	struct coll_circuit_notification told;

	while (coll_circuit_next_notification(&w.c, w.now, &told)) {
		w.told[told.cookie] = told.kind;
		w.error[told.cookie] = told.error;
		w.lit[told.cookie] += told.kind == COLL_CIRCUIT_NOTIFY_UP;
	}
}

static void want_flagged(u32 holder, u32 node, u32 peer, u32 flags, u64 session, u64 cookie)
{
	assert_int_equal(coll_circuit_request(&w.c, w.now, holder, node, peer, flags, session,
					      COLL_CIRCUIT_FOREVER, cookie, &w.number[cookie]), 0);
}

static void want(u32 holder, u32 node, u32 peer, u32 flags, u64 cookie)
{
	want_flagged(holder, node, peer, flags, 0, cookie);
}

static void release(u64 cookie)
{
	coll_circuit_release(&w.c, w.now, w.number[cookie]);
}

/* A switch that does at once all that it is told. Returns the number of orders. */
static u32 obey(void)
{
	struct coll_circuit_order order;
	u32 orders = 0;

	while (coll_circuit_next_order(&w.c, w.now, &order)) {
		orders++;
		coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, 0);
	}
	hear();
	return orders;
}

static void pass(u64 ns)
{
	const u64 end = w.now + ns;

	while (coll_circuit_next_tick(&w.c) <= end) {
		if (w.now < coll_circuit_next_tick(&w.c))
			w.now = coll_circuit_next_tick(&w.c);
		coll_circuit_tick(&w.c, w.now);
		obey();
	}
	w.now = end;
}

static u8 state(u32 node, u32 peer)
{
	const u32 i = coll_circuit_find(&w.c, node, peer);

	return i == COLL_CIRCUIT_NONE ? (u8)COLL_CIRCUIT_DOWN : w.circuit[i].state;
}

/* ---- each rule ----------------------------------------------------------- */

static void both_ends(void **unused)
{
	const u32 one = (begin(3, 1), coll_circuit_add_holder(&w.c, 0)),
		  two = coll_circuit_add_holder(&w.c, 0);

	(void)unused;
	want(one, 0, 1, 0, 1);
	want(two, 1, 0, 0, 2);	/* another job: it does not count */
	assert_int_equal(obey(), 0);
	want(one, 1, 0, 0, 3);
	assert_int_equal(obey(), 1);
	assert_int_equal(state(1, 0), COLL_CIRCUIT_UP);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_NONE);
	/* One end is enough where it says so; the port is idle when all have released. */
	want(one, 1, 2, COLL_CIRCUIT_ONE_SIDED, 4);
	assert_int_equal(obey(), 0);
	release(1);
	release(2);
	assert_int_equal(obey(), 0);
	release(3);
	assert_int_equal(obey(), 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DOWN);
	assert_int_equal(w.told[4], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(coll_circuit_request(&w.c, w.now, one, 1, 1, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
	assert_int_equal(coll_circuit_request(&w.c, w.now, one, 1, 3, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
	assert_int_equal(coll_circuit_request(&w.c, w.now, 3, 1, 2, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
}

static void leases(void **unused)
{
	const u32 one = (begin(3, 1), coll_circuit_add_holder(&w.c, 0)),
		  two = coll_circuit_add_holder(&w.c, 0);

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	obey();
	want(two, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	pass(w.c.policy.lease - 1);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_UP);	/* guaranteed */
	pass(1);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DRAINING);
	pass(w.c.policy.grace);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_DOWN);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_UP);
	pass(w.c.policy.lease + w.c.policy.grace);	/* and it comes back */
	assert_int_equal(w.lit[1], 2);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_DOWN);
	assert_int_equal(w.c.revoked, 2);
}

static void priorities(void **unused)
{
	const u32 low = (begin(4, 1), coll_circuit_add_holder(&w.c, 0)),
		  high = coll_circuit_add_holder(&w.c, 5);

	(void)unused;
	want(low, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	obey();
	want(low, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	want(high, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	hear();
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_DRAINING); /* no lease against priority */
	pass(w.c.policy.grace);
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_UP);
	pass(10 * w.c.policy.lease);
	assert_int_equal(w.lit[2] + w.lit[1], 1);
	release(3);
	obey();
	assert_int_equal(w.lit[2] + w.lit[1], 2);
}

static void ahead(void **unused)
{
	const u32 one = (begin(4, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED | COLL_CIRCUIT_AHEAD, 1);
	obey();
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_UP);
	want(one, 0, 2, COLL_CIRCUIT_ONE_SIDED | COLL_CIRCUIT_AHEAD, 2);
	pass(3 * w.c.policy.lease);
	assert_int_equal(w.lit[2], 0);		/* ahead of time gives way to need only */
	want(one, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	pass(w.c.policy.grace);
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_DOWN);
}

/* What nobody wants stays while nobody else wants its ports, and not for ever. */
static void keeping(void **unused)
{
	const u32 one = (begin(4, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	obey();
	release(1);
	pass(w.c.policy.keep / 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);
	assert_int_equal(obey(), 0);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_UP);
	release(2);
	pass(w.c.policy.keep);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DOWN);
}

static void failures(void **unused)
{
	const u32 one = (begin(4, 1), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order, down;
	u32 ups = 0;

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	while (w.told[1] != COLL_CIRCUIT_NOTIFY_ENDED) {
		assert_true(coll_circuit_next_order(&w.c, w.now, &order));
		assert_int_equal(order.kind, COLL_CIRCUIT_ORDER_UP);
		ups++;
		coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, -EBUSY);
		assert_true(coll_circuit_next_order(&w.c, w.now, &down));
		assert_int_equal(down.kind, COLL_CIRCUIT_ORDER_DOWN);
		/* The port is not given away before that is confirmed. */
		assert_int_equal(w.node[0].taken, 1);
		coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial,
					0); /* late: ignored */
		assert_int_equal(state(0, 1), COLL_CIRCUIT_DRAINING);
		coll_circuit_order_done(&w.c, w.now, down.circuit, down.serial, 0);
		assert_int_equal(state(0, 1), COLL_CIRCUIT_FAILED);
		assert_int_equal(w.node[0].taken, 0);
		w.now = coll_circuit_next_tick(&w.c);
		coll_circuit_tick(&w.c, w.now);
		hear();
	}
	assert_int_equal(w.error[1], -EBUSY);
	assert_int_equal(ups, w.c.policy.retries + 1);
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);	/* and later it may work */
	pass(100000 * MS);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_UP);
	coll_circuit_lost(&w.c, w.now, coll_circuit_find(&w.c, 0, 1));
	obey();
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_DOWN);
	pass(w.c.policy.retry);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.c.lost, 1);
}

static void deadlines(void **unused)
{
	const u32 one = (begin(4, 1), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order;

	(void)unused;
	assert_int_equal(
		coll_circuit_request(&w.c, w.now, one, 0, 1, 0, 0, w.now + MS, 1, &w.number[1]), 0);
	assert_int_equal(coll_circuit_next_tick(&w.c), w.now + MS);
	pass(MS);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_ENDED);
	assert_int_equal(w.error[1], -ETIMEDOUT);
	/* The switch is silent: down is ordered, again and again, and the port stays taken. */
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);
	assert_true(coll_circuit_next_order(&w.c, w.now, &order));
	coll_circuit_order_begun(&w.c, w.now, order.circuit, order.serial);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_SWITCHING);
	w.now += w.c.policy.timeout;
	coll_circuit_tick(&w.c, w.now);
	for (int i = 0; i < 5; i++) {
		assert_true(coll_circuit_next_order(&w.c, w.now, &order));
		assert_int_equal(order.kind, COLL_CIRCUIT_ORDER_DOWN);
		w.now += w.c.policy.timeout;
		coll_circuit_tick(&w.c, w.now);
		assert_int_equal(w.node[0].taken, 1);
	}
}

static void ports(void **unused)
{
	const u32 one = (begin(4, 3), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	want(one, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	want(one, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	obey();
	assert_int_equal(w.lit[1] + w.lit[2] + w.lit[3], 2);
	coll_circuit_set_ports(&w.c, w.now, 0, 7);
	obey();
	assert_int_equal(w.lit[3], 1);
	coll_circuit_set_ports(&w.c, w.now, 0, 4);
	hear();
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_UP);
	pass(w.c.policy.grace);
	assert_int_equal(w.node[0].taken, 4);
	coll_circuit_set_ports(&w.c, w.now, 0, 0);
	pass(10 * w.c.policy.lease);
	assert_int_equal(w.node[0].taken, 0);
	coll_circuit_set_ports(&w.c, w.now, 0, 1);
	obey();
	assert_int_equal(w.lit[1] + w.lit[2] + w.lit[3], 4);
}

static void limits(void **unused)
{
	const u32 one = (begin(6, 3), coll_circuit_add_holder(&w.c, 0));
	u32 i;

	(void)unused;
	w.c.policy.limit = 2;
	for (i = 0; i < 3; i++)
		want(one, 2 * i, 2 * i + 1, COLL_CIRCUIT_ONE_SIDED, i + 1);
	obey();
	assert_int_equal(w.lit[1] + w.lit[2] + w.lit[3], 2);
	release(1);
	obey();
	assert_int_equal(w.lit[3], 1);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 0, 1, 5, 1), -EBUSY);
}

static void adopting(void **unused)
{
	const u32 one = (begin(4, 3), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 2, 1, 0, 0), 0);
	assert_int_equal(w.node[2].taken, 2);
	assert_int_equal(w.node[0].taken, 1);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 2, 1, 1, 0), -EBUSY);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 3, 2, 1, 0), -EBUSY);	/* no such port */
	want(one, 0, 2, 0, 1);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_NONE);
	want(one, 2, 0, 0, 2);
	assert_int_equal(obey(), 0);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_UP);
}

static void want_use(u32 holder, u32 node, u32 peer, u64 session, u64 cookie)
{
	want_flagged(holder, node, peer, 0, session, cookie);
}

/* An end that is ahead is not through with the next use while the other has the last. */
static void uses(void **unused)
{
	const u32 one = (begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want_use(one, 0, 1, 7, 1);
	want_use(one, 1, 0, 7, 2);
	obey();
	assert_int_equal(w.told[2], COLL_CIRCUIT_NOTIFY_UP);
	release(1);
	want_use(one, 0, 1, 8, 3);
	obey();
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_NONE);
	release(2);
	want_use(one, 1, 0, 8, 4);
	assert_int_equal(obey(), 0);
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.told[4], COLL_CIRCUIT_NOTIFY_UP);
	/* Who has come alone holds no port: others have it without a notice. */
	release(3);
	release(4);
	want_use(one, 0, 1, 9, 5);
	want_use(one, 1, 2, 1, 6);
	want_use(one, 2, 1, 1, 7);
	assert_int_equal(obey(), 2);
	assert_int_equal(w.told[7], COLL_CIRCUIT_NOTIFY_UP);
}

/* Who still has a use whose other end is through gets the light back that it loses. */
static void last_bytes(void **unused)
{
	const u32 one = (begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want_use(one, 0, 1, 7, 1);
	want_use(one, 1, 0, 7, 2);
	obey();
	release(1);
	coll_circuit_drain(&w.c, w.now, coll_circuit_find(&w.c, 0, 1));
	pass(w.c.policy.grace);
	assert_int_equal(w.lit[2], 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
}

/* A use that one end has had under another manager: it counts for an end that has not. */
static void past(void **unused)
{
	const u32 one = (begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	want_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 7, 1);
	want_use(one, 1, 0, 7, 3);
	assert_int_equal(obey(), 1);
	assert_int_equal(w.told[1], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.told[3], COLL_CIRCUIT_NOTIFY_UP);
	release(1);
	release(3);
	/* Both have had it: it is over. */
	want_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 9, 7);
	obey();
	assert_int_equal(w.told[7], COLL_CIRCUIT_NOTIFY_NONE);
	want_flagged(one, 1, 0, COLL_CIRCUIT_COMPLETED, 9, 8);
	assert_int_equal(obey(), 0);
	assert_int_equal(w.error[7], -EALREADY);
	assert_int_equal(w.error[8], -EALREADY);
	/* In nobody's way. */
	want_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 8, 4);
	want_use(one, 1, 2, 1, 5);
	want_use(one, 2, 1, 1, 6);
	assert_int_equal(obey(), 2);
	assert_int_equal(w.told[6], COLL_CIRCUIT_NOTIFY_UP);
}

/* A port whose set-up has failed is taken again when no other is free. */
static void other_port(void **unused)
{
	const u32 one = (begin(2, 3), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order;
	u8 first;

	(void)unused;
	want(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	assert_true(coll_circuit_next_order(&w.c, w.now, &order));
	first = order.port[0];
	coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, -EIO);
	assert_true(coll_circuit_next_order(&w.c, w.now, &order));
	coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, 0);
	pass(w.c.policy.retry);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
	assert_true(w.c.circuit[coll_circuit_find(&w.c, 0, 1)].port[0] != first);
	assert_true(w.c.circuit[coll_circuit_find(&w.c, 0, 1)].port[1] != first);
}

/* Two jobs want all of a ring at once; neither can have it while the other has a part. */
static void gangs(void **unused)
{
	u32 job, i, holder[2];

	(void)unused;
	begin(NODES, 3);
	for (job = 0; job < 2; job++) {
		holder[job] = coll_circuit_add_holder(&w.c, 0);
		for (i = 0; i < NODES; i++) {
			const u32 a = i, b = (i + 1 + 2 * job) % NODES;

			want(holder[job], a, b, 0, job * 100 + 2 * i);
			want(holder[job], b, a, 0, job * 100 + 2 * i + 1);
		}
	}
	obey();
	pass(20 * w.c.policy.lease);
	for (job = 0; job < 2; job++)
		for (i = 0; i < 2 * NODES; i++)
			assert_in_range(w.lit[job * 100 + i], 2, 12);
	assert_in_range(w.holder[holder[0]].used * 100 / w.holder[holder[1]].used, 80, 125);
}

/* ---- anything ------------------------------------------------------------ */

static u64 seed, latest;

/* CIRCUIT_SEED=n runs that one again. */
static int say_seed(void **unused)
{
	(void)unused;
	print_message("the latest seed was %llu\n", (unsigned long long)latest);
	return 0;
}

static u32 chance(u32 of)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % of;
}

/* A switch: orders are done in turn, after a while, or not; what it has is what counts. */
struct switched {
	struct coll_circuit_order order[1000];
	u64 at[1000];
	u32 first, count;
	bool has[CIRCUITS];
	struct coll_circuit_order is[CIRCUITS];
} switched;

static void take_orders(bool well)
{
	struct coll_circuit_order order;

	while (coll_circuit_next_order(&w.c, w.now, &order)) {
		const u32 i = switched.count++;
		u64 at = w.now + MS + chance(30) * MS;

		assert_true(switched.count < 1000);
		if (!well && !chance(10))
			at += 3 * w.c.policy.timeout;
		if (i && switched.at[i - 1] > at)
			at = switched.at[i - 1];
		switched.order[i] = order;
		switched.at[i] = at;
	}
}

/* What the switch has: never two on a port, never a node with more than its ports. */
static void check_switch(const u64 *allowed)
{
	u64 used[NODES] = { 0 };
	u32 i, end;

	for (i = 0; i < CIRCUITS; i++)
		for (end = 0; switched.has[i] && end < 2; end++) {
			const struct coll_circuit_order *is = &switched.is[i];
			const u64 bit = 1ull << is->port[end];

			assert_false(used[is->node[end]] & bit);
			assert_true(allowed[is->node[end]] & bit);
			used[is->node[end]] |= bit;
		}
}

static void check_manager(void)
{
	u64 taken[NODES] = { 0 };
	u32 i, end, with_ports = 0;

	for (i = 0; i < w.c.made; i++) {
		const struct coll_circuit *circuit = &w.circuit[i];

		with_ports += circuit->state >= COLL_CIRCUIT_REQUESTED &&
			      circuit->state <= COLL_CIRCUIT_DRAINING;
		for (end = 0; end < 2; end++) {
			const u64 bit = circuit->port[end] == COLL_CIRCUIT_NO_PORT ? 0 :
					1ull << circuit->port[end];

			assert_true(!bit == (circuit->state == COLL_CIRCUIT_DOWN ||
					     circuit->state == COLL_CIRCUIT_FAILED));
			assert_false(taken[circuit->node[end]] & bit);
			taken[circuit->node[end]] |= bit;
			if (circuit->state != COLL_CIRCUIT_DRAINING)
				assert_int_equal(bit & ~w.node[circuit->node[end]].ports, 0);
		}
	}
	for (i = 0; i < w.c.nodes; i++)
		assert_int_equal(taken[i], w.node[i].taken);
	assert_int_equal(with_ports, w.c.with_ports);
	assert_true(!w.c.policy.limit || with_ports <= w.c.policy.limit);
}

static void work_switch(bool well)
{
	while (switched.first < switched.count && switched.at[switched.first] <= w.now) {
		const struct coll_circuit_order *order = &switched.order[switched.first++];
		const int error = !well && !chance(8) ? -EBUSY : 0;

		if (!chance(3))
			coll_circuit_order_begun(&w.c, w.now, order->circuit, order->serial);
		if (!error) {
			switched.has[order->circuit] = order->kind == COLL_CIRCUIT_ORDER_UP;
			switched.is[order->circuit] = *order;
		}
		coll_circuit_order_done(&w.c, w.now, order->circuit, order->serial, error);
	}
	if (switched.first == switched.count)
		switched.first = switched.count = 0;
	if (!well && !chance(50)) {
		const u32 i = chance(CIRCUITS);

		if (switched.has[i]) {	/* and the manager will order it down */
			switched.has[i] = false;
			coll_circuit_lost(&w.c, w.now, i);
		}
	}
}

static void random_events(u64 number)
{
	u64 allowed[NODES], deadline, cookie = 1;
	const u32 nodes = (seed = number * 0x9e3779b97f4a7c15ull | 1, 2 + chance(NODES - 1));
	const bool changing = chance(2);
	u32 holder[HOLDERS], i, end, open = 0, step;
	static u8 held[100000];
	static u64 until[100000];

	begin(nodes, 1 + 2 * chance(2));
	memset(&switched, 0, sizeof(switched));
	memset(held, 0, sizeof(held));
	w.c.policy.limit = chance(3) ? 0 : 1 + chance(4);
	w.c.policy.keep = chance(2) * 20 * MS;
	w.c.policy.lease = 50 * MS;
	w.c.policy.timeout = 60 * MS;
	w.c.policy.grace = chance(2) * 5 * MS;
	w.c.policy.retry = MS;
	for (i = 0; i < HOLDERS; i++)
		holder[i] = coll_circuit_add_holder(&w.c, chance(4) ? 0 : 1);
	for (i = 0; i < nodes; i++)
		allowed[i] = w.node[i].ports;
	for (step = 0; step < 3000; step++) {
		const bool well = step > 2000, ending = step > 2200;

		w.now += 1 + chance(4) * MS;
		for (i = 0; i < 4 && coll_circuit_next_tick(&w.c) <= w.now; i++)
			coll_circuit_tick(&w.c, w.now);
		assert_true(coll_circuit_next_tick(&w.c) > w.now);	/* no busy loop */
		work_switch(well);
		if (!ending && open < 40 && chance(2)) {
			const u32 a = chance(nodes), b = chance(nodes);
			const u32 who = holder[chance(HOLDERS)], flags = chance(4) ? 0 :
					chance(4) | (chance(4) ? 0 : COLL_CIRCUIT_COMPLETED);

			/* Half of the wants have their partner, half of those without wait. */
			for (end = 0; end < 2 && a != b; end++) {
				deadline = chance(3) ? COLL_CIRCUIT_FOREVER :
						       w.now + chance(300) * MS;
				assert_int_equal(coll_circuit_request(&w.c, w.now, who, end ? b : a,
						end ? a : b, flags, 0, deadline, cookie,
						&w.number[cookie]), 0);
				held[cookie] = 1;
				until[cookie++] = w.now + 5000 * MS;
				open++;
				if (!chance(8))
					break;
			}
		}
		if (changing && !ending && !chance(40)) {
			i = chance(nodes);
			allowed[i] |= chance(8);
			coll_circuit_set_ports(&w.c, w.now, i, allowed[i] & (1 + chance(7)));
		}
		if (!ending && !chance(200) && w.c.made)
			coll_circuit_drain(&w.c, w.now, chance(w.c.made));
		if (ending && changing && step == 2201)
			for (i = 0; i < nodes; i++)
				coll_circuit_set_ports(&w.c, w.now, i, allowed[i]);
		take_orders(well);
		hear();
		for (i = 1; i < cookie; i++) {
			if (!held[i])
				continue;
			if (w.told[i] == COLL_CIRCUIT_NOTIFY_ENDED) {
				held[i] = 0;
				open--;
			} else if (w.told[i] == COLL_CIRCUIT_NOTIFY_UP &&
				   until[i] > w.now + 100 * MS) {
				until[i] = w.now + chance(100) * MS;
			} else if (w.now >= until[i] && (w.lit[i] || (!ending && !chance(50)))) {
				release(i);
				held[i] = 0;
				open--;
			}
		}
		if (!ending && !chance(300)) {
			const u32 who = chance(HOLDERS);

			for (i = 1; i < cookie; i++)
				if (held[i] && w.lease[w.number[i]].holder == holder[who]) {
					held[i] = 0;
					open--;
				}
			coll_circuit_remove_holder(&w.c, w.now, holder[who]);
			holder[who] = coll_circuit_add_holder(&w.c, 0);
		}
		check_manager();
		check_switch(allowed);
	}
	/* All that could be had was had: what waits yet has no partner, or less priority. */
	for (step = 0; step < 4000; step++) {
		w.now += 2 * MS;
		coll_circuit_tick(&w.c, w.now);
		work_switch(true);
		take_orders(true);
		hear();
		for (i = 1; i < cookie; i++)
			if (held[i] && (w.told[i] == COLL_CIRCUIT_NOTIFY_ENDED || w.lit[i])) {
				if (w.told[i] != COLL_CIRCUIT_NOTIFY_ENDED)
					release(i);
				held[i] = 0;
			}
		check_manager();
		check_switch(allowed);
	}
	for (i = 1; i < cookie; i++) {
		const struct coll_circuit_lease *lease = &w.lease[w.number[i]];
		u32 other;

		if (!held[i])
			continue;
		assert_false(lease->flags & COLL_CIRCUIT_ONE_SIDED);
		for (other = 1; other < cookie; other++)
			if (held[other] && w.lease[w.number[other]].circuit == lease->circuit &&
			    w.lease[w.number[other]].holder == lease->holder)
				assert_int_equal(w.lease[w.number[other]].side, lease->side);
		release(i);
		held[i] = 0;
	}
	/* Everything ends: no lease, no circuit, no port. */
	for (step = 0; step < 1000; step++) {
		w.now += 10 * MS;
		coll_circuit_tick(&w.c, w.now);
		work_switch(true);
		take_orders(true);
		hear();
	}
	for (i = 0; i < LEASES; i++)
		assert_false(w.lease[i].used);
	for (i = 0; i < CIRCUITS; i++)
		assert_false(switched.has[i]);
	assert_int_equal(w.c.with_ports, 0);
	assert_true(coll_circuit_next_tick(&w.c) == COLL_CIRCUIT_FOREVER);
}

static void anything(void **unused)
{
	const char *asked = getenv("CIRCUIT_SEED");
	u64 number;

	(void)unused;
	if (asked) {
		random_events(strtoull(asked, NULL, 0));
		return;
	}
	for (number = 1; number <= 50; number++) {
		latest = number;
		random_events(number);
	}
}

/* Holders that want the same port for ever get the same, however greedy one is. */
static void fair(void **unused)
{
	u32 holder[HOLDERS], i, k;

	(void)unused;
	for (k = 1; k <= 3; k++) {
		begin(NODES, (1 << k) - 1);
		for (i = 0; i < HOLDERS; i++) {
			u32 peer;

			holder[i] = coll_circuit_add_holder(&w.c, 0);
			/* Circuits of its own: on another's one travels along for nothing. */
			for (peer = i ? i : HOLDERS; peer <= (i ? i : NODES - 1); peer++)
				want(holder[i], 0, peer, COLL_CIRCUIT_ONE_SIDED, 10 * i + peer);
		}
		obey();
		pass(400 * w.c.policy.lease);
		for (i = 2; i < HOLDERS; i++)
			assert_in_range(w.holder[holder[i]].used * 100 / w.holder[holder[1]].used,
					85, 118);
		assert_in_range(w.holder[holder[0]].used * 100 / w.holder[holder[1]].used, 85,
				k < 3 ? 118 : 250);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends), cmocka_unit_test(leases), cmocka_unit_test(priorities),
		cmocka_unit_test(ahead), cmocka_unit_test(keeping), cmocka_unit_test(failures),
		cmocka_unit_test(deadlines), cmocka_unit_test(ports), cmocka_unit_test(limits),
		cmocka_unit_test(adopting),
		cmocka_unit_test(uses),
		cmocka_unit_test(last_bytes),
		cmocka_unit_test(past),
		cmocka_unit_test(other_port), cmocka_unit_test(gangs), cmocka_unit_test(fair),
		cmocka_unit_test_teardown(anything, say_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
