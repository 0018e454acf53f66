// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The rules of the circuit manager, one small test for each, with a switch that never fails. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/circuit_world.h"

static u8 state(u32 node, u32 peer)
{
	const u32 i = coll_circuit_find(&w.c, node, peer);

	return i == COLL_CIRCUIT_NONE ? (u8)COLL_CIRCUIT_DOWN : w.circuit[i].state;
}
static void both_ends_must_request(void **unused)
{
	const u32 one = (world_begin(3, 1), coll_circuit_add_holder(&w.c, 0)),
		  two = coll_circuit_add_holder(&w.c, 0);

	(void)unused;
	request(one, 0, 1, 0, 1);
	request(two, 1, 0, 0, 2);	/* another job: it does not count */
	assert_int_equal(do_orders(), 0);
	request(one, 1, 0, 0, 3);
	assert_int_equal(do_orders(), 1);
	assert_int_equal(state(1, 0), COLL_CIRCUIT_UP);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_NONE);
	/* One end is enough where it says so; the port is idle when all have released. */
	request(one, 1, 2, COLL_CIRCUIT_ONE_SIDED, 4);
	assert_int_equal(do_orders(), 0);
	release(1);
	release(2);
	assert_int_equal(do_orders(), 0);
	release(3);
	assert_int_equal(do_orders(), 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DOWN);
	assert_int_equal(w.notified[4], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(coll_circuit_request(&w.c, w.now, one, 1, 1, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
	assert_int_equal(coll_circuit_request(&w.c, w.now, one, 1, 3, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
	assert_int_equal(coll_circuit_request(&w.c, w.now, 3, 1, 2, 0, 0, 0, 9, &w.number[9]),
			 -EINVAL);
}

static void a_lease_lasts_its_time(void **unused)
{
	const u32 one = (world_begin(3, 1), coll_circuit_add_holder(&w.c, 0)),
		  two = coll_circuit_add_holder(&w.c, 0);

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	do_orders();
	request(two, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	pass_time(w.c.policy.lease - 1);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_UP);	/* guaranteed */
	pass_time(1);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DRAINING);
	pass_time(w.c.policy.grace);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_DOWN);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_UP);
	pass_time(w.c.policy.lease + w.c.policy.grace);	/* and it comes back */
	assert_int_equal(w.ups[1], 2);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_DOWN);
	assert_int_equal(w.c.revoked, 2);
}

static void a_higher_priority_is_served_first(void **unused)
{
	const u32 low = (world_begin(4, 1), coll_circuit_add_holder(&w.c, 0)),
		  high = coll_circuit_add_holder(&w.c, 5);

	(void)unused;
	request(low, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	do_orders();
	request(low, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	request(high, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	read_notifications();
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_DRAINING); /* no lease against priority */
	pass_time(w.c.policy.grace);
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_UP);
	pass_time(10 * w.c.policy.lease);
	assert_int_equal(w.ups[2] + w.ups[1], 1);
	release(3);
	do_orders();
	assert_int_equal(w.ups[2] + w.ups[1], 2);
}

static void requests_ahead_take_only_free_ports(void **unused)
{
	const u32 one = (world_begin(4, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED | COLL_CIRCUIT_AHEAD, 1);
	do_orders();
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_UP);
	request(one, 0, 2, COLL_CIRCUIT_ONE_SIDED | COLL_CIRCUIT_AHEAD, 2);
	pass_time(3 * w.c.policy.lease);
	assert_int_equal(w.ups[2], 0);		/* ahead of time gives way to need only */
	request(one, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	pass_time(w.c.policy.grace);
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_DOWN);
}

/* A circuit without requests stays until its ports are requested or its time ends. */
static void an_unused_circuit_stays_until_its_ports_are_needed(void **unused)
{
	const u32 one = (world_begin(4, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	do_orders();
	release(1);
	pass_time(w.c.policy.keep / 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);
	assert_int_equal(do_orders(), 0);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_UP);
	release(2);
	pass_time(w.c.policy.keep);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_DOWN);
}

static void failed_orders_are_retried(void **unused)
{
	const u32 one = (world_begin(4, 1), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order, down;
	u32 ups = 0;

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	while (w.notified[1] != COLL_CIRCUIT_NOTIFY_ENDED) {
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
		read_notifications();
	}
	assert_int_equal(w.error[1], -EBUSY);
	assert_int_equal(ups, w.c.policy.retries + 1);
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);	/* and later it may work */
	pass_time(100000 * MS);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_UP);
	coll_circuit_lost(&w.c, w.now, coll_circuit_find(&w.c, 0, 1));
	do_orders();
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_DOWN);
	pass_time(w.c.policy.retry);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.c.lost, 1);
}

static void a_request_fails_at_its_deadline(void **unused)
{
	const u32 one = (world_begin(4, 1), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order;

	(void)unused;
	assert_int_equal(
		coll_circuit_request(&w.c, w.now, one, 0, 1, 0, 0, w.now + MS, 1, &w.number[1]), 0);
	assert_int_equal(coll_circuit_next_tick(&w.c), w.now + MS);
	pass_time(MS);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_ENDED);
	assert_int_equal(w.error[1], -ETIMEDOUT);
	/* The switch is silent: down is ordered, again and again, and the port stays taken. */
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 2);
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

static void removed_ports_are_drained(void **unused)
{
	const u32 one = (world_begin(4, 3), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	request(one, 0, 2, COLL_CIRCUIT_ONE_SIDED, 2);
	request(one, 0, 3, COLL_CIRCUIT_ONE_SIDED, 3);
	do_orders();
	assert_int_equal(w.ups[1] + w.ups[2] + w.ups[3], 2);
	coll_circuit_set_ports(&w.c, w.now, 0, 7);
	do_orders();
	assert_int_equal(w.ups[3], 1);
	coll_circuit_set_ports(&w.c, w.now, 0, 4);
	read_notifications();
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_DRAINING);
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_UP);
	pass_time(w.c.policy.grace);
	assert_int_equal(w.node[0].taken, 4);
	coll_circuit_set_ports(&w.c, w.now, 0, 0);
	pass_time(10 * w.c.policy.lease);
	assert_int_equal(w.node[0].taken, 0);
	coll_circuit_set_ports(&w.c, w.now, 0, 1);
	do_orders();
	assert_int_equal(w.ups[1] + w.ups[2] + w.ups[3], 4);
}

static void circuits_stay_within_the_limit(void **unused)
{
	const u32 one = (world_begin(6, 3), coll_circuit_add_holder(&w.c, 0));
	u32 i;

	(void)unused;
	w.c.policy.limit = 2;
	for (i = 0; i < 3; i++)
		request(one, 2 * i, 2 * i + 1, COLL_CIRCUIT_ONE_SIDED, i + 1);
	do_orders();
	assert_int_equal(w.ups[1] + w.ups[2] + w.ups[3], 2);
	release(1);
	do_orders();
	assert_int_equal(w.ups[3], 1);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 0, 1, 5, 1), -EBUSY);
}

static void circuits_of_the_switch_are_adopted(void **unused)
{
	const u32 one = (world_begin(4, 3), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 2, 1, 0, 0), 0);
	assert_int_equal(w.node[2].taken, 2);
	assert_int_equal(w.node[0].taken, 1);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 2, 1, 1, 0), -EBUSY);
	assert_int_equal(coll_circuit_adopt(&w.c, w.now, 3, 2, 1, 0), -EBUSY);	/* no such port */
	request(one, 0, 2, 0, 1);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_NONE);
	request(one, 2, 0, 0, 2);
	assert_int_equal(do_orders(), 0);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_UP);
}

static void request_use(u32 holder, u32 node, u32 peer, u64 session, u64 cookie)
{
	request_flagged(holder, node, peer, 0, session, cookie);
}

/* One end may not complete the next use while the other end has the last one. */
static void an_end_waits_for_the_use_before(void **unused)
{
	const u32 one = (world_begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request_use(one, 0, 1, 7, 1);
	request_use(one, 1, 0, 7, 2);
	do_orders();
	assert_int_equal(w.notified[2], COLL_CIRCUIT_NOTIFY_UP);
	release(1);
	request_use(one, 0, 1, 8, 3);
	do_orders();
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_NONE);
	release(2);
	request_use(one, 1, 0, 8, 4);
	assert_int_equal(do_orders(), 0);
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.notified[4], COLL_CIRCUIT_NOTIFY_UP);
	/* A circuit requested by one end holds no port: others get it without a notification. */
	release(3);
	release(4);
	request_use(one, 0, 1, 9, 5);
	request_use(one, 1, 2, 1, 6);
	request_use(one, 2, 1, 1, 7);
	assert_int_equal(do_orders(), 2);
	assert_int_equal(w.notified[7], COLL_CIRCUIT_NOTIFY_UP);
}

/* An end in a use that the other end has completed gets a lost circuit back. */
static void a_use_in_progress_regains_its_circuit(void **unused)
{
	const u32 one = (world_begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request_use(one, 0, 1, 7, 1);
	request_use(one, 1, 0, 7, 2);
	do_orders();
	release(1);
	coll_circuit_drain(&w.c, w.now, coll_circuit_find(&w.c, 0, 1));
	pass_time(w.c.policy.grace);
	assert_int_equal(w.ups[2], 2);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
}

/* One end completed the use under another manager: that counts for the other end. */
static void a_use_completed_under_another_manager_counts(void **unused)
{
	const u32 one = (world_begin(3, 1), coll_circuit_add_holder(&w.c, 0));

	(void)unused;
	request_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 7, 1);
	request_use(one, 1, 0, 7, 3);
	assert_int_equal(do_orders(), 1);
	assert_int_equal(w.notified[1], COLL_CIRCUIT_NOTIFY_UP);
	assert_int_equal(w.notified[3], COLL_CIRCUIT_NOTIFY_UP);
	release(1);
	release(3);
	/* Both have had it: it is over. */
	request_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 9, 7);
	do_orders();
	assert_int_equal(w.notified[7], COLL_CIRCUIT_NOTIFY_NONE);
	request_flagged(one, 1, 0, COLL_CIRCUIT_COMPLETED, 9, 8);
	assert_int_equal(do_orders(), 0);
	assert_int_equal(w.error[7], -EALREADY);
	assert_int_equal(w.error[8], -EALREADY);
	/* It blocks no other request. */
	request_flagged(one, 0, 1, COLL_CIRCUIT_COMPLETED, 8, 4);
	request_use(one, 1, 2, 1, 5);
	request_use(one, 2, 1, 1, 6);
	assert_int_equal(do_orders(), 2);
	assert_int_equal(w.notified[6], COLL_CIRCUIT_NOTIFY_UP);
}

/* A port whose set-up has failed is used again when no other one is free. */
static void a_failed_port_is_used_again_when_no_other_is_free(void **unused)
{
	const u32 one = (world_begin(2, 3), coll_circuit_add_holder(&w.c, 0));
	struct coll_circuit_order order;
	u8 first;

	(void)unused;
	request(one, 0, 1, COLL_CIRCUIT_ONE_SIDED, 1);
	assert_true(coll_circuit_next_order(&w.c, w.now, &order));
	first = order.port[0];
	coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, -EIO);
	assert_true(coll_circuit_next_order(&w.c, w.now, &order));
	coll_circuit_order_done(&w.c, w.now, order.circuit, order.serial, 0);
	pass_time(w.c.policy.retry);
	assert_int_equal(state(0, 1), COLL_CIRCUIT_UP);
	assert_true(w.c.circuit[coll_circuit_find(&w.c, 0, 1)].port[0] != first);
	assert_true(w.c.circuit[coll_circuit_find(&w.c, 0, 1)].port[1] != first);
}

/* Two jobs request a whole ring; neither can have it while the other has a part. */
static void two_jobs_share_a_ring_without_deadlock(void **unused)
{
	u32 job, i, holder[2];

	(void)unused;
	world_begin(NODES, 3);
	for (job = 0; job < 2; job++) {
		holder[job] = coll_circuit_add_holder(&w.c, 0);
		for (i = 0; i < NODES; i++) {
			const u32 a = i, b = (i + 1 + 2 * job) % NODES;

			request(holder[job], a, b, 0, job * 100 + 2 * i);
			request(holder[job], b, a, 0, job * 100 + 2 * i + 1);
		}
	}
	do_orders();
	pass_time(20 * w.c.policy.lease);
	for (job = 0; job < 2; job++)
		for (i = 0; i < 2 * NODES; i++)
			assert_in_range(w.ups[job * 100 + i], 2, 12);
	assert_in_range(w.holder[holder[0]].used * 100 / w.holder[holder[1]].used, 80, 125);
}

/* Holders that request the same port forever get equal time, also beside a greedy one. */
static void holders_get_equal_port_time(void **unused)
{
	u32 holder[HOLDERS], i, k;

	(void)unused;
	for (k = 1; k <= 3; k++) {
		world_begin(NODES, (1 << k) - 1);
		for (i = 0; i < HOLDERS; i++) {
			u32 peer;

			holder[i] = coll_circuit_add_holder(&w.c, 0);
			/* Circuits of its own: sharing another holder's would be free. */
			for (peer = i ? i : HOLDERS; peer <= (i ? i : NODES - 1); peer++)
				request(holder[i], 0, peer, COLL_CIRCUIT_ONE_SIDED, 10 * i + peer);
		}
		do_orders();
		pass_time(400 * w.c.policy.lease);
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
		cmocka_unit_test(both_ends_must_request),
		cmocka_unit_test(a_lease_lasts_its_time),
		cmocka_unit_test(a_higher_priority_is_served_first),
		cmocka_unit_test(requests_ahead_take_only_free_ports),
		cmocka_unit_test(an_unused_circuit_stays_until_its_ports_are_needed),
		cmocka_unit_test(failed_orders_are_retried),
		cmocka_unit_test(a_request_fails_at_its_deadline),
		cmocka_unit_test(removed_ports_are_drained),
		cmocka_unit_test(circuits_stay_within_the_limit),
		cmocka_unit_test(circuits_of_the_switch_are_adopted),
		cmocka_unit_test(an_end_waits_for_the_use_before),
		cmocka_unit_test(a_use_in_progress_regains_its_circuit),
		cmocka_unit_test(a_use_completed_under_another_manager_counts),
		cmocka_unit_test(a_failed_port_is_used_again_when_no_other_is_free),
		cmocka_unit_test(two_jobs_share_a_ring_without_deadlock),
		cmocka_unit_test(holders_get_equal_port_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
