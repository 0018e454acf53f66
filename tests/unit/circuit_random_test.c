// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The circuit manager under random events, with a switch that is late, fails and loses
 * circuits: a port never has two circuits, no request is lost, and everything ends.
 */
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

static u64 seed, latest;

/* CIRCUIT_SEED=n repeats one run. */
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

/* A switch that executes orders in turn, late or never. `has` is its true state. */
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

/* The switch never has two circuits on a port, or one on a port that is not allowed. */
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

	world_begin(nodes, 1 + 2 * chance(2));
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

			/* Most requests come from both ends; of one-sided ones some wait forever. */
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
		read_notifications();
		for (i = 1; i < cookie; i++) {
			if (!held[i])
				continue;
			if (w.notified[i] == COLL_CIRCUIT_NOTIFY_ENDED) {
				held[i] = 0;
				open--;
			} else if (w.notified[i] == COLL_CIRCUIT_NOTIFY_UP &&
				   until[i] > w.now + 100 * MS) {
				until[i] = w.now + chance(100) * MS;
			} else if (w.now >= until[i] && (w.ups[i] || (!ending && !chance(50)))) {
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
	/* Every request that could be served was: the others come from one end only. */
	for (step = 0; step < 4000; step++) {
		w.now += 2 * MS;
		coll_circuit_tick(&w.c, w.now);
		work_switch(true);
		take_orders(true);
		read_notifications();
		for (i = 1; i < cookie; i++)
			if (held[i] && (w.notified[i] == COLL_CIRCUIT_NOTIFY_ENDED || w.ups[i])) {
				if (w.notified[i] != COLL_CIRCUIT_NOTIFY_ENDED)
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
		read_notifications();
	}
	for (i = 0; i < LEASES; i++)
		assert_false(w.lease[i].used);
	for (i = 0; i < CIRCUITS; i++)
		assert_false(switched.has[i]);
	assert_int_equal(w.c.with_ports, 0);
	assert_true(coll_circuit_next_tick(&w.c) == COLL_CIRCUIT_FOREVER);
}

static void random_events_keep_all_invariants(void **unused)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(random_events_keep_all_invariants, say_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
