// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What would be saved by what somebody could do: pages made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/algo.h"
#include "libcoll/flight/report_path.h"
#include "tests/lib/flight.h"

enum { RUNS = 20 };

static struct flight_job job;
static struct coll_flight_report report;

static const struct coll_flight_remedy *remedy_of(enum coll_flight_remedy_kind kind)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_REMEDIES; i++)
		if (report.remedy[i].kind == kind)
			return &report.remedy[i];
	fail_msg("there is no remedy %d", kind);
	return NULL;
}

/* Seconds, to 5 %, with an interval around them. */
static void saves(enum coll_flight_remedy_kind kind, double seconds)
{
	const struct coll_flight_remedy *remedy = remedy_of(kind);

	if (remedy->unknown)
		fail_msg("%s: not known: %s", coll_flight_remedy_names[kind], remedy->unknown);
	if (remedy->saved < 0.95 * seconds - 1e-9 || remedy->saved > 1.05 * seconds + 1e-9)
		fail_msg("%s saves %g s, not %g", coll_flight_remedy_names[kind], remedy->saved, seconds);
	assert_true(remedy->least <= remedy->saved && remedy->saved <= remedy->most);
}

static void is_unknown(enum coll_flight_remedy_kind kind, const char *why)
{
	const struct coll_flight_remedy *remedy = remedy_of(kind);

	if (!remedy->unknown || !strstr(remedy->unknown, why))
		fail_msg("%s: '%s' is not '%s'", coll_flight_remedy_names[kind],
			 remedy->unknown ? remedy->unknown : "known", why);
}

static void has_host(uint32_t rank, const char *host)
{
	snprintf(job.set.seen[rank]->page.host, sizeof(job.set.seen[rank]->page.host), "%s", host);
}

/* For a second, on CPU 0 of 8: so many ms of its core were taken by this program, by interrupts. */
static void observe(uint32_t rank, const char *program, uint32_t ms, uint32_t interrupts)
{
	struct coll_flight_observed *observed = &job.set.seen[rank]->observed;

	*observed = (struct coll_flight_observed){
		.since = FLIGHT_NOW, .until = FLIGHT_NOW + 1000000000, .cost = 3000000, .looks = 100,
		.cpus = 1, .online = 8, .wholes = 9, .outside = { [COLL_FLIGHT_DOING_RUN] = 90 },
		.taker = { { .ns = ms * 1000000ull },
			   { .ns = interrupts * 1000000ull, .kind = COLL_FLIGHT_TAKER_INTERRUPTS } },
	};
	snprintf(observed->taker[0].name, sizeof(observed->taker[0].name), "%s", program);
}

static void is_stolen_before(uint32_t rank, uint32_t number, uint32_t us)
{
	job.set.seen[rank]->page.timed[number].stolen_before = us * 1000 / COLL_FLIGHT_TICK;
}

/* All wait for all: each rank comes so late, and ends 11 us after the last one, whose message takes 10. */
static void all_wait(uint32_t number, const int *late)
{
	const uint32_t at = 1000 * (number + 1), ranks = job.set.count;
	uint32_t rank, peer, last = 0;

	for (rank = 1; rank < ranks; rank++)
		if (late[rank] > late[last])
			last = rank;
	for (rank = 0; rank < ranks; rank++) {
		struct coll_flight_timed *run = flight_timed(&job, rank, number, at + late[rank],
							     at + late[last] + 11);

		for (peer = 0; peer < ranks; peer++)
			if (peer != rank)
				flight_exchange(run, peer, 0, 1, late[peer] + 10 > late[rank] + 1 ?
						late[peer] - late[rank] + 10 : 1);
	}
}

static void pinning_and_stopping_give_back_what_was_taken(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		flight_chain(&job, i, 500, 10);
		is_stolen_before(2, i, 480);
	}
	observe(2, "backup", 300, 100);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_PIN, RUNS * 480e-6);
	/* 120 us of 1000 are left to interrupts, and less in a shorter job. */
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 360e-6 / (1 - 0.12));
	assert_string_equal(remedy_of(COLL_FLIGHT_REMEDY_STOP)->what, "stop `backup`");
	assert_int_equal(report.remedy[0].kind, COLL_FLIGHT_REMEDY_PIN);	/* what saves most */
	flight_report_close(&job, &report);
}

/* Rank 1 comes 300 us late, for it computes: without the program it is the last one. */
static void of_several_late_ranks_the_next_decides(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		all_wait(i, (const int[]){ 0, 300, 500 });
		is_stolen_before(2, i, 480);
	}
	observe(2, "backup", 300, 0);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 200e-6);
	flight_report_close(&job, &report);
}

/* Nobody waits for anybody: the job is slower all the same. */
static void who_is_disturbed_like_all_is_late_for_nobody(void **state)
{
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		all_wait(i, (const int[]){ 400, 400, 400 });
		for (rank = 0; rank < 3; rank++)
			is_stolen_before(rank, i, 400);
	}
	for (rank = 0; rank < 3; rank++)
		observe(rank, "backup", 300, 0);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 400e-6);
	flight_report_close(&job, &report);
}

/* ... nor where they begin one after the other and the first one, a root, waits for none. */
static void who_is_disturbed_nearly_like_all_is_late_for_nobody(void **state)
{
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		for (rank = 0; rank < 3; rank++) {
			struct coll_flight_timed *run = flight_timed(&job, rank, i, 1000 * (i + 1) + rank,
								     1000 * (i + 1) + 100);

			flight_exchange(run, rank ? 0 : 1, rank ? -1 : 0, rank ? 1 : -1, rank ? 1 : -1);
			is_stolen_before(rank, i, 400);
		}
	}
	for (rank = 0; rank < 3; rank++)
		observe(rank, "backup", 300, 0);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_PIN, RUNS * 400e-6);
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 400e-6);
	flight_report_close(&job, &report);
}

/* Three quarters of the time without a core are noise of option inject, which no program took: 360 us of 1000. */
static void injected_noise_is_of_no_program(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		flight_chain(&job, i, 500, 10);
		is_stolen_before(2, i, 480);
	}
	job.set.seen[2]->page.delayed = 1000000;
	job.set.seen[2]->page.injected = 3000000;
	observe(2, "backup", 300, 0);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_PIN, RUNS * 120e-6 / (1 - 0.36));
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 120e-6 / (1 - 0.36));
	flight_report_close(&job, &report);
}

/* Both ranks have the program, in turns; each alone would save half. */
static void a_program_is_stopped_on_all_nodes(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		all_wait(i, i % 2 ? (const int[]){ 0, 400, 0 } : (const int[]){ 0, 0, 400 });
		is_stolen_before(2 - i % 2, i, 400);
	}
	observe(1, "backup", 300, 0);
	observe(2, "backup", 300, 0);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_STOP, RUNS * 400e-6);
	flight_report_close(&job, &report);
}

static void what_nobody_looked_at_is_not_known(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		flight_chain(&job, i, 500, 10);
		is_stolen_before(2, i, 480);
	}
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_PIN, "nobody looked at the ranks");
	is_unknown(COLL_FLIGHT_REMEDY_STOP, "nobody looked at the ranks");
	is_unknown(COLL_FLIGHT_REMEDY_TOGETHER, "on one node");
	is_unknown(COLL_FLIGHT_REMEDY_LEAVE_OUT, "on one node");
	flight_report_close(&job, &report);
}

/* Where each CPU has a rank, there is nowhere to move a program to; the job does not stop itself. */
static void what_cannot_be_done_saves_nothing(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		flight_chain(&job, i, 500, 10);
		is_stolen_before(2, i, 480);
	}
	for (i = 0; i < 3; i++) {
		observe(i, "program", 300, 0);	/* the job's */
		job.set.seen[i]->observed.online = 1;
	}
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_PIN, "no CPU without a rank");
	is_unknown(COLL_FLIGHT_REMEDY_STOP, "no program has a name");
	flight_report_close(&job, &report);
}

/* Two ranks that may use both of two CPUs, or three. */
static void ranks_that_are_not_bound_need_a_cpu_each(void **state)
{
	uint32_t i, online;

	(void)state;
	for (online = 2; online <= 3; online++) {
		flight_open(&job, 2);
		for (i = 0; i < RUNS; i++) {
			all_wait(i, (const int[]){ 0, 400 });
			is_stolen_before(1, i, 400);
		}
		for (i = 0; i < 2; i++) {
			observe(i, "backup", 300, 0);
			job.set.seen[i]->observed.cpus = job.set.seen[i]->observed.online = online;
		}
		flight_report_make(&job, &report, 50000);
		if (online == 2)
			is_unknown(COLL_FLIGHT_REMEDY_PIN, "no CPU without a rank");
		else
			saves(COLL_FLIGHT_REMEDY_PIN, RUNS * 400e-6);
		flight_report_close(&job, &report);
	}
}

/* It is the first of no rank. */
static void what_takes_most_of_all_ranks_is_stopped(void **state)
{
	static const char *const first[] = { "a", "b", "c" };
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < RUNS; i++) {
		flight_chain(&job, i, 500, 10);
		is_stolen_before(2, i, 480);
	}
	for (i = 0; i < 3; i++) {
		struct coll_flight_taker *taker = job.set.seen[i]->observed.taker;

		observe(i, first[i], 50, 0);
		taker[1] = (struct coll_flight_taker){ .ns = 40000000, .name = "backup" };
	}
	flight_report_make(&job, &report, 50000);
	assert_string_equal(remedy_of(COLL_FLIGHT_REMEDY_STOP)->what, "stop `backup`");
	flight_report_close(&job, &report);
}

/* A message each way, from which the hosts' clocks are known. */
static void compare_clocks(uint32_t number)
{
	flight_exchange(flight_timed(&job, 0, number, 40000, 40002), 2, 0, -1, -1);
	flight_exchange(flight_timed(&job, 2, number, 40000, 40012), 0, -1, 1, 10);
	flight_exchange(flight_timed(&job, 2, number + 1, 41000, 41002), 0, 0, -1, -1);
	flight_exchange(flight_timed(&job, 0, number + 1, 41000, 41012), 2, -1, 1, 10);
}

/* Ranks 0 and 1 are on one node, 2 and 3 on the other; 1 and 3 are disturbed, in turns or not. */
static void open_two_nodes(bool in_turns)
{
	uint32_t i;

	flight_open(&job, 4);
	has_host(2, "n1");
	has_host(3, "n1");
	for (i = 0; i < RUNS; i++) {
		const bool first = !in_turns || i % 2, second = !in_turns || !(i % 2);

		all_wait(i, (const int[]){ 0, first ? 400 : 0, 0, second ? 410 : 10 });
		is_stolen_before(1, i, first ? 400 : 0);
		is_stolen_before(3, i, second ? 400 : 0);
	}
	compare_clocks(RUNS);
}

/* 400 of 1000 us would be saved, and 200 that are left come as often in time: 250 of 750. */
static void disturbances_at_the_same_time_cost_once(void **state)
{
	(void)state;
	open_two_nodes(true);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_TOGETHER, RUNS / 2 * 400e-6 / (1 - 0.2));
	flight_report_close(&job, &report);
	open_two_nodes(false);		/* they are already */
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_TOGETHER, 0);
	flight_report_close(&job, &report);
}

/* Calls within one node or the other, in which a rank is disturbed, are no gain of the one that is not there. */
static void a_node_that_takes_no_part_gains_nothing(void **state)
{
	uint32_t i;

	(void)state;
	open_two_nodes(false);
	for (i = RUNS + 2; i < 2 * RUNS + 2; i++) {
		const uint32_t at = 20000 + 1000 * i, first = i < RUNS + RUNS / 2 ? 0 : 2;

		flight_exchange(flight_timed(&job, first + 1, i, at + 400, at + 411), first, 0, -1, -1);
		flight_exchange(flight_timed(&job, first, i, at, at + 411), first + 1, -1, 1, 410);
		is_stolen_before(first + 1, i, 400);
	}
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_TOGETHER, 0);
	flight_report_close(&job, &report);
}

static void without_the_worst_node_the_others_decide(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 4);
	has_host(2, "n1");
	has_host(3, "n1");
	for (i = 0; i < RUNS; i++)
		all_wait(i, (const int[]){ 0, 100, 300, 350 });
	compare_clocks(RUNS);
	flight_report_make(&job, &report, 50000);
	saves(COLL_FLIGHT_REMEDY_LEAVE_OUT, RUNS * 250e-6);
	assert_string_equal(remedy_of(COLL_FLIGHT_REMEDY_LEAVE_OUT)->what, "leave out node n1");
	flight_report_close(&job, &report);
}

/* Each node is compared by the time of day alone. */
static void without_clocks_no_node_is_named(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	has_host(2, "n1");
	for (i = 0; i < RUNS; i++)
		all_wait(i, (const int[]){ 0, 0, 300 });
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_LEAVE_OUT, "clocks could not be compared");
	is_unknown(COLL_FLIGHT_REMEDY_TOGETHER, "clocks could not be compared");
	flight_report_close(&job, &report);
}

/* A butterfly of 4 ranks in which rank 1's first message comes so late, us. */
static void butterfly(uint32_t number, uint32_t collective, int late)
{
	const uint32_t at = 1000 * (number + 1);
	uint32_t rank;

	for (rank = 0; rank < 4; rank++) {
		const int first = 10 + (rank == 1 ? late : 0), second = rank == 1 || rank == 3 ? late : 0;
		struct coll_flight_timed *run = flight_timed(&job, rank, number, at, at + second + 23);

		run->collective = collective;
		flight_exchange(run, rank ^ 1, 0, 1, first);
		flight_exchange(run, rank ^ 2, first + 1, first + 1, second + 22);
	}
}

static void open_late_messages(uint32_t collective)
{
	uint32_t i;

	flight_open(&job, 4);
	for (i = 0; i < 2 * RUNS; i++)
		butterfly(i, collective, i % 8 ? 0 : 400);
	for (i = 0; i < 4; i++)
		job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].collective = collective;
}

static void redundant_exchanges_save_what_the_model_says(void **state)
{
	const struct coll_flight_remedy *remedy;

	(void)state;
	open_late_messages(COLL_ALLREDUCE);
	flight_report_make(&job, &report, 50000);
	assert_true(report.lost[COLL_FLIGHT_LOSS_LINK] > 0);
	remedy = remedy_of(COLL_FLIGHT_REMEDY_REDUNDANCY);
	assert_null(remedy->unknown);
	assert_ptr_equal(strstr(remedy->what, "T: allreduce of 0 bytes by butterfly-re"), remedy->what);
	assert_non_null(strstr(remedy->what, ":T="));
	assert_true(remedy->saved > 0.3 * report.lost[COLL_FLIGHT_LOSS_LINK]);
	assert_true(remedy->saved < report.lost[COLL_FLIGHT_LOSS_LINK]);
	flight_report_close(&job, &report);
	open_late_messages(COLL_BARRIER);	/* which has none */
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_REDUNDANCY, "no timed allreduce");
	flight_report_close(&job, &report);
}

/* All late messages are to rank 1. */
static void a_leaf_saves_a_part_of_what_one_rank_costs(void **state)
{
	const struct coll_flight_remedy *leaf;
	uint32_t i;

	(void)state;
	open_late_messages(COLL_ALLREDUCE);
	flight_report_make(&job, &report, 50000);
	leaf = remedy_of(COLL_FLIGHT_REMEDY_LEAF);
	assert_null(leaf->unknown);
	assert_string_equal(leaf->what, "make rank 1 a leaf: butterfly-leaf:late=1");
	/* Of four messages of and to it three are still waited for: its vector, and by itself the two to it. */
	assert_true(leaf->saved > 0.1 * report.lost[COLL_FLIGHT_LOSS_LINK]);
	assert_true(leaf->saved < 0.5 * report.lost[COLL_FLIGHT_LOSS_LINK]);
	assert_true(leaf->least <= leaf->saved && leaf->saved <= leaf->most);
	flight_report_close(&job, &report);
	open_late_messages(COLL_ALLREDUCE);
	for (i = 0; i < 4; i++)
		strcpy(job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].algo, "butterfly-leaf");
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_LEAF, "without T and leaf");
	flight_report_close(&job, &report);
}

static void quiet_calls_need_no(enum coll_flight_remedy_kind kind)
{
	uint32_t i;

	flight_open(&job, 4);
	for (i = 0; i < RUNS; i++)
		butterfly(i, COLL_ALLREDUCE, 0);
	flight_report_make(&job, &report, 50000);
	saves(kind, 0);
	assert_non_null(strstr(remedy_of(kind)->what, "no gain"));
	flight_report_close(&job, &report);
}

static void quiet_calls_need_no_leaf(void **state)
{
	(void)state;
	quiet_calls_need_no(COLL_FLIGHT_REMEDY_LEAF);
}

/* Of each run one message is waited for; the one back is there before. */
static void messages_that_nobody_waits_for_are_counted(void **state)
{
	struct report_record record[2 * RUNS];
	struct report_flights flights;
	uint32_t i, rank;

	(void)state;
	flight_open(&job, 2);
	for (i = 0; i < RUNS; i++)
		for (rank = 0; rank < 2; rank++) {
			struct coll_flight_timed *run = flight_timed(&job, rank, i, 1000 * (i + 1),
								     1000 * (i + 1) + 23);

			flight_exchange(run, !rank, 0, 1, rank && !(i % 5) ? 500 : rank ? 11 : 1);
			record[2 * i + rank] = (struct report_record){ .run = run, .rank = rank,
								       .index = rank };
		}
	assert_int_equal(coll_report_flights_find(&flights, record, 2 * RUNS,
						  job.set.seen[0]->page.opened), 0);
	assert_int_equal(flights.count, 1);
	assert_int_equal(flights.usual[0].messages, 2 * RUNS);
	assert_int_equal(flights.usual[0].late, RUNS / 5);
	free(flights.usual);
	flight_close(&job);
}

static void a_call_that_has_redundant_exchanges_says_nothing_of_them(void **state)
{
	uint32_t i;

	(void)state;
	open_late_messages(COLL_ALLREDUCE);
	for (i = 0; i < 4; i++)
		strcpy(job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].algo, "butterfly-redundant");
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_REDUNDANCY, "no timed allreduce");
	flight_report_close(&job, &report);
}

/* The calls with late messages are of groups of four of eight ranks. */
static void redundant_exchanges_are_of_calls_of_all_ranks(void **state)
{
	uint32_t i;

	(void)state;
	open_late_messages(COLL_ALLREDUCE);
	for (i = 0; i < 4; i++)
		job.set.seen[i]->page.ranks = 8;
	flight_report_make(&job, &report, 50000);
	is_unknown(COLL_FLIGHT_REMEDY_REDUNDANCY, "no timed allreduce");
	flight_report_close(&job, &report);
}

static void quiet_calls_need_no_redundant_exchanges(void **state)
{
	(void)state;
	quiet_calls_need_no(COLL_FLIGHT_REMEDY_REDUNDANCY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pinning_and_stopping_give_back_what_was_taken),
		cmocka_unit_test(of_several_late_ranks_the_next_decides),
		cmocka_unit_test(who_is_disturbed_like_all_is_late_for_nobody),
		cmocka_unit_test(who_is_disturbed_nearly_like_all_is_late_for_nobody),
		cmocka_unit_test(injected_noise_is_of_no_program),
		cmocka_unit_test(a_program_is_stopped_on_all_nodes),
		cmocka_unit_test(what_nobody_looked_at_is_not_known),
		cmocka_unit_test(what_cannot_be_done_saves_nothing),
		cmocka_unit_test(ranks_that_are_not_bound_need_a_cpu_each),
		cmocka_unit_test(what_takes_most_of_all_ranks_is_stopped),
		cmocka_unit_test(disturbances_at_the_same_time_cost_once),
		cmocka_unit_test(a_node_that_takes_no_part_gains_nothing),
		cmocka_unit_test(without_the_worst_node_the_others_decide),
		cmocka_unit_test(without_clocks_no_node_is_named),
		cmocka_unit_test(redundant_exchanges_save_what_the_model_says),
		cmocka_unit_test(a_leaf_saves_a_part_of_what_one_rank_costs),
		cmocka_unit_test(quiet_calls_need_no_leaf),
		cmocka_unit_test(messages_that_nobody_waits_for_are_counted),
		cmocka_unit_test(a_call_that_has_redundant_exchanges_says_nothing_of_them),
		cmocka_unit_test(redundant_exchanges_are_of_calls_of_all_ranks),
		cmocka_unit_test(quiet_calls_need_no_redundant_exchanges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
