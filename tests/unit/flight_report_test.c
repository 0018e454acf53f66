// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What calls cost, as a rank records it, and as the report finds its causes in pages made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/flight/report.h"
#include "libcoll/flight/timed.h"
#include "tests/lib/flight.h"
#include "flight_page.h"

static struct flight_job job;
static struct coll_flight_report report;

/* ---- the record ---------------------------------------------------------- */

static void record_runs(struct coll_flight *flight, uint64_t group, uint32_t runs)
{
	uint32_t number, timed;

	for (number = 0; number < runs; number++) {
		timed = coll_flight_timed_begin(flight, group, number, 1000 + number);
		if (timed)
			coll_flight_timed_end(flight,
				coll_flight_timed_of(flight, timed, group, number), 1500 + number);
	}
}

static uint32_t count_timed(const struct coll_flight *flight, uint32_t from, uint32_t to)
{
	uint32_t count = 0, i;

	for (i = 0; i < COLL_FLIGHT_TIMED; i++)
		count += flight->page->timed[i].began && flight->page->timed[i].number >= from &&
			 flight->page->timed[i].number < to;
	return count;
}

static void each_level_is_drawn_half_as_often(void **state)
{
	uint32_t count[4] = { 0 }, i, level;

	(void)state;
	for (i = 0; i < 65536; i++)
		for (level = 0; level < 4; level++)
			count[level] += coll_flight_draw(77, i) >= level;
	assert_int_equal(count[0], 65536);
	assert_in_range(count[1], 32768 - 1600, 32768 + 1600);
	assert_in_range(count[2], 16384 - 1400, 16384 + 1400);
	assert_in_range(count[3], 8192 - 1100, 8192 + 1100);
}

static void every_run_is_timed_until_the_table_is_full(void **state)
{
	struct coll_flight flight;

	(void)state;
	open_page(&flight);
	record_runs(&flight, 5, COLL_FLIGHT_TIMED);
	assert_int_equal(count_timed(&flight, 0, COLL_FLIGHT_TIMED), COLL_FLIGHT_TIMED);
	assert_int_equal(flight.page->timed_level, 0);
	coll_flight_close(&flight);
}

static void the_table_has_runs_of_the_whole_job(void **state)
{
	struct coll_flight flight, other;
	uint32_t i, found = 0;

	(void)state;
	open_page(&flight);
	open_page(&other);
	record_runs(&flight, 5, 40000);
	record_runs(&other, 5, 40000);
	for (i = 0; i < 4; i++)
		assert_in_range(count_timed(&flight, 10000 * i, 10000 * (i + 1)), 10, 100);
	for (i = 0; i < COLL_FLIGHT_TIMED; i++)
		found += flight.page->timed[i].began == other.page->timed[i].began &&
			 flight.page->timed[i].number == other.page->timed[i].number;
	assert_int_equal(found, COLL_FLIGHT_TIMED);	/* two ranks have the same ones */
	coll_flight_close(&flight);
	coll_flight_close(&other);
}

static void a_run_that_has_lost_its_entry_is_not_written(void **state)
{
	struct coll_flight flight;
	uint32_t number = 0, timed;

	(void)state;
	open_page(&flight);
	while (coll_flight_draw(5, number))
		number++;
	timed = coll_flight_timed_begin(&flight, 5, number, 100);
	assert_non_null(coll_flight_timed_of(&flight, timed, 5, number));
	record_runs(&flight, 6, 4 * COLL_FLIGHT_TIMED);
	assert_null(coll_flight_timed_of(&flight, timed, 5, number));
	coll_flight_close(&flight);
}

static void the_first_message_of_each_peer_counts(void **state)
{
	struct coll_flight_timed run = { .began = 1000 };
	uint32_t peer;

	(void)state;
	coll_flight_timed_sent(&run, 3, 1000);		/* at once: no time is 0 */
	coll_flight_timed_sent(&run, 3, 9000);
	coll_flight_timed_posted(&run, 3, 1000 + 2 * COLL_FLIGHT_TICK);
	coll_flight_timed_posted(&run, 3, 1000 + 4 * COLL_FLIGHT_TICK);
	coll_flight_timed_arrived(&run, 3, 1000 + 5 * COLL_FLIGHT_TICK);
	coll_flight_timed_posted(&run, 3, 1000 + 6 * COLL_FLIGHT_TICK);
	coll_flight_timed_found(&run, 3, 1000 + 6 * COLL_FLIGHT_TICK);
	coll_flight_timed_arrived(&run, 3, 1000 + 7 * COLL_FLIGHT_TICK);
	assert_int_equal(run.exchanges, 1);
	assert_int_equal(run.with[0].sent, 1);
	assert_int_equal(run.with[0].posted, 2);
	assert_int_equal(run.with[0].arrived, 5);
	coll_flight_timed_posted(&run, 4, 1000 + 2 * COLL_FLIGHT_TICK);
	coll_flight_timed_found(&run, 4, 1000 + 4 * COLL_FLIGHT_TICK);		/* it was here already */
	coll_flight_timed_arrived(&run, 4, 1000 + 5 * COLL_FLIGHT_TICK);
	assert_int_equal(run.with[1].posted, 4);
	assert_int_equal(run.with[1].arrived, 4);
	for (peer = 10; peer < 30; peer++)
		coll_flight_timed_sent(&run, peer, 1000 + (1ull << 60));
	assert_int_equal(run.exchanges, COLL_FLIGHT_EXCHANGES);
	assert_int_equal(run.with[2].sent, UINT32_MAX);
}

/* ---- the report ---------------------------------------------------------- */

/* The jobs have lasted for 50 ms. */
static void make_report(void)
{
	flight_report_make(&job, &report, 50000);
	assert_true(report.losses > 0);
}

static void is_first(enum coll_flight_loss_kind kind, uint32_t rank, uint32_t from)
{
	assert_string_equal(coll_flight_loss_names[report.loss[0].kind], coll_flight_loss_names[kind]);
	assert_int_equal(report.loss[0].rank, rank);
	assert_int_equal(report.loss[0].from, from);
}

static void is_near(double value, double wanted)
{
	if (value < wanted - 0.05 * wanted || value > wanted + 0.05 * wanted)
		fail_msg("%g is not near to %g", value, wanted);
}

/* Both wait for rank 2, one of them only by way of the other. */
static void the_last_of_the_chain_is_late(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, i < 10 ? 500 : 0, 10);
	make_report();
	is_first(COLL_FLIGHT_LOSS_LATE, 2, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].share, 0.5);
	is_near(report.loss[0].by, 500e-6);
	is_near(report.loss[0].cost, 10 * 2 * 500e-6 / 3);	/* two of three ranks wait */
	is_near(report.loss[0].saved, 10 * 500e-6);
	assert_true(report.loss[0].saved_least < report.loss[0].saved);
	assert_true(report.loss[0].saved_most > report.loss[0].saved);
	assert_int_equal(report.timed, 20);
	flight_report_close(&job, &report);
}

/* It computed no longer than others, had it had a core. */
static void a_rank_may_be_late_for_want_of_a_core(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 500, 10);
		job.set.seen[2]->page.timed[i].stolen_before = 400000 / COLL_FLIGHT_TICK;
	}
	make_report();
	is_first(COLL_FLIGHT_LOSS_STOLEN, 2, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].by, 400e-6);
	assert_int_equal(report.loss[1].kind, COLL_FLIGHT_LOSS_LATE);
	is_near(report.loss[1].by, 100e-6);
	flight_report_close(&job, &report);
}

/* Without the latest the second decides, which is late as well. */
static void the_second_limits_what_is_saved(void **state)
{
	struct coll_flight_timed *run;

	(void)state;
	flight_open(&job, 3);
	run = flight_timed(&job, 0, 0, 1000, 1512);
	flight_exchange(run, 1, -1, 1, 411);
	flight_exchange(run, 2, -1, 1, 511);
	flight_exchange(flight_timed(&job, 1, 0, 1400, 1401), 0, 1, -1, -1);
	flight_exchange(flight_timed(&job, 2, 0, 1500, 1501), 0, 1, -1, -1);
	make_report();
	is_first(COLL_FLIGHT_LOSS_LATE, 2, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].cost, 500e-6 / 3);
	is_near(report.loss[0].saved, 100e-6 / 2);	/* of each of the other two */
	assert_true(report.loss[0].saved_most < 0);	/* one block says nothing of others */
	flight_report_close(&job, &report);
}

static void a_slow_link_is_told_from_a_late_rank(void **state)
{
	char text[400];
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 5, i % 2 ? 700 : 10);
	make_report();
	is_first(COLL_FLIGHT_LOSS_LINK, 1, 2);
	assert_non_null(strstr(coll_flight_verdict(&report, text, sizeof(text)), "from rank 2 to rank 1"));
	flight_report_close(&job, &report);
}

/* A late message makes its receiver late for the next run: that is the link's, not the rank's. */
static void what_made_a_rank_late_is_followed(void **state)
{
	struct coll_flight_timed *run;
	uint32_t i, at;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i += 2) {
		at = 1000 * (i + 1);
		flight_exchange(flight_timed(&job, 0, i, at, at + 1), 1, 0, -1, -1);
		flight_exchange(flight_timed(&job, 1, i, at, at + 602), 0, -1, 1, i ? 600 : 10);
		run = flight_timed(&job, 2, i, at, at + 20);
		flight_exchange(run, 0, -1, 1, 10);
		flight_exchange(&job.set.seen[0]->page.timed[i], 2, 0, -1, -1);
		at += 100;			/* all compute for 100 us: rank 1 is late */
		run = flight_timed(&job, 0, i + 1, at, at + 613);
		flight_exchange(run, 1, -1, 1, 612);
		flight_exchange(flight_timed(&job, 1, i + 1, at + 602, at + 603), 0, 0, -1, -1);
		flight_timed(&job, 2, i + 1, at, at + 1);
	}
	make_report();
	is_first(COLL_FLIGHT_LOSS_LINK, 1, 0);
	assert_int_equal(report.losses, 1);
	flight_report_close(&job, &report);
}

static void a_rank_without_a_core_is_told_from_a_slow_link(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 5, i % 2 ? 700 : 10);
		if (i % 2)
			job.set.seen[1]->page.timed[i].stolen = 690000 / COLL_FLIGHT_TICK;
	}
	make_report();
	is_first(COLL_FLIGHT_LOSS_STOLEN, 1, COLL_FLIGHT_NO_RANK);
	flight_report_close(&job, &report);
}

/* Rank 2 and its host's clock; the messages between the hosts go both ways. */
static void clocks_of_hosts_are_aligned(void **state)
{
	struct coll_flight_timed *run;
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	job.set.seen[2]->page.opened += 3600 * 1000000000ull;
	snprintf(job.set.seen[2]->page.host, sizeof(job.set.seen[2]->page.host), "other");
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10);
	run = flight_timed(&job, 2, 20, 40000, 40100);		/* now rank 1 is late */
	flight_exchange(run, 1, -1, 1, 60);
	run = flight_timed(&job, 1, 20, 40050, 40051);
	flight_exchange(run, 2, 0, -1, -1);
	make_report();
	assert_int_equal(report.hosts, 2);
	is_first(COLL_FLIGHT_LOSS_LATE, 2, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].by, 500e-6);
	flight_report_close(&job, &report);
}

static void what_is_not_known_names_no_rank(void **state)
{
	uint32_t i;
	char text[400];

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 5; i++)
		flight_chain(&job, i, 500, 10);
	memset(job.set.seen[2]->page.timed, 0, sizeof(job.set.seen[2]->page.timed));
	flight_report_make(&job, &report, 50000);
	assert_int_equal(report.losses, 0);
	is_near(report.unknown, 5 * 2 * 509e-6 / 3);
	assert_non_null(strstr(coll_flight_verdict(&report, text, sizeof(text)), "is not known"));
	flight_report_close(&job, &report);
}

/* By the recorder: the root of a linear gather and broadcast, to which `late` comes last. */
static void linear_root(struct coll_flight_timed *run, uint32_t ranks, uint32_t late)
{
	uint32_t rank;

	run->exchanges = 0;
	for (rank = 1; rank < ranks; rank++)
		coll_flight_timed_posted(run, rank, run->began + 1000);
	for (rank = 1; rank < ranks; rank++)
		if (rank != late)
			coll_flight_timed_arrived(run, rank, run->began + 10000 + rank);
	coll_flight_timed_arrived(run, late, run->began + 510000);
	for (rank = 1; rank < ranks; rank++)
		coll_flight_timed_sent(run, rank, run->began + 511000);
}

static void of_many_partners_the_last_counts(void **state)
{
	const uint32_t ranks = 12, late = 9;
	struct coll_flight_timed *run;
	uint32_t i, rank, at;

	(void)state;
	flight_open(&job, ranks);
	for (i = 0; i < 20; i++) {
		at = 1000 * (i + 1);
		linear_root(flight_timed(&job, 0, i, at, at + 512), ranks, late);
		for (rank = 1; rank < ranks; rank++) {
			const int began = rank == late ? 500 : 0;

			run = flight_timed(&job, rank, i, at + began, at + 522);
			flight_exchange(run, 0, 0, 1, 521 - began);
		}
	}
	make_report();
	is_first(COLL_FLIGHT_LOSS_LATE, late, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].cost, 20 * 11 * 500e-6 / ranks);
	assert_int_equal(report.losses, 1);
	assert_true(report.unknown < 0.1 * report.loss[0].cost);
	flight_report_close(&job, &report);
}

static void a_job_without_calls_has_a_report(void **state)
{
	char text[400];

	(void)state;
	flight_open(&job, 2);
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	assert_int_equal(report.losses, 0);
	assert_non_null(strstr(coll_flight_verdict(&report, text, sizeof(text)), "nothing to account"));
	flight_report_close(&job, &report);
}

/* What is lost in a call that has not ended is not scaled onto who was late before. */
static void the_current_wait_is_a_line_of_its_own(void **state)
{
	char text[COLL_FLIGHT_TEXT];
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, i < 10 ? 500 : 0, 10);
	flight_wait(&job, 0, 0, 20, 1);
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	is_first(COLL_FLIGHT_LOSS_LATE, 2, COLL_FLIGHT_NO_RANK);
	is_near(report.loss[0].cost, 10 * 2 * 500e-6 / 3);
	is_near(report.waiting, FLIGHT_WAITED / 1e9 / 3);
	assert_non_null(coll_flight_waits_for(&report, &job.job, text));
	assert_non_null(strstr(text, "rank 1"));
	flight_report_close(&job, &report);
}

/* One long call that was not drawn. */
static void timed_calls_that_are_no_sample_name_no_rank(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10);
	for (i = 0; i < 3; i++) {
		job.set.seen[i]->page.spent += 40000000;
		coll_flight_sum_add(&job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].sum, 40000000);
	}
	flight_report_make(&job, &report, 50000);
	assert_true(report.skewed);
	assert_int_equal(report.losses, 0);
	assert_true(report.unknown > 0.02 && report.unknown <= report.inside);
	flight_report_close(&job, &report);
}

/* A rank that comes last finds all messages: its run is no run's least time. */
static void the_shortest_is_from_the_last_begin(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10 + i % 2);
	make_report();
	is_near(report.site[0].shortest, 22e-6);
	is_near(report.least, 20 * 22e-6);
	flight_report_close(&job, &report);
}

/* Rank 2's clock is known to 300 us, by a slow message each way: it is not known to be late. */
static void what_is_less_than_the_clocks_error_is_not_known(void **state)
{
	struct coll_flight_timed *run;
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	snprintf(job.set.seen[2]->page.host, sizeof(job.set.seen[2]->page.host), "other");
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 300);
	run = flight_timed(&job, 2, 20, 40000, 41000);
	flight_exchange(run, 1, -1, 1, 850);
	run = flight_timed(&job, 1, 20, 40050, 40151);
	flight_exchange(run, 2, 0, -1, -1);
	flight_report_make(&job, &report, 50000);
	assert_true(report.clock_error > 500e-6);
	for (i = 0; i < report.losses; i++)
		assert_int_not_equal(report.loss[i].kind, COLL_FLIGHT_LOSS_LATE);
	assert_true(report.unknown > 0);
	flight_report_close(&job, &report);
}

/* Compared by CLOCK_REALTIME alone, whose error is not known. */
static void unknown_clocks_name_no_rank(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	snprintf(job.set.seen[2]->page.host, sizeof(job.set.seen[2]->page.host), "other");
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10);
	flight_report_make(&job, &report, 50000);
	assert_true(report.clock_error < 0);
	assert_int_equal(report.losses, 0);
	assert_true(report.unknown > 0);
	flight_report_close(&job, &report);
}

/* Times that no job has make no report: they would be printed. */
static void times_beyond_all_bounds_are_refused(void **state)
{
	struct coll_flight_page *page;
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		flight_open(&job, 3);
		flight_chain(&job, 0, 500, 10);
		page = &job.set.seen[1]->page;
		*(__u64 *[]){ &page->call[COLL_FLIGHT_CALLS - 1].predicted,
				 &page->call[COLL_FLIGHT_CALLS - 1].sum.shortest,
				 &page->call[COLL_FLIGHT_CALLS - 1].sum.runs, &page->spent,
				 &page->timed[0].ended }[i] = UINT64_MAX;
		assert_int_equal(coll_flight_report_make(&report, &job.job), -EPROTO);
		flight_close(&job);
	}
}

/* Records of a rank that lies: the path ends, and nothing is read beyond the tables. */
static void contradictions_are_survived(void **state)
{
	struct coll_flight_timed *run;
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < 2; i++) {
		run = flight_timed(&job, i, 0, 1000, 2000);
		flight_exchange(run, !i, 900, 1, 800);
		flight_exchange(run, 0xfffffffe, 1, 2, 900);
		run->began -= i << 30;
		run->stolen = UINT32_MAX;
	}
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	flight_report_close(&job, &report);
	flight_open(&job, 2);
	job.set.seen[0]->page.ranks = UINT32_MAX;
	assert_int_not_equal(coll_flight_report_make(&report, &job.job), 0);
	flight_close(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_level_is_drawn_half_as_often),
		cmocka_unit_test(every_run_is_timed_until_the_table_is_full),
		cmocka_unit_test(the_table_has_runs_of_the_whole_job),
		cmocka_unit_test(a_run_that_has_lost_its_entry_is_not_written),
		cmocka_unit_test(the_first_message_of_each_peer_counts),
		cmocka_unit_test(the_last_of_the_chain_is_late),
		cmocka_unit_test(a_rank_may_be_late_for_want_of_a_core),
		cmocka_unit_test(the_second_limits_what_is_saved),
		cmocka_unit_test(a_slow_link_is_told_from_a_late_rank),
		cmocka_unit_test(what_made_a_rank_late_is_followed),
		cmocka_unit_test(a_rank_without_a_core_is_told_from_a_slow_link),
		cmocka_unit_test(clocks_of_hosts_are_aligned),
		cmocka_unit_test(what_is_not_known_names_no_rank),
		cmocka_unit_test(of_many_partners_the_last_counts),
		cmocka_unit_test(a_job_without_calls_has_a_report),
		cmocka_unit_test(the_current_wait_is_a_line_of_its_own),
		cmocka_unit_test(timed_calls_that_are_no_sample_name_no_rank),
		cmocka_unit_test(the_shortest_is_from_the_last_begin),
		cmocka_unit_test(what_is_less_than_the_clocks_error_is_not_known),
		cmocka_unit_test(unknown_clocks_name_no_rank),
		cmocka_unit_test(times_beyond_all_bounds_are_refused),
		cmocka_unit_test(contradictions_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
