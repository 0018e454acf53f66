// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What is behind a loss, by what observers saw of the ranks: pages made by hand. */
#include <errno.h>
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
static void make_report(enum coll_flight_loss_kind kind)
{
	flight_report_make(&job, &report, 50000);
	assert_true(report.losses > 0);
	assert_string_equal(coll_flight_loss_names[report.loss[0].kind],
			    coll_flight_loss_names[kind]);
	assert_int_equal(report.loss[0].rank, 2);
}

/* Looks at the rank found it so often in this state outside of calls, else asleep in one. */
static struct coll_flight_observed *observe(uint32_t rank, enum coll_flight_doing doing,
					    uint32_t looks)
{
	struct coll_flight_observed *observed = &job.set.seen[rank]->observed;

	*observed = (struct coll_flight_observed){
		.since = FLIGHT_NOW, .until = FLIGHT_NOW + 1000000000, .cost = 3000000,
		.looks = 100, .cpus = 1, .online = 8,
	};
	observed->outside[doing] = looks;
	observed->within[COLL_FLIGHT_DOING_SLEEP] = 100 - looks;
	return observed;
}

static void is_because(enum coll_flight_because because, const char *words, const char *advice)
{
	char text[COLL_FLIGHT_ADVICE];

	assert_string_equal(coll_flight_because_names[report.loss[0].because],
			    coll_flight_because_names[because]);
	assert_non_null(coll_flight_because_text(&report.loss[0], text, sizeof(text)));
	if (!strstr(text, words))
		fail_msg("'%s' is not in '%s'", words, text);
	coll_flight_advice(&report, &report.loss[0], text, sizeof(text));
	if (!strstr(text, advice))
		fail_msg("'%s' is not in '%s'", advice, text);
}

static void who_took_the_core_is_named(void **state)
{
	struct coll_flight_observed *observed;
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 500, 10);
		job.set.seen[2]->page.timed[i].stolen_before = 490000 / COLL_FLIGHT_TICK;
	}
	observe(0, COLL_FLIGHT_DOING_RUN, 10)->cpu = 1;
	observe(1, COLL_FLIGHT_DOING_RUN, 10)->cpu = 2;
	observed = observe(2, COLL_FLIGHT_DOING_RUN, 90);
	observed->cpu = 7;
	observed->taker[0] = (struct coll_flight_taker){ .ns = 300000000, .name = "backup", .uid = 33,
							 .flags = COLL_FLIGHT_TAKER_USER,
							 .cgroup = "/system.slice/backup.service" };
	observed->taker[1] = (struct coll_flight_taker){ .ns = 100000000,
							 .kind = COLL_FLIGHT_TAKER_INTERRUPTS };
	make_report(COLL_FLIGHT_LOSS_STOLEN);
	is_because(COLL_FLIGHT_BECAUSE_TASK, "its core was taken by `backup` (cgroup "
		   "/system.slice/backup.service) 75 %, interrupts 25 %",
		   "`collnoise pin init --cpus 1-2,7 --rule 'pin comm=backup uid=33'`");
	assert_float_equal(report.observed_cost, 3e-3, 1e-6);
	flight_report_close(&job, &report);
}

/* A command that would find no CPU to move it to is no advice. */
static void where_all_cpus_have_ranks_it_is_to_be_stopped(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 500, 10);
		job.set.seen[2]->page.timed[i].stolen_before = 490000 / COLL_FLIGHT_TICK;
	}
	for (i = 0; i < 3; i++) {
		observe(i, COLL_FLIGHT_DOING_RUN, 10)->cpu = i;
		job.set.seen[i]->observed.online = 3;
	}
	job.set.seen[2]->observed.taker[0] = (struct coll_flight_taker){
		.ns = 300000000, .name = "backup", .cgroup = "/" };
	make_report(COLL_FLIGHT_LOSS_STOLEN);
	is_because(COLL_FLIGHT_BECAUSE_TASK, "`backup` (cgroup /) 100 %", "Stop `backup` on ");
	flight_report_close(&job, &report);
}

/* A command for the rank's own threads would stop the job; for some others it would do nothing. */
static void advice_has_no_command_that_harms_or_does_nothing(void **state)
{
	static const struct {
		struct coll_flight_taker taker[2];
		enum coll_flight_because because;
		const char *words, *advice;
	} takes[] = {
		{ { { .ns = 3, .kind = COLL_FLIGHT_TAKER_OWN } }, COLL_FLIGHT_BECAUSE_OWN,
		  "its own threads 100 %", "Rank 2 has more threads than cores: fewer threads" },
		{ { { .ns = 3, .name = "flight_job" } }, COLL_FLIGHT_BECAUSE_TASK, "`flight_job` 100 %",
		  "is the job's own program" },
		{ { { .ns = 3, .name = "kworker/7:1", .flags = COLL_FLIGHT_TAKER_BOUND |
		      COLL_FLIGHT_TAKER_KTHREAD } }, COLL_FLIGHT_BECAUSE_TASK, "`kworker/7:1` 100 %",
		  "no rule moves it: leave CPU 0" },
		{ { { .ns = 3, .name = "kswapd0", .flags = COLL_FLIGHT_TAKER_KTHREAD } },
		  COLL_FLIGHT_BECAUSE_TASK, "`kswapd0` 100 %", "`pin comm=kswapd0 kthread`" },
		{ { { .ns = 3, .name = "backup" } }, COLL_FLIGHT_BECAUSE_TASK, "`backup` 100 %",
		  "the rule `pin comm=backup`" },
		{ { { .ns = 3, .name = "backup", .flags = COLL_FLIGHT_TAKER_MOVED } },
		  COLL_FLIGHT_BECAUSE_TASK, "`backup` 100 %, until colld moved it away",
		  "colld has moved away `backup` while this job runs. For all jobs: Keep `backup` off" },
		{ { { .ns = 3, .name = "backup", .flags = COLL_FLIGHT_TAKER_HELD } },
		  COLL_FLIGHT_BECAUSE_TASK, "`backup` 100 %, less since colld holds it back",
		  "colld holds back `backup` while this job runs." },
		{ { { .ns = 3, .kind = COLL_FLIGHT_TAKER_SOFTIRQS, .name = "NET_RX" },
		    { .ns = 1, .kind = COLL_FLIGHT_TAKER_INTERRUPTS, .name = "eth0-rx-1" } },
		  COLL_FLIGHT_BECAUSE_INTERRUPTS, "softirqs (mostly NET_RX) 75 %, interrupts (mostly "
		  "eth0-rx-1) 25 %", "Lead interrupts on " },
		{ { { .ns = 3, .kind = COLL_FLIGHT_TAKER_RANK, .id = COLL_FLIGHT_NO_RANK, .name = "other ranks" },
		    { .ns = 1, .kind = COLL_FLIGHT_TAKER_RANK, .id = 7, .name = "rank 7" } },
		  COLL_FLIGHT_BECAUSE_SHARED, "other ranks of this job 75 %, rank 7 of this job 25 %",
		  "Rank 2 shares a core with another rank" },
		{ { { .ns = 3, .kind = COLL_FLIGHT_TAKER_OTHERS }, { .ns = 1, .name = "backup" } },
		  COLL_FLIGHT_BECAUSE_TASK, "programs that cannot be seen from here or are too "
		  "short-lived 75 %, `backup` 25 %", "Keep other programs off CPU 0" },
	};
	uint32_t i, k;

	(void)state;
	for (k = 0; k < sizeof(takes) / sizeof(*takes); k++) {
		flight_open(&job, 3);
		for (i = 0; i < 20; i++) {
			flight_chain(&job, i, 500, 10);
			job.set.seen[2]->page.timed[i].stolen_before = 490000 / COLL_FLIGHT_TICK;
		}
		strcpy(job.set.seen[2]->page.program, "flight_job");
		observe(2, COLL_FLIGHT_DOING_RUN, 90);
		for (i = 0; i < 2; i++) {
			job.set.seen[2]->observed.taker[i] = takes[k].taker[i];
			job.set.seen[2]->observed.taker[i].ns *= 100000000;
		}
		make_report(COLL_FLIGHT_LOSS_STOLEN);
		is_because(takes[k].because, takes[k].words, takes[k].advice);
		flight_report_close(&job, &report);
	}
}

/* Other ranks wait for a disk as well, for less. */
static void what_a_late_rank_does_is_told(void **state)
{
	static const enum coll_flight_because because[COLL_FLIGHT_DOINGS] = {
		COLL_FLIGHT_BECAUSE_WORK, COLL_FLIGHT_BECAUSE_ASLEEP, COLL_FLIGHT_BECAUSE_DISK,
		COLL_FLIGHT_BECAUSE_STOPPED,
	};
	static const char *const words[COLL_FLIGHT_DOINGS] = {
		"it computes outside of calls, in 80 % of looks", "it sleeps outside", "state D",
		"stopped by a signal",
	};
	static const char *const advice[COLL_FLIGHT_DOINGS] = {
		"less to do", "what it waits for", "write less often", "what stops rank 2",
	};
	uint32_t doing, i;

	(void)state;
	for (doing = 0; doing < COLL_FLIGHT_DOINGS; doing++) {
		flight_open(&job, 3);
		for (i = 0; i < 20; i++)
			flight_chain(&job, i, 500, 10);
		observe(0, COLL_FLIGHT_DOING_DISK, 20);
		observe(1, COLL_FLIGHT_DOING_DISK, 30);
		observe(2, doing, 80);
		make_report(COLL_FLIGHT_LOSS_LATE);
		is_because(because[doing], words[doing], advice[doing]);
		assert_false(report.loss[0].alternate);
		flight_report_close(&job, &report);
	}
}

static void every_other_call_is_seen(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 40; i++)
		flight_chain(&job, i, i % 2 ? 500 : 0, 10);
	observe(2, COLL_FLIGHT_DOING_SLEEP, 80);
	make_report(COLL_FLIGHT_LOSS_LATE);
	is_because(COLL_FLIGHT_BECAUSE_ASLEEP, "; in every other call", "what it waits for");
	flight_report_close(&job, &report);
}

/* A fifth of the job is lost, and a hundredth of it was taken by somebody. */
static void a_cause_that_is_too_small_is_none(void **state)
{
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++) {
		flight_chain(&job, i, 500, 10);
		job.set.seen[2]->page.timed[i].stolen_before = 490000 / COLL_FLIGHT_TICK;
	}
	observe(2, COLL_FLIGHT_DOING_RUN, 90)->taker[0] = (struct coll_flight_taker){
		.ns = 10000000, .name = "backup" };
	make_report(COLL_FLIGHT_LOSS_STOLEN);
	assert_int_equal(report.loss[0].because, COLL_FLIGHT_BECAUSE_NOT_KNOWN);
	assert_true(report.loss[0].saved_most <= report.seconds);
	flight_report_close(&job, &report);
}

static void rare_looks_are_told(void **state)
{
	static const struct {
		uint32_t wholes;
		const char *words;
	} looks[] = { { 0, NULL }, { 11, NULL }, { 3, "looks every 5 s" }, { 1, "looked at once" } };
	char text[160];
	uint32_t i, k;

	(void)state;
	for (k = 0; k < sizeof(looks) / sizeof(*looks); k++) {
		flight_open(&job, 3);
		for (i = 0; i < 20; i++)
			flight_chain(&job, i, 500, 10);
		observe(2, COLL_FLIGHT_DOING_SLEEP, 90)->wholes = looks[k].wholes;
		job.set.seen[2]->observed.until += 9000000000;
		make_report(COLL_FLIGHT_LOSS_LATE);
		if (!looks[k].words)
			assert_null(coll_flight_rare_looks(&report, text));
		else if (!coll_flight_rare_looks(&report, text) || !strstr(text, looks[k].words))
			fail_msg("'%s' is not told", looks[k].words);
		flight_report_close(&job, &report);
	}
}

static void whom_nobody_observed_has_no_cause(void **state)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10);
	make_report(COLL_FLIGHT_LOSS_LATE);
	assert_int_equal(report.loss[0].because, COLL_FLIGHT_BECAUSE_NOT_KNOWN);
	assert_null(coll_flight_because_text(&report.loss[0], text, sizeof(text)));
	flight_report_close(&job, &report);
}

/* A file may say anything. */
static void hostile_observations_are_survived(void **state)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	(void)state;
	flight_open(&job, 3);
	for (i = 0; i < 20; i++)
		flight_chain(&job, i, 500, 10);
	memset(&job.set.seen[2]->observed, 0xff, sizeof(job.set.seen[2]->observed));
	assert_int_equal(coll_flight_report_make(&report, &job.job), -EPROTO);
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		job.set.seen[2]->observed.taker[i].ns = 1;
		job.set.seen[2]->observed.taker[i].name[31] = 0;
		job.set.seen[2]->observed.taker[i].cgroup[87] = 0;
	}
	job.set.seen[2]->observed.since = job.set.seen[2]->observed.cost = 0;
	job.set.seen[2]->observed.ran = job.set.seen[2]->observed.waited = 0;
	job.set.seen[2]->observed.inside = job.set.seen[2]->observed.stolen = 0;
	job.set.seen[2]->observed.counted = 0;
	job.set.seen[2]->observed.until = 1;
	make_report(COLL_FLIGHT_LOSS_LATE);
	for (i = 0; i < report.losses; i++) {
		coll_flight_because_text(&report.loss[i], text, sizeof(text));
		coll_flight_advice(&report, &report.loss[i], text, sizeof(text));
	}
	flight_report_close(&job, &report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_took_the_core_is_named),
		cmocka_unit_test(where_all_cpus_have_ranks_it_is_to_be_stopped),
		cmocka_unit_test(advice_has_no_command_that_harms_or_does_nothing),
		cmocka_unit_test(what_a_late_rank_does_is_told),
		cmocka_unit_test(every_other_call_is_seen),
		cmocka_unit_test(a_cause_that_is_too_small_is_none),
		cmocka_unit_test(rare_looks_are_told),
		cmocka_unit_test(whom_nobody_observed_has_no_cause),
		cmocka_unit_test(hostile_observations_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
