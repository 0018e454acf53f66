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

enum { REQUESTS = 100000, STEPS = 3000, WELL = 2000, ENDING = 2200 };

/* A run of random events. Requests are numbered from 1 on: their cookies. */
static struct {
	u32 nodes, holder[HOLDERS], open;
	u64 allowed[NODES];		/* ports of each node that may be used */
	u64 cookie;			/* of the next request */
	bool changing;			/* ports come and go */
	u8 held[REQUESTS];
	u64 until[REQUESTS];		/* then it is released */
} play;

static void begin_random(u64 number)
{
	u32 i;

	seed = number * 0x9e3779b97f4a7c15ull | 1;
	memset(&play, 0, sizeof(play));
	memset(&switched, 0, sizeof(switched));
	play.cookie = 1;
	play.nodes = 2 + chance(NODES - 1);
	play.changing = chance(2);
	world_begin(play.nodes, 1 + 2 * chance(2));
	w.c.policy.limit = chance(3) ? 0 : 1 + chance(4);
	w.c.policy.keep = chance(2) * 20 * MS;
	w.c.policy.lease = 50 * MS;
	w.c.policy.timeout = 60 * MS;
	w.c.policy.grace = chance(2) * 5 * MS;
	w.c.policy.retry = MS;
	for (i = 0; i < HOLDERS; i++)
		play.holder[i] = coll_circuit_add_holder(&w.c, chance(4) ? 0 : 1);
	for (i = 0; i < play.nodes; i++)
		play.allowed[i] = w.node[i].ports;
}

/* Most requests come from both ends; of one-sided ones some wait forever. */
static void random_request(void)
{
	const u32 a = chance(play.nodes), b = chance(play.nodes);
	const u32 holder = play.holder[chance(HOLDERS)];
	const u32 flags = chance(4) ? 0 : chance(4) | (chance(4) ? 0 : COLL_CIRCUIT_COMPLETED);
	u64 deadline;
	u32 end;

	for (end = 0; end < 2 && a != b; end++) {
		deadline = chance(3) ? COLL_CIRCUIT_FOREVER : w.now + chance(300) * MS;
		assert_int_equal(coll_circuit_request(&w.c, w.now, holder, end ? b : a, end ? a : b,
						      flags, 0, deadline, play.cookie,
						      &w.number[play.cookie]), 0);
		play.held[play.cookie] = 1;
		play.until[play.cookie++] = w.now + 5000 * MS;
		play.open++;
		if (!chance(8))
			break;
	}
}

static void random_ports(void)
{
	const u32 node = chance(play.nodes);

	play.allowed[node] |= chance(8);
	coll_circuit_set_ports(&w.c, w.now, node, play.allowed[node] & (1 + chance(7)));
}

/* Requests end: refused or revoked, or released some time after their circuit is up. */
static void end_requests(bool ending)
{
	u64 i;

	for (i = 1; i < play.cookie; i++) {
		if (!play.held[i])
			continue;
		if (w.notified[i] == COLL_CIRCUIT_NOTIFY_ENDED) {
			play.held[i] = 0;
			play.open--;
		} else if (w.notified[i] == COLL_CIRCUIT_NOTIFY_UP &&
			   play.until[i] > w.now + 100 * MS) {
			play.until[i] = w.now + chance(100) * MS;
		} else if (w.now >= play.until[i] && (w.ups[i] || (!ending && !chance(50)))) {
			release(i);
			play.held[i] = 0;
			play.open--;
		}
	}
}

static void replace_holder(void)
{
	u32 *holder = &play.holder[chance(HOLDERS)];
	u64 i;

	for (i = 1; i < play.cookie; i++)
		if (play.held[i] && w.lease[w.number[i]].holder == *holder) {
			play.held[i] = 0;
			play.open--;
		}
	coll_circuit_remove_holder(&w.c, w.now, *holder);
	*holder = coll_circuit_add_holder(&w.c, 0);
}

static void random_step(u32 step)
{
	const bool well = step > WELL, ending = step > ENDING;
	u32 i;

	w.now += 1 + chance(4) * MS;
	for (i = 0; i < 4 && coll_circuit_next_tick(&w.c) <= w.now; i++)
		coll_circuit_tick(&w.c, w.now);
	assert_true(coll_circuit_next_tick(&w.c) > w.now);	/* no busy loop */
	work_switch(well);
	if (!ending && play.open < 40 && chance(2))
		random_request();
	if (play.changing && !ending && !chance(40))
		random_ports();
	if (!ending && !chance(200) && w.c.made)
		coll_circuit_drain(&w.c, w.now, chance(w.c.made));
	for (i = 0; play.changing && step == ENDING + 1 && i < play.nodes; i++)
		coll_circuit_set_ports(&w.c, w.now, i, play.allowed[i]);
	take_orders(well);
	read_notifications();
	end_requests(ending);
	if (!ending && !chance(300))
		replace_holder();
	check_manager();
	check_switch(play.allowed);
}

/* Time without new requests, and a switch that works. */
static void quiet_step(u64 ms)
{
	w.now += ms * MS;
	coll_circuit_tick(&w.c, w.now);
	work_switch(true);
	take_orders(true);
	read_notifications();
}

/* Every request that can be served is; requests that still wait come from one end only. */
static void serve_the_rest(void)
{
	const struct coll_circuit_lease *lease, *peer;
	u64 i, other;
	u32 step;

	for (step = 0; step < 4000; step++) {
		quiet_step(2);
		for (i = 1; i < play.cookie; i++)
			if (play.held[i] &&
			    (w.notified[i] == COLL_CIRCUIT_NOTIFY_ENDED || w.ups[i])) {
				if (w.notified[i] != COLL_CIRCUIT_NOTIFY_ENDED)
					release(i);
				play.held[i] = 0;
			}
		check_manager();
		check_switch(play.allowed);
	}
	for (i = 1; i < play.cookie; i++) {
		lease = &w.lease[w.number[i]];
		if (!play.held[i])
			continue;
		assert_false(lease->flags & COLL_CIRCUIT_ONE_SIDED);
		for (other = 1; other < play.cookie; other++) {
			peer = &w.lease[w.number[other]];
			if (play.held[other] && peer->circuit == lease->circuit &&
			    peer->holder == lease->holder)
				assert_int_equal(peer->side, lease->side);
		}
		release(i);
		play.held[i] = 0;
	}
}

static void random_events(u64 number)
{
	u32 i;

	begin_random(number);
	for (i = 0; i < STEPS; i++)
		random_step(i);
	serve_the_rest();
	/* Everything ends: no lease, no circuit, no port. */
	for (i = 0; i < 1000; i++)
		quiet_step(10);
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
