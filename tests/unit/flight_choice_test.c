// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a job's choices of algorithms cost, by its own times or by the model: pages made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/algo.h"
#include "libcoll/flight/report.h"
#include "libcoll/flight/timed.h"
#include "tests/lib/flight.h"

enum { RUNS = 20 };

static struct flight_job job;
static struct coll_flight_report report;

/* The jobs have lasted for 50 ms. Runs that flight_timed() has counted are those of calls here. */
static void make_report(void)
{
	size_t i;

	for (i = 0; i < job.set.count; i++) {
		job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].since = 0;
		job.set.seen[i]->page.call[COLL_FLIGHT_CALLS - 1].sum.runs = 0;
	}
	flight_report_make(&job, &report, 50000);
}

/* On both ranks: a way to make a call of so many bytes. */
static void has_call(uint32_t index, const char *algo, uint64_t bytes, uint64_t segment, bool asked)
{
	size_t i;

	for (i = 0; i < job.set.count; i++) {
		struct coll_flight_call *call = &job.set.seen[i]->page.call[index];

		*call = (struct coll_flight_call){
			.since = 1, .count = bytes, .element = 1, .collective = COLL_ALLREDUCE,
			.segment = segment, .asked = asked,
		};
		snprintf(call->algo, sizeof(call->algo), "%s", algo);
	}
}

static void predicts(uint32_t index, uint32_t us, uint32_t best)
{
	size_t i;

	for (i = 0; i < job.set.count; i++) {
		job.set.seen[i]->page.call[index].predicted = us * 1000;
		job.set.seen[i]->page.call[index].best = best * 1000;
	}
}

/* A run of it, on both ranks; rank 1 comes 50 us late, which is none of the choice's. */
static void took(uint32_t index, uint32_t number, uint32_t us)
{
	const uint32_t at = 1000 * (number + 1);
	size_t i;

	for (i = 0; i < job.set.count; i++) {
		struct coll_flight_page *page = &job.set.seen[i]->page;
		struct coll_flight_timed *run = flight_timed(&job, i, number, at + 50 * i,
							     at + 50 + us);

		run->call = index;
		run->collective = COLL_ALLREDUCE;
		run->bytes = page->call[index].count * page->call[index].element;
		coll_flight_sum_add(&page->call[index].sum, 1000 * (50 + us - 50 * i));
	}
}

static bool printed(const char *words)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	bool found;

	assert_non_null(to);
	coll_flight_report_print(&report, &job.job, to);
	fclose(to);
	found = strstr(text, words);
	free(text);
	return found;
}

static const struct coll_flight_site *site_of(const char *algo, uint64_t segment)
{
	uint32_t i;

	for (i = 0; i < report.sites; i++)
		if (!strcmp(report.site[i].algo, algo) && report.site[i].segment == segment)
			return &report.site[i];
	fail_msg("there is no call by %s", algo);
	return NULL;
}

static void is_near(double value, double wanted)
{
	if (value < 0.95 * wanted - 1e-9 || value > 1.05 * wanted + 1e-9)
		fail_msg("%g is not near to %g", value, wanted);
}

static void regrets(const struct coll_flight_site *site, enum coll_flight_regret_by by, double seconds)
{
	assert_string_equal(coll_flight_regret_names[site->regret.by], coll_flight_regret_names[by]);
	is_near(site->regret.seconds, seconds);
}

/* 1000 bytes by auto, of which the ring is slow; 900 bytes are told to be as fast as 900 / 1000. */
static void calls_of_an_octave_are_compared_by_their_times(void **state)
{
	const struct coll_flight_site *ring;
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 900, 0, false);
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 90 + i % 3 : 200 + i % 5);
	make_report();
	ring = site_of("ring", 0);
	regrets(ring, COLL_FLIGHT_REGRET_BY_TIMES, RUNS * (202 - 91 * 1000 / 900.) * 1e-6);
	assert_true(ring->regret.least < ring->regret.seconds);
	assert_true(ring->regret.most > ring->regret.seconds);
	regrets(site_of("butterfly", 0), COLL_FLIGHT_REGRET_BY_TIMES, 0);
	is_near(report.regret[COLL_FLIGHT_REGRET_BY_TIMES], ring->regret.seconds);
	is_near(report.by_auto[COLL_FLIGHT_REGRET_BY_TIMES], 2 * RUNS);
	coll_flight_regret_text(&report, ring, text, sizeof(text));
	assert_non_null(strstr(text, "ring was chosen by auto and takes 20"));
	assert_non_null(strstr(text, "butterfly, of 900 bytes there, takes 101 us"));
	flight_report_close(&job, &report);
}

static void segments_are_choices(void **state)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "chain", 100000, 65536, false);
	has_call(1, "chain", 100000, 16384, false);
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 100 : 160);
	make_report();
	regrets(site_of("chain", 65536), COLL_FLIGHT_REGRET_BY_TIMES, RUNS * 60e-6);
	coll_flight_regret_text(&report, site_of("chain", 65536), text, sizeof(text));
	assert_non_null(strstr(text, "chain in segments of 16384"));
	flight_report_close(&job, &report);
}

/* A longer call says nothing of a shorter one; nor do few. */
static void else_the_model_says(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 1100, 0, false);
	has_call(2, "linear", 1000, 0, false);
	predicts(0, 300, 200);
	for (i = 0; i < 2 * RUNS; i++)
		took(i < 3 ? 2 : i % 2, i, 200);
	make_report();
	is_near(report.site[0].sum.runs, 2 * (RUNS - 1));
	regrets(site_of("ring", 0), COLL_FLIGHT_REGRET_BY_MODEL,
		site_of("ring", 0)->sum.runs / 2 * 100e-6);
	regrets(site_of("butterfly", 0), COLL_FLIGHT_REGRET_NOT_KNOWN, 0);
	flight_report_close(&job, &report);
}

static void who_names_an_algorithm_has_chosen(void **state)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, true);
	has_call(1, "butterfly", 1000, 0, false);
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 100 : 200);
	make_report();
	regrets(site_of("ring", 0), COLL_FLIGHT_REGRET_BY_TIMES, RUNS * 100e-6);
	is_near(report.regret[COLL_FLIGHT_REGRET_BY_TIMES], 0);
	is_near(report.by_auto[COLL_FLIGHT_REGRET_BY_TIMES], RUNS);
	coll_flight_regret_text(&report, site_of("ring", 0), text, sizeof(text));
	assert_non_null(strstr(text, "ring was asked for by name"));
	flight_report_close(&job, &report);
}

static void chance_is_no_regret(void **state)
{
	const struct coll_flight_regret *regret;
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 1000, 0, false);
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, 100 + i * 37 % 101 + (i % 2 ? 0 : 5));
	make_report();
	regret = &site_of("ring", 0)->regret;
	regrets(site_of("ring", 0), COLL_FLIGHT_REGRET_BY_TIMES, 0);
	is_near(regret->least, 0);
	assert_true(regret->most > 0);
	flight_report_close(&job, &report);
}

/* A group of rank 1 alone made 1000 calls: equal, but for the ranks. */
static void calls_of_a_part_of_the_ranks_are_other_calls(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 1000, 0, false);
	has_call(2, "ring", 1000, 0, false);
	for (i = 0; i < 2; i++)
		job.set.seen[i]->page.call[0].ranks = job.set.seen[i]->page.call[1].ranks = 2;
	job.set.seen[1]->page.call[2].ranks = 1;
	job.set.seen[1]->page.call[2].sum = (struct coll_flight_sum){ 1000, 1000000, 1000 };
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 100 : 200);
	make_report();
	assert_int_equal(report.sites, 3);
	is_near(report.regret[COLL_FLIGHT_REGRET_BY_TIMES], RUNS * 100e-6);
	is_near(report.by_auto[COLL_FLIGHT_REGRET_NOT_KNOWN], 500);
	assert_true(printed("  groups of 1\n"));
	assert_false(printed("  groups of 2\n"));
	flight_report_close(&job, &report);
}

static void calls_of_another_type_are_not_compared(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 1000, 0, false);
	for (i = 0; i < 2; i++)
		job.set.seen[i]->page.call[1].type = 1;
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 100 : 200);
	make_report();
	regrets(site_of("ring", 0), COLL_FLIGHT_REGRET_NOT_KNOWN, 0);
	flight_report_close(&job, &report);
}

/* The timed runs are far longer than the others: what these took is all that there is to save. */
static void regret_is_no_more_than_the_calls_took(void **state)
{
	const struct coll_flight_site *ring;
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	has_call(1, "butterfly", 1000, 0, false);
	for (i = 0; i < 2 * RUNS; i++)
		took(i % 2, i, i % 2 ? 100 : 200);
	for (i = 0; i < 2; i++)
		job.set.seen[i]->page.call[0].sum = (struct coll_flight_sum){ 1000, 2000000, 1000 };
	make_report();
	ring = site_of("ring", 0);
	regrets(ring, COLL_FLIGHT_REGRET_BY_TIMES, 2e-3);
	is_near(ring->regret.most, 2e-3);
	flight_report_close(&job, &report);
}

/* The best of the model is what auto takes: that says nothing of other ways. */
static void the_model_does_not_compare_a_choice_with_itself(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	predicts(0, 200, 200);
	for (i = 0; i < RUNS; i++)
		took(0, i, 200);
	make_report();
	regrets(site_of("ring", 0), COLL_FLIGHT_REGRET_NOT_KNOWN, 0);
	is_near(report.by_auto[COLL_FLIGHT_REGRET_NOT_KNOWN], RUNS);
	flight_report_close(&job, &report);
}

/* Another call has got the entry since: the run is of none that is known. */
static void a_run_whose_call_has_left_says_nothing(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 2);
	has_call(0, "ring", 1000, 0, false);
	for (i = 0; i < RUNS; i++)
		took(0, i, 200);
	for (i = 0; i < 2; i++)
		job.set.seen[i]->page.call[0].since = job.set.seen[i]->page.opened + 10500000;
	make_report();
	assert_in_range(site_of("ring", 0)->alones, 1, RUNS / 2 + 1);
	flight_report_close(&job, &report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_an_octave_are_compared_by_their_times),
		cmocka_unit_test(segments_are_choices),
		cmocka_unit_test(else_the_model_says),
		cmocka_unit_test(who_names_an_algorithm_has_chosen),
		cmocka_unit_test(chance_is_no_regret),
		cmocka_unit_test(calls_of_a_part_of_the_ranks_are_other_calls),
		cmocka_unit_test(calls_of_another_type_are_not_compared),
		cmocka_unit_test(regret_is_no_more_than_the_calls_took),
		cmocka_unit_test(the_model_does_not_compare_a_choice_with_itself),
		cmocka_unit_test(a_run_whose_call_has_left_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
