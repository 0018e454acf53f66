// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What would be saved without a cause, on all ranks that have it at once: pages made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/flight/report.h"
#include "tests/lib/flight.h"

enum { RUNS = 40 };

static struct flight_job job;
static struct coll_flight_report report;

static const struct coll_flight_without *without_of(enum coll_flight_because because)
{
	uint32_t i;

	for (i = 0; i < report.withouts; i++)
		if (report.without[i].because == because)
			return &report.without[i];
	fail_msg("%s is no cause", coll_flight_because_names[because]);
	return NULL;
}

/* Of the job's time, to 5 % of that. */
static void saves(enum coll_flight_because because, uint32_t ranks, double part)
{
	const struct coll_flight_without *without = without_of(because);
	const double said = without->saved / report.seconds;

	if (said < part - 0.05 * part || said > part + 0.05 * part)
		fail_msg("without %s %g of the job is saved, not %g", coll_flight_because_names[because], said,
			 part);
	assert_int_equal(without->ranks, ranks);
	assert_true(without->least <= without->saved && without->saved <= without->most);
}

/* So many ms of two, in which it had waited for that long, were taken by this. */
static void takes(uint32_t rank, uint32_t which, enum coll_flight_taker_kind kind, uint32_t ms)
{
	struct coll_flight_observed *observed = &job.set.seen[rank]->observed;

	observed->taker[which] = (struct coll_flight_taker){ .ns = ms * 1000000ull, .kind = kind };
	snprintf(observed->taker[which].name, sizeof(observed->taker[which].name), "taker");
}

static void observe(uint32_t rank, uint32_t ran, uint32_t waited, enum coll_flight_doing outside)
{
	struct coll_flight_observed *observed = &job.set.seen[rank]->observed;

	*observed = (struct coll_flight_observed){
		.since = FLIGHT_NOW, .until = FLIGHT_NOW + 1000000000, .cost = 3000000, .looks = 100,
		.ran = ran * 1000000ull, .waited = waited * 1000000ull, .cpus = 1, .online = 8, .wholes = 9,
	};
	observed->outside[outside] = 90;
}

/* A call of two ranks: each comes at this time, was without a core before for so long, and ends when it has the other's message. */
static void meet(uint32_t number, const uint32_t began[2], const uint32_t before[2])
{
	const uint32_t last = (began[0] > began[1] ? began[0] : began[1]) + 11;
	uint32_t rank;

	for (rank = 0; rank < 2; rank++) {
		struct coll_flight_timed *run = flight_timed(&job, rank, number, began[rank], last);
		const int other = began[!rank] - began[rank] + 10;

		flight_exchange(run, !rank, 0, 1, other > 1 ? other : 1);
		run->stolen_before = before[rank] * 1000 / COLL_FLIGHT_TICK;
	}
}

/*
 * Both compute for 2 ms before each call, on one core: one first, and then the other. The second's loss is the only one, and
 * without it alone the first would have to wait for the core.
 */
static void ranks_that_share_a_core_save_half(void **state)
{
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++) {
		const uint32_t at = 4011 * i;

		meet(i, (const uint32_t[]){ at + (i % 2 ? 4000 : 2000), at + (i % 2 ? 2000 : 4000) },
		     (const uint32_t[]){ i % 2 ? 2000 : 0, i % 2 ? 0 : 2000 });
	}
	for (rank = 0; rank < 2; rank++) {
		observe(rank, 500, 250, COLL_FLIGHT_DOING_RUN);
		takes(rank, 0, COLL_FLIGHT_TAKER_RANK, 250);
	}
	flight_report_make(&job, &report, RUNS * 4011);
	saves(COLL_FLIGHT_BECAUSE_SHARED, 2, 2000 / 4011.);
	flight_report_close(&job, &report);
}

/* Each has its own time without a core, at the same moment: what one alone would save is nothing. */
static void a_cause_of_all_ranks_is_taken_from_all(void **state)
{
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++)
		meet(i, (const uint32_t[]){ 1011 * i + 1000, 1011 * i + 1000 }, (const uint32_t[]){ 400, 401 });
	for (rank = 0; rank < 2; rank++) {
		observe(rank, 500, 400, COLL_FLIGHT_DOING_RUN);
		takes(rank, 0, COLL_FLIGHT_TAKER_TASK, 400);
	}
	/* Somebody has to have lost something for a cause to be named. */
	meet(RUNS, (const uint32_t[]){ 1011 * RUNS + 1000, 1011 * RUNS + 1400 }, (const uint32_t[]){ 400, 800 });
	flight_report_make(&job, &report, (RUNS + 1) * 1011);
	saves(COLL_FLIGHT_BECAUSE_TASK, 2, 400 / 1011.);
	flight_report_close(&job, &report);
}

/* Rank 1 sleeps for 1 ms before calls, and is stopped for 2 ms meanwhile, in half of the calls: 1 ms of that is lost. */
static void a_stop_while_a_rank_sleeps_costs_what_is_left_of_it(void **state)
{
	uint32_t i, at = 0;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++) {
		const uint32_t longer = i % 2 ? 1000 : 0;

		meet(i, (const uint32_t[]){ at + 1000, at + 1000 + longer },
		     (const uint32_t[]){ 0, 2 * longer });
		at += 1011 + longer;
	}
	job.set.seen[1]->page.injected = RUNS / 2 * 2000000ull;
	flight_report_make(&job, &report, at);
	saves(COLL_FLIGHT_BECAUSE_INJECTED, 1, 500 / 1511.);
	flight_report_close(&job, &report);
}

/*
 * Rank 1 computes for 400 us more than the other, and interrupts take 200 of 1600 us of the time in which it has its core. It is
 * late for 600, of which they took no more than their own.
 */
static void interrupts_took_no_more_than_what_they_took(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++)
		meet(i, (const uint32_t[]){ 1611 * i + 1000, 1611 * i + 1600 }, (const uint32_t[]){ 0, 0 });
	observe(0, 500, 0, COLL_FLIGHT_DOING_SLEEP);
	observe(1, 800, 0, COLL_FLIGHT_DOING_RUN);
	job.set.seen[1]->observed.outside[COLL_FLIGHT_DOING_RUN] = 10;
	/* One ns without a core: all else of the taker's was taken while it had one. */
	job.set.seen[1]->observed.waited = 1;
	takes(1, 0, COLL_FLIGHT_TAKER_SOFTIRQS, 100);
	flight_report_make(&job, &report, RUNS * 1611);
	saves(COLL_FLIGHT_BECAUSE_INTERRUPTS, 1, 200 / 1611.);
	flight_report_close(&job, &report);
}

/* A program took a quarter of each call, and injected noise another: without one, the other's stops come as often in time. */
static void stops_that_are_left_are_fewer_in_a_shorter_job(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++)
		meet(i, (const uint32_t[]){ 1000 * i + 490, 1000 * i + 989 }, (const uint32_t[]){ 0, 500 });
	observe(0, 500, 0, COLL_FLIGHT_DOING_RUN);
	observe(1, 500, 250, COLL_FLIGHT_DOING_RUN);
	takes(1, 0, COLL_FLIGHT_TAKER_TASK, 250);
	job.set.seen[1]->page.delayed = 250000000;
	job.set.seen[1]->page.injected = 250000000;
	flight_report_make(&job, &report, RUNS * 1000);
	/* T' = 500 + T' / 4. */
	saves(COLL_FLIGHT_BECAUSE_TASK, 1, 1 - 500 / 750.);
	flight_report_close(&job, &report);
}

/* As a hostile page has it: there is room for each rank's record of a run once. */
static void a_page_that_has_a_run_again_and_again(void **state)
{
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++)
		meet(i, (const uint32_t[]){ 1000 * i + 490, 1000 * i + 989 }, (const uint32_t[]){ 0, 500 });
	for (rank = 0; rank < 2; rank++)
		for (i = RUNS; i < COLL_FLIGHT_TIMED; i++)
			job.set.seen[rank]->page.timed[i] = job.set.seen[rank]->page.timed[RUNS / 2];
	job.set.seen[1]->page.injected = 250000000;
	flight_report_make(&job, &report, RUNS * 1000);
	assert_true(without_of(COLL_FLIGHT_BECAUSE_INJECTED)->saved <= report.seconds);
	flight_report_close(&job, &report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_that_share_a_core_save_half),
		cmocka_unit_test(a_cause_of_all_ranks_is_taken_from_all),
		cmocka_unit_test(a_stop_while_a_rank_sleeps_costs_what_is_left_of_it),
		cmocka_unit_test(interrupts_took_no_more_than_what_they_took),
		cmocka_unit_test(a_page_that_has_a_run_again_and_again),
		cmocka_unit_test(stops_that_are_left_are_fewer_in_a_shorter_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
