// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What follows from answers of colld: what is new in them, and nothing from those that are stale or absurd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/flight/stolen.h"

static struct coll_stolen_known known;
static struct coll_stolen stolen;

static bool take(uint64_t seconds, uint64_t ms, uint64_t stops)
{
	const struct coll_flight_observed observed = {
		.since = COLL_SECOND, .until = (10 + seconds) * COLL_SECOND, .source = COLL_FLIGHT_BY_COLLD,
		.stolen = ms * 1000000, .stops = stops,
	};

	stolen = (struct coll_stolen){ 1, 1, 1 };
	return coll_stolen_take(&known, &observed, &stolen);
}

static void begin(void)
{
	known = (struct coll_stolen_known){ .ask_at = 0 };
	assert_false(take(0, 100, 10));		/* since when is not known */
}

static void what_is_new_is_told(void **state)
{
	(void)state;
	begin();
	assert_true(take(2, 700, 40));
	assert_int_equal(stolen.seen, 2 * COLL_SECOND);
	assert_int_equal(stolen.ns, 600000000);
	assert_int_equal(stolen.stops, 30);
	assert_true(take(3, 700, 40));
	assert_int_equal(stolen.stops, 0);
}

static void a_stale_answer_tells_nothing(void **state)
{
	(void)state;
	begin();
	assert_false(take(0, 100, 10));
	assert_false(take(0, 200, 20));
	assert_true(take(1, 210, 21));
	assert_false(take(900, 300, 22));	/* nobody looked for so long */
	assert_true(take(901, 310, 23));
}

/* It was started again, or the file is another one. */
static void numbers_that_fall_are_a_begin(void **state)
{
	(void)state;
	begin();
	assert_false(take(2, 10, 20));
	assert_false(take(3, 20, 3));
	assert_false(take(1, 30, 4));
	assert_true(take(2, 40, 5));
	assert_int_equal(stolen.ns, 10000000);
}

static void absurd_numbers_tell_nothing(void **state)
{
	(void)state;
	begin();
	assert_false(take(1, 100 + 2001, 11));	/* more than two threads can lose */
	begin();
	assert_false(take(1, 200, 10 + 1000001));
	begin();
	assert_false(take(1, 100, 11));		/* a stop of no length */
	begin();
	assert_false(take(1, UINT64_MAX / 1000000, 11));
}

static void only_colld_is_asked(void **state)
{
	struct coll_flight_observed observed = {
		.since = 1, .until = 2 * COLL_SECOND, .source = COLL_FLIGHT_BY_USER, .stolen = 1000, .stops = 1,
	};

	(void)state;
	known = (struct coll_stolen_known){ .ask_at = 0 };
	assert_false(coll_stolen_take(&known, &observed, &stolen));
	assert_int_equal(known.until, 0);
	observed.source = COLL_FLIGHT_BY_COLLD;
	observed.since = observed.until;
	assert_false(coll_stolen_take(&known, &observed, &stolen));
	assert_int_equal(known.until, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_new_is_told),
		cmocka_unit_test(a_stale_answer_tells_nothing),
		cmocka_unit_test(numbers_that_fall_are_a_begin),
		cmocka_unit_test(absurd_numbers_tell_nothing),
		cmocka_unit_test(only_colld_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
