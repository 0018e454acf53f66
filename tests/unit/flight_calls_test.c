// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Entries of calls in the flight page: whose they are, and where runs count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/flight/timed.h"
#include "flight_page.h"

static void sums_outlive_their_entries(void **state)
{
	struct coll_flight flight;
	uint8_t entry;
	uint32_t i;

	(void)state;
	open_page(&flight);
	for (i = 0; i < COLL_FLIGHT_CALLS + 3; i++)
		coll_flight_sum_add(&coll_flight_call_take(&flight, NULL, &entry)->sum, 100 + i);
	assert_int_equal(flight.page->past.runs, 3);
	assert_int_equal(flight.page->past.ns, 303);
	assert_int_equal(flight.page->past.shortest, 100);
	coll_flight_close(&flight);
}

/* A run of this call, in flight. */
static uint32_t run_in_flight(struct coll_flight *flight, uint8_t call)
{
	const uint32_t run = coll_flight_run_take(flight);

	flight->page->run[run] = (struct coll_flight_run){ .where = COLL_FLIGHT_HERE, .call = call - 1 };
	return run;
}

/* A long run is in flight while more calls than there are entries begin: it is shown, and counts, as what it is. */
static void a_call_in_flight_keeps_its_entry(void **state)
{
	struct coll_flight flight;
	uint8_t first, entry;
	uint32_t run, i;

	(void)state;
	open_page(&flight);
	coll_flight_call_take(&flight, &flight, &first)->hash = 7;
	run = run_in_flight(&flight, first);
	for (i = 0; i < 3 * COLL_FLIGHT_CALLS; i++) {
		coll_flight_call_take(&flight, NULL, &entry);
		assert_int_not_equal(entry, first);
	}
	assert_ptr_equal(coll_flight_run_sum(&flight, run), &flight.page->call[first - 1].sum);
	assert_int_equal(flight.page->call[first - 1].hash, 7);
	coll_flight_run_free(&flight, run);
	for (i = 0; i < COLL_FLIGHT_CALLS; i++)
		coll_flight_call_take(&flight, NULL, &entry);
	assert_int_equal(flight.page->call[first - 1].hash, 0);
	coll_flight_close(&flight);
}

/* Each has a run in flight: the oldest gives way, and its run does not count as one of the call that comes. */
static void a_run_whose_call_gives_way_counts_as_past(void **state)
{
	struct coll_flight flight;
	uint8_t first = 0, entry;
	uint32_t run = 0, i;

	(void)state;
	open_page(&flight);
	for (i = 0; i < COLL_FLIGHT_CALLS; i++) {
		coll_flight_call_take(&flight, NULL, &entry);
		if (i) {
			run_in_flight(&flight, entry);
		} else {
			first = entry;
			run = run_in_flight(&flight, entry);
		}
	}
	coll_flight_call_take(&flight, NULL, &entry);
	assert_int_equal(entry, first);
	assert_ptr_equal(coll_flight_run_sum(&flight, run), &flight.page->past);
	coll_flight_run_free(&flight, run);
	run = run_in_flight(&flight, entry);
	assert_ptr_equal(coll_flight_run_sum(&flight, run), &flight.page->call[entry - 1].sum);
	coll_flight_close(&flight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_outlive_their_entries),
		cmocka_unit_test(a_call_in_flight_keeps_its_entry),
		cmocka_unit_test(a_run_whose_call_gives_way_counts_as_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
