// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What each node made a job lose, and by what name: pages made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/flight/report.h"
#include "tests/lib/flight.h"

static struct flight_job job;
static struct coll_flight_report report;

/* The jobs have lasted for 50 ms. */
static void make_report(void)
{
	flight_report_make(&job, &report, 50000);
	assert_true(report.losses > 0);
}

/* For a second; it ran outside of calls in most looks. */
static void observe(uint32_t rank)
{
	job.set.seen[rank]->observed = (struct coll_flight_observed){
		.since = FLIGHT_NOW, .until = FLIGHT_NOW + 1000000000, .cost = 3000000, .looks = 100,
		.cpus = 1, .online = 8, .outside = { [COLL_FLIGHT_DOING_RUN] = 90 },
		.within = { [COLL_FLIGHT_DOING_SLEEP] = 10 },
	};
}

static void is_near(double value, double wanted)
{
	if (value < wanted - 0.05 * wanted || value > wanted + 0.05 * wanted)
		fail_msg("%g is not near to %g", value, wanted);
}

/* Ranks 1 and 2 are on one node, and both are late. */
static void losses_of_a_node_are_one_sum(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 4);
	for (i = 1; i < 3; i++)
		snprintf(job.set.seen[i]->page.host, sizeof(job.set.seen[i]->page.host), "n1");
	for (i = 0; i < 20; i++) {
		const int other = i % 2 ? 1 : 2, late = i % 2 ? 100 : 300;
		struct coll_flight_timed *run = flight_timed(&job, 0, i, 1000 * (i + 1),
							     1000 * (i + 1) + late + 11);

		flight_exchange(run, other, 0, 1, late + 10);
		run = flight_timed(&job, other, i, 1000 * (i + 1) + late, 1000 * (i + 1) + late + 2);
		flight_exchange(run, 0, 0, 1, 1);
		job.set.seen[other]->page.timed[i].stolen_before =
			i % 2 ? 90000 / COLL_FLIGHT_TICK : 0;
	}
	flight_exchange(flight_timed(&job, 0, 20, 40000, 40002), 1, 0, -1, -1);	/* for the clocks */
	flight_exchange(flight_timed(&job, 1, 20, 40000, 40012), 0, -1, 1, 10);
	make_report();
	assert_int_equal(report.nodes, 2);
	assert_string_equal(report.node[0].host, "n1");
	assert_int_equal(report.node[0].ranks, 2);
	is_near(report.node[0].cost, report.lost[COLL_FLIGHT_LOSS_LATE] +
				     report.lost[COLL_FLIGHT_LOSS_STOLEN]);
	is_near(report.node[0].lost[COLL_FLIGHT_LOSS_STOLEN], report.lost[COLL_FLIGHT_LOSS_STOLEN]);
	assert_true(report.node[0].lost[COLL_FLIGHT_LOSS_STOLEN] > 0);
	assert_int_equal(report.node[0].names, 2);
	assert_string_equal(report.node[0].name[0].text, "lateness, not known why");
	assert_string_equal(report.node[0].name[1].text, "not known who had the core");
	assert_true(report.node[1].spent.waited[COLL_FLIGHT_LOSS_LATE] > 0);	/* rank 0's */
	flight_report_close(&job, &report);
}

/* Each taker has its share of the loss. */
static void a_node_says_by_which_name(void **state)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 500, 10);
		job.set.seen[2]->page.timed[i].stolen_before = 490000 / COLL_FLIGHT_TICK;
	}
	observe(2);
	job.set.seen[2]->observed.taker[0] = (struct coll_flight_taker){
		.ns = 300000000, .name = "backup", .cgroup = "/system.slice" };
	job.set.seen[2]->observed.taker[1] = (struct coll_flight_taker){
		.ns = 100000000, .kind = COLL_FLIGHT_TAKER_INTERRUPTS };
	make_report();
	assert_string_equal(report.node[0].name[0].text, "`backup`");
	assert_string_equal(report.node[0].name[1].text, "interrupts");
	assert_true(report.node[0].name[0].seconds > 2.9 * report.node[0].name[1].seconds);
	coll_flight_names_text(&report.node[0], 2, text, sizeof(text));
	assert_ptr_equal(strstr(text, "`backup` "), text);
	assert_non_null(strstr(text, " ms, interrupts "));
	flight_report_close(&job, &report);
}

/* Rank 1, alone on its node, sends late to rank 0. */
static void late_messages_are_laid_to_who_sends_them(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	snprintf(job.set.seen[1]->page.host, sizeof(job.set.seen[1]->page.host), "n1");
	for (i = 0; i < 20; i++) {
		const uint32_t at = 1000 * (i + 1), late = i % 8 ? 0 : 400;
		struct coll_flight_timed *run = flight_timed(&job, 0, i, at, at + late + 12);

		flight_exchange(run, 1, 0, 1, late + 11);
		flight_exchange(run, 2, 0, 1, 11);
		run = flight_timed(&job, 1, i, at, at + 12);
		flight_exchange(run, 0, 0, 1, 11);
		run = flight_timed(&job, 2, i, at, at + 12);
		flight_exchange(run, 0, 0, 1, 11);
	}
	make_report();
	assert_true(report.lost[COLL_FLIGHT_LOSS_LINK] > 0);
	assert_int_equal(report.loss[0].rank, 0);
	assert_int_equal(report.loss[0].from, 1);
	assert_string_equal(report.node[0].host, "n1");
	is_near(report.node[0].lost[COLL_FLIGHT_LOSS_LINK], report.lost[COLL_FLIGHT_LOSS_LINK]);
	assert_int_equal(report.node[1].ranks, 2);
	flight_report_close(&job, &report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_of_a_node_are_one_sum),
		cmocka_unit_test(a_node_says_by_which_name),
		cmocka_unit_test(late_messages_are_laid_to_who_sends_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
