// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Steps one after the other, against closed forms and against runs one by one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/steps.h"
#include "sim/stretch.h"

enum { STRUCK = 4000, SPANS = 5000 };

static struct sim_step step[1 + STRUCK];
static u32 count;

static struct sim *butterfly(u32 ranks)
{
	struct sim_job job = {
		.algo = coll_algo_find(COLL_ALLREDUCE, "butterfly"),
		.call = { .collective = COLL_ALLREDUCE, .ranks = ranks, .type = COLL_DOUBLE,
			  .reduction = COLL_SUM, .element = 8, .commutative = true, .count = 1 },
		.tuning = COLL_TUNING_UNSET,
	};
	struct sim *sim;
	char why[200];

	assert_int_equal(sim_open(&job, &sim, why, sizeof(why)), 0);
	return sim;
}

static struct sim_model model_of(struct sim_noise noise)
{
	return (struct sim_model){ .costs = SIM_COSTS(1e-6, 0, 0), .semantics = SIM_OCCUPANCY,
				   .os = { noise } };
}

static double mean(void)
{
	double sum = 0, all = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		sum += step[i].times * step[i].seconds;
		all += step[i].times;
	}
	return sum / all;
}

static double mean_of(u32 ranks, struct sim_noise noise, struct sim_steps steps)
{
	const struct sim_model model = model_of(noise);
	struct sim *sim = butterfly(ranks);

	steps.struck = STRUCK;
	steps.runs = 1000 * STRUCK;
	assert_int_equal(sim_steps(sim, &model, 1, &steps, step, &count), 0);
	sim_close(sim);
	return mean();
}

static void steps_without_noise_take_grain_and_call(void **state)
{
	const struct sim_noise none = { .table = NULL };
	const struct sim_steps steps = { .grain = 1e-3, .struck = 1, .runs = 5 };
	const struct sim_model model = model_of(none);
	struct sim *sim = butterfly(32);

	(void)state;
	assert_int_equal(sim_steps(sim, &model, 1, &steps, step, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(step[0].times, 5);
	assert_true(fabs(step[0].seconds - 1.005e-3) < 1e-12);
	sim_close(sim);
}

/*
 * Calls much shorter than events get on while nobody is held up, and that is a share
 * of exp(-N rate duration) of the time (M/G/oo).
 */
static void short_calls_follow_the_closed_form(void **state)
{
	const struct sim_noise noise = sim_poisson(100, 1e-3);
	u32 ranks;

	(void)state;
	for (ranks = 2; ranks <= 8; ranks *= 2) {
		const double quiet = 1e-6 * log2(ranks);
		const double closed = quiet * exp(ranks * 0.1);
		const double seen = mean_of(ranks, noise, (struct sim_steps){ .grain = 0 });

		printf("# %u ranks: %.4g us, closed form %.4g us\n", ranks, seen * 1e6,
		       closed * 1e6);
		assert_int_equal(count, 1 + STRUCK);
		assert_true(fabs((seen - quiet) / (closed - quiet) - 1) < 0.1);
	}
}

/* After a long rest a call comes out of the blue: as runs of other seeds do. */
static void calls_after_a_long_grain_equal_single_runs(void **state)
{
	const struct sim_noise noise = sim_poisson(100, 1e-3);
	const struct sim_model model = model_of(noise);
	struct sim_outcome outcome;
	struct sim *sim = butterfly(16);
	double sum = 0, seen;
	u32 i;

	(void)state;
	for (i = 0; i < STRUCK; i++) {
		assert_int_equal(sim_run(sim, &model, i, SIM_ANY_PATH, &outcome, NULL), 0);
		sum += sim_seconds(outcome.finish);
	}
	seen = mean_of(16, noise, (struct sim_steps){ .idle = 20e-3 });
	printf("# %.4g us, by runs of their own %.4g us\n", seen * 1e6, sum / STRUCK * 1e6);
	assert_true(fabs(seen * STRUCK / sum - 1) < 0.1);
	sim_close(sim);
}

/* A grain that alone is held up, begun anywhere: order statistics. */
static void a_grain_alone_follows_order_statistics(void **state)
{
	static struct coll_noise_span span[SPANS];
	const struct sim_noise noise = {
		.model = { .arrival = COLL_NOISE_REPLAY, .phase = COLL_NOISE_RANDOM,
			   .length = COLL_NOISE_TABLE, .period = SPANS * 1000000ull },
		.table = span, .spans = SPANS,
	};
	struct sim_stretch stretch = { 0 };
	double seen, exact;
	u32 i;

	(void)state;
	for (i = 0; i < SPANS; i++)
		span[i] = (struct coll_noise_span){ i * 1000000ull + i * i % 700000,
						    20000 + i % 7 * 10000 };
	assert_int_equal(stretch_add(&stretch, span, SPANS, noise.model.period, 300000, INFINITY),
			 0);
	stretch_finish(&stretch);
	exact = stretch_mean(&stretch, 16) * 1e-9 + 4e-6;
	stretch_free(&stretch);
	seen = mean_of(16, noise, (struct sim_steps){ .grain = 300e-6, .idle = 50e-3,
						      .offloaded = true });
	printf("# %.5g us, order statistics %.5g us\n", seen * 1e6, exact * 1e6);
	assert_true(fabs(seen / exact - 1) < 0.02);
}

/* What is skipped would have been quiet: the same steps, simulated one by one. */
static void skipped_steps_had_no_noise(void **state)
{
	enum { RANKS = 8, STEPS = 30000, IDLE_US = 7 };
	const struct sim_noise noise = sim_poisson(50, 1e-4);
	const struct sim_steps steps = { .idle = IDLE_US * 1e-6, .struck = 20, .runs = STEPS };
	struct sim_model model = model_of(noise);
	struct sim *sim = butterfly(RANKS);
	struct sim_outcome outcome;
	sim_time start[RANKS], last = 0;
	u64 quiet = 0, i;
	u32 struck = 0, r;

	(void)state;
	assert_int_equal(sim_steps(sim, &model, 3, &steps, step, &count), 0);
	assert_int_equal(count, 21);
	assert_true(step[0].times > 50);
	model.start = start;
	for (i = 0; i < STEPS && struck < 20; i++) {
		for (r = 0; r < RANKS; r++)
			start[r] = last + IDLE_US * (SIM_SECOND / 1000000);
		assert_int_equal(sim_run(sim, &model, 3, SIM_ANY_PATH, &outcome, NULL), 0);
		last = outcome.finish;
		if (last - start[0] == 3 * (SIM_SECOND / 1000000))
			quiet++;
		else
			assert_true(fabs(step[1 + struck++].seconds -
					 sim_seconds(last - start[0])) < 1e-15);
	}
	assert_int_equal(struck, 20);
	assert_int_equal(quiet, step[0].times);
	sim_close(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_noise_take_grain_and_call),
		cmocka_unit_test(short_calls_follow_the_closed_form),
		cmocka_unit_test(calls_after_a_long_grain_equal_single_runs),
		cmocka_unit_test(a_grain_alone_follows_order_statistics),
		cmocka_unit_test(skipped_steps_had_no_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
