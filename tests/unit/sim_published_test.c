// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Numbers from outside this tree: times that LogGOPSim reports for the same schedules, and
 * the statistics of paper 1 as an independent program reproduced them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/ranks.h"
#include "tests/unit/sim_job.h"

/* ---- LogGOPSim ------------------------------------------------------------------ */

/* Its parameters are whole: a message of s bytes costs (s - 1) G there. */
static void noiseless_times_equal_loggopsim(void **state)
{
	static const struct {
		u32 ranks;
		sim_time ns;
	} dissemination[] = { { 1024, 55420 }, { 4096, 66504 }, { 16384, 77588 }, { 65536, 88672 },
			      { 262144, 99756 } },
	  butterfly[] = { { 1024, 25070 }, { 4096, 30084 }, { 16384, 35098 }, { 65536, 40112 } },
	  ring[] = { { 8, 11086964 }, { 16, 11961300 }, { 64, 13078548 } };
	struct sim_model model = { .costs = { .alpha = 2542e-9, .send = 1500e-9, .recv = 1500e-9,
					      .gap = 1000e-9, .eager = SIM_ALWAYS_EAGER } };
	static struct job_setting setting;
	struct sim_job job;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		job = job_named(&setting, COLL_BARRIER, "dissemination", dissemination[i].ranks, 0);
		if (i < 3)
			assert_int_equal(job_run(&job, &model, 1, SIM_EVENTS, NULL).finish,
					 dissemination[i].ns * NS);
		model.costs.gap = 0;	/* it never matters here, and has no levels */
		assert_int_equal(job_run(&job, &model, 1, SIM_LEVELS, NULL).finish,
				 dissemination[i].ns * NS);
		model.costs.gap = 1000e-9;
	}
	for (i = 0; i < 3; i++) {
		const u64 part = (1 << 20) / ring[i].ranks;

		model.costs.alpha = 2500e-9 - 6e-9;
		model.costs.beta = 6e-9;
		job = job_named(&setting, COLL_ALLREDUCE, "ring", ring[i].ranks, (1 << 20) / 8);
		job.tuning.segment = part;
		assert_int_equal(job_run(&job, &model, 1, SIM_EVENTS, NULL).finish,
				 ring[i].ns * NS);
	}
	model.costs = (struct sim_costs){ .alpha = 1e-6, .beta = 0.875e-9, .gamma = 62.5e-9,
					  .send = 500e-9, .recv = 500e-9,
					  .eager = SIM_ALWAYS_EAGER };
	for (i = 0; i < 4; i++) {
		job = job_named(&setting, COLL_ALLREDUCE, "butterfly", butterfly[i].ranks, 1);
		assert_int_equal(job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish,
				 butterfly[i].ns * NS);
	}
}

struct spread {
	double mean, deviation;	/* of the mean */
};

static struct spread spread_of(const struct sim_job *job, const struct sim_model *model, u64 seed,
			       u32 runs)
{
	struct sim *sim = job_open(job);
	struct sim_outcome outcome[runs];
	struct spread spread = { 0 };
	double squares = 0;
	u32 i;

	assert_int_equal(sim_repeat(sim, model, seed, runs, 2, SIM_ANY_PATH, outcome, NULL, NULL),
			 0);
	for (i = 0; i < runs; i++)
		spread.mean += sim_seconds(outcome[i].finish) / runs;
	for (i = 0; i < runs; i++)
		squares += pow(sim_seconds(outcome[i].finish) - spread.mean, 2);
	spread.deviation = sqrt(squares / (runs - 1) / runs);
	sim_close(sim);
	return spread;
}

/* Butterfly, 60 seeds there and here. */
static void noisy_means_equal_loggopsim(void **state)
{
	static const struct {
		double period, duration;
		u32 ranks;
		double mean, same;	/* ns; same: of 20 seeds */
	} table[] = {
		{ 1e-3, 25e-6, 16, 20719, 10794 },     { 1e-3, 25e-6, 64, 41064, 15808 },
		{ 1e-3, 25e-6, 256, 67857, 20822 },    { 1e-3, 25e-6, 1024, 93422, 25836 },
		{ 1e-2, 250e-6, 64, 190520, 23153 },   { 1e-2, 250e-6, 256, 450952, 28167 },
		{ 1e-2, 250e-6, 1024, 624904, 33181 }, { 1e-1, 2.5e-3, 64, 1702970, 96598 },
		{ 1e-1, 2.5e-3, 256, 4208883, 101612 },
	};
	struct sim_model model = {
		.costs = { .alpha = 1e-6, .beta = 0.875e-9, .gamma = 62.5e-9, .send = 500e-9,
			   .recv = 500e-9, .eager = SIM_ALWAYS_EAGER },
		.semantics = SIM_GOAL,
	};
	static struct job_setting setting;
	struct spread here;
	struct sim_job job;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		job = job_named(&setting, COLL_ALLREDUCE, "butterfly", table[i].ranks, 1);
		model.os[0] = sim_periodic(table[i].period, table[i].duration);
		here = spread_of(&job, &model, 5, 60);
		if (fabs(here.mean - table[i].mean * 1e-9) > 4 * M_SQRT2 * here.deviation)
			fail_msg("%u ranks, %g us every %g ms: %g instead of %g us", table[i].ranks,
				 table[i].duration * 1e6, table[i].period * 1e3, here.mean * 1e6,
				 table[i].mean / 1e3);
		model.os[0].model.phase = COLL_NOISE_SAME;
		here = spread_of(&job, &model, 5, 80);
		if (fabs(here.mean - table[i].same * 1e-9) > 4 * sqrt(1 + 80 / 20) * here.deviation)
			fail_msg("%u ranks, the same noise: %g instead of %g us", table[i].ranks,
				 here.mean * 1e6, table[i].same / 1e3);
	}
}

/* ---- paper 1 ----------------------------------------------------------------------- */

static struct sim_model paper_model(double alpha, double period)
{
	struct sim_model model = { .costs = SIM_COSTS(alpha, 1e-9, 1e-10) };

	model.os[0] = sim_periodic(period, period / 100);
	model.link = sim_poisson(1 / period, period / 100);
	return model;
}

static double mean_of(const char *name, u32 ranks, u64 redundancy, const struct sim_model *model,
		      u32 runs)
{
	static struct job_setting setting;
	struct sim_job job = job_named(&setting, COLL_ALLREDUCE, name, ranks, 1);

	job.tuning.redundancy = redundancy;
	return spread_of(&job, model, redundancy, runs).mean;
}

/* Mean by the least over T, as in the paper. */
static double proposed(u32 ranks, const struct sim_model *model, u32 runs)
{
	double least = INFINITY, mean;
	u32 t;

	for (t = 1; t <= log2_floor(ranks); t++) {
		mean = mean_of("butterfly-redundant", ranks, t, model, runs);
		if (mean < least)
			least = mean;
	}
	return least;
}

/* What an independent program found for paper 1, within the statistics of 30 runs. */
static void paper_1_statistics_are_reproduced(void **state)
{
	const bool little = getenv("COLL_TEST_LITTLE");
	const u32 runs = little ? 10 : 30, large = little ? 1 << 13 : 1 << 15;
	struct sim_model model = paper_model(1e-7, 1e-3), none = { .costs = model.costs };
	double mean;

	(void)state;
	mean = mean_of("butterfly", 1 << 12, COLL_UNSET, &model, runs);
	assert_true(mean / mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2) > 7);
	assert_true(mean / mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2) < 16);
	assert_true(mean / proposed(1 << 12, &model, runs) > 6);
	if (!little) {
		mean = mean_of("butterfly", large, COLL_UNSET, &model, runs);
		assert_true(mean / mean_of("butterfly-redundant", large, 8, &model, runs) < 3);
		assert_true(mean / mean_of("butterfly-redundant", large, 8, &model, runs) > 1.5);
	}
	model = paper_model(1e-6, 1e-3);
	none.costs = model.costs;
	mean = mean_of("butterfly", 1 << 12, COLL_UNSET, &model, runs) /
	       mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2);
	assert_true(mean > 2 && mean < 4);
	model = paper_model(1e-7, 1e-2);
	none.costs = model.costs;
	mean = mean_of("butterfly", 1 << (little ? 13 : 17), COLL_UNSET, &model, little ? 10 : 5) /
	       mean_of("butterfly", 1 << (little ? 13 : 17), COLL_UNSET, &none, 2);
	assert_true(mean > (little ? 20 : 85) && mean < 140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noiseless_times_equal_loggopsim),
		cmocka_unit_test(noisy_means_equal_loggopsim),
		cmocka_unit_test(paper_1_statistics_are_reproduced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
