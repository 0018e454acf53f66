// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Connections and channels that wait for groups which do not exist here (libcoll/transport/arrival.h):
 * a peer that opens them without end keeps no more than a bounded number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/transport/arrival.h"

enum {
	MADE = 200000,
	WAIT_MAX = 65536,		/* that wait at a time */
	ENDED_MAX = 2 * 4096,		/* ... whose peers have ended them already */
};

static struct coll_boot boot = { .ranks = 8 };
static struct coll_context context;
static struct coll_arrival made[MADE];
static bool ended[MADE], dropped[MADE];
static uint32_t waiting, waiting_ended, refused;

static uint32_t number_of(const struct coll_arrival *arrival)
{
	return arrival - made;
}

/* The one that is dropped may take another one with it. */
static uint32_t taken_along;

static void forget(uint32_t i)
{
	assert_false(dropped[i]);
	dropped[i] = true;
	waiting--;
	waiting_ended -= ended[i];
}

static void arrival_drop(struct coll_arrival *arrival, const char *reason)
{
	const uint32_t i = number_of(arrival), other = i + taken_along;

	forget(i);
	refused += !!reason;
	if (!taken_along || other >= MADE || !made[other].waits)
		return;
	coll_arrival_remove(&made[other]);
	forget(other);
}

static bool arrival_is_ended(const struct coll_arrival *arrival)
{
	return ended[number_of(arrival)];
}

static void called_for(struct coll_context *of, uint64_t group, uint32_t world)
{
	(void)of;
	(void)group;
	(void)world;
}

static const struct coll_link_events events = { .called_for = called_for };

static const struct coll_arrival_ops ops = {
	.drop = arrival_drop,
	.is_ended = arrival_is_ended,
};

static void arrive(uint32_t i, bool has_ended)
{
	made[i] = (struct coll_arrival){
		.ops = &ops, .context = &context, .group = 7 + i % 3, .from = 1,
	};
	ended[i] = has_ended;
	waiting++;
	waiting_ended += has_ended;
	coll_arrival_add(&made[i]);
	assert_int_equal(context.arrivals_count, waiting);
}

static int begin(void **state)
{
	(void)state;
	memset(&context, 0, sizeof(context));
	context.events = &events;
	context.boot = &boot;
	memset(dropped, 0, sizeof(dropped));
	waiting = waiting_ended = refused = taken_along = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_arrivals_drop(&context);
	assert_int_equal(waiting, 0);
	assert_null(context.arrivals);
	assert_null(context.arrivals_oldest);
	return 0;
}

static void the_oldest_is_refused(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < MADE; i++) {
		arrive(i, false);
		assert_in_range(waiting, 1, WAIT_MAX);
		if (i >= WAIT_MAX)
			assert_true(dropped[i - WAIT_MAX]);
	}
	assert_int_equal(refused, MADE - WAIT_MAX);
}

static void the_ended_make_room(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < MADE; i++) {
		arrive(i, i % 100);
		assert_in_range(waiting_ended, 0, ENDED_MAX);
	}
	for (i = 0; i < MADE; i += 100)		/* the others are all there */
		assert_false(dropped[i]);
	assert_int_equal(refused, 0);
}

/* They are looked at while the list changes under the one who looks. */
static void one_takes_another_along(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < MADE; i++) {
		taken_along = 1 + i / 20000 % 3;
		arrive(i, i % 5 < 2);
		assert_in_range(waiting_ended, 0, ENDED_MAX);
	}
}

static void who_leaves_is_forgotten(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		arrive(i, false);
	for (i = 0; i < 100; i += 3) {
		coll_arrival_remove(&made[i]);
		coll_arrival_remove(&made[i]);		/* harmless */
		forget(i);
		assert_int_equal(context.arrivals_count, waiting);
	}
}

/* A peer sends for groups that never come: what is held is bounded, and others' stays. */
static void the_peer_that_sends_too_much_is_refused(void **state)
{
	enum { OTHERS = 1000, BYTES = 16 << 10, SENDS = 65000, BYTES_MAX = 256 << 20 };
	uint32_t i;

	(void)state;
	for (i = 0; i < SENDS; i++) {
		arrive(i, false);
		made[i].world = i >= OTHERS;
		coll_arrival_hold(&made[i], BYTES / 2);
		if (!dropped[i])
			coll_arrival_hold(&made[i], BYTES);
		assert_int_equal(context.arrivals_bytes, (uint64_t)BYTES * waiting);
		assert_in_range(context.arrivals_bytes, BYTES, BYTES_MAX);
	}
	assert_in_range(refused, SENDS - BYTES_MAX / BYTES, SENDS - BYTES_MAX / BYTES / 8 * 7);
	for (i = 0; i < OTHERS; i++)
		assert_false(dropped[i]);
	assert_true(dropped[OTHERS]);
	assert_false(dropped[SENDS - 1]);
	coll_arrival_remove(&made[SENDS - 1]);
	forget(SENDS - 1);
	coll_arrival_hold(&made[SENDS - 1], BYTES_MAX);		/* harmless */
	assert_int_equal(context.arrivals_bytes, (uint64_t)BYTES * waiting);
}

/* ... also when the byte that is too many is another peer's. */
static void who_comes_next_is_not_refused(void **state)
{
	enum { HOARDED = 1000, BYTES = 256 << 10, BYTES_MAX = 256 << 20 };
	uint32_t i;

	(void)state;
	for (i = 0; i <= HOARDED; i++) {
		arrive(i, false);
		made[i].world = i == HOARDED ? 3 : COLL_NONE;
		coll_arrival_hold(&made[i], i == HOARDED ? 20 << 20 : BYTES);
	}
	assert_false(dropped[HOARDED]);
	assert_true(dropped[0]);
	assert_false(dropped[HOARDED - 1]);
	assert_true(context.arrivals_bytes <= BYTES_MAX);
}

/* Nothing but the one that asks has come of its peer. */
static void it_may_be_the_one_that_asks(void **state)
{
	(void)state;
	arrive(0, false);
	made[0].world = 5;
	coll_arrival_hold(&made[0], 1ull << 40);
	assert_true(dropped[0]);
	assert_int_equal(context.arrivals_bytes, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_oldest_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(the_ended_make_room, begin, end),
		cmocka_unit_test_setup_teardown(one_takes_another_along, begin, end),
		cmocka_unit_test_setup_teardown(who_leaves_is_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(the_peer_that_sends_too_much_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(who_comes_next_is_not_refused, begin, end),
		cmocka_unit_test_setup_teardown(it_may_be_the_one_that_asks, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
