// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The longest of N ranks under recorded noise, against closed forms and sampling. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "algo/redundancy/redundancy.h"
#include "sim/random.h"
#include "sim/sim.h"
#include "sim/stretch.h"

enum { PERIOD = 1000000, DURATION = 50000, EVENTS = 2000 };

static struct coll_noise_span periodic[EVENTS];

static struct sim_stretch stretch_of(const struct coll_noise_span *event, u32 events, u64 watched,
				     double work)
{
	struct sim_stretch stretch = { 0 };

	assert_int_equal(stretch_add(&stretch, event, events, watched, work, INFINITY), 0);
	stretch_finish(&stretch);
	return stretch;
}

static void fill_periodic(void)
{
	u32 i;

	for (i = 0; i < EVENTS; i++)
		periodic[i] = (struct coll_noise_span){ (u64)i * PERIOD + 1234, DURATION };
}

/*
 * Work w shorter than the quiet time: an event starts inside with w / p and costs
 * d, or its rest is uniform with d / p. So with F(x) = 1 - (w + d - x) / p for the
 * delay x < d, the mean of the longest of N is w + d - integral of F^N.
 */
static void periodic_noise_follows_the_closed_form(void **state)
{
	const double p = PERIOD, d = DURATION, w = 20000;
	struct sim_stretch stretch;
	double n;

	(void)state;
	fill_periodic();
	stretch = stretch_of(periodic, EVENTS, (u64)EVENTS * PERIOD, w);
	for (n = 1; n < 1e8; n *= 10) {
		const double closed = w + d - p / (n + 1) * (pow(1 - w / p, n + 1) -
							      pow(1 - (w + d) / p, n + 1));

		assert_true(fabs(stretch_mean(&stretch, n) / closed - 1) < 0.002);
	}
	/* P(longest <= x) = F(x)^N. */
	assert_true(fabs(stretch_quantile(&stretch, 100, 0.01) -
			 (w + fmax(0, w + d - p * (1 - pow(0.01, 0.01))))) < d / 64 + 1);
	assert_true(stretch_quantile(&stretch, 100, 0.99) == stretch_quantile(&stretch, 1e6, 0.5));
	stretch_free(&stretch);
}

/* Work over many periods meets all of them: it loses its share of the time. */
static void long_work_loses_the_share_of_noise(void **state)
{
	const double w = 123.4 * (PERIOD - DURATION);
	struct sim_stretch stretch;

	(void)state;
	fill_periodic();
	stretch = stretch_of(periodic, EVENTS, (u64)EVENTS * PERIOD, w);
	assert_true(fabs(stretch_mean(&stretch, 1) / (w * PERIOD / (PERIOD - DURATION)) - 1) <
		    0.001);
	stretch_free(&stretch);
}

/* Steps one after the other: each loses the noise's share of the time. */
static void consecutive_steps_lose_the_share_of_noise(void **state)
{
	struct sim_stretch stretch = { 0 };
	double w;

	(void)state;
	fill_periodic();
	for (w = 100; w < 1e8; w *= 100) {
		assert_int_equal(
			stretch_add(&stretch, periodic, EVENTS, (u64)EVENTS * PERIOD, w, 0), 0);
		stretch_finish(&stretch);
		assert_true(fabs(stretch_mean(&stretch, 1) / (w * PERIOD / (PERIOD - DURATION)) -
				 1) < 0.001);
		stretch_free(&stretch);
	}
}

static void without_events_work_takes_its_own_time(void **state)
{
	struct sim_stretch stretch = stretch_of(NULL, 0, 1000, 77);

	(void)state;
	assert_true(stretch_mean(&stretch, 1e6) == 77 && stretch_quantile(&stretch, 5, 0.5) == 77);
	stretch_free(&stretch);
}

static void impossible_recordings_are_refused(void **state)
{
	const struct coll_noise_span all = { 0, 1000 }, outside = { 2000, 1 };
	struct sim_stretch stretch = { 0 };

	(void)state;
	assert_int_equal(stretch_add(&stretch, &all, 1, 1000, 5, 0), -EINVAL);
	assert_int_equal(stretch_add(&stretch, &outside, 1, 1000, 5, 0), -EINVAL);
	stretch_free(&stretch);
}

/* When the work ends that begins at `from`, event by event, as one would do it by hand. */
static double by_hand(const struct coll_noise_span *event, u32 events, u64 watched, double from,
		      double work)
{
	double now = from, round = 0;
	u32 i = 0;

	for (;;) {
		const double start = round + event[i].start, end = start + event[i].duration;

		if (end > now) {
			if (start > now) {
				if (work <= start - now)
					return now + work - from;
				work -= start - now;
			}
			now = end;
		}
		if (++i == events) {
			i = 0;
			round += watched;
		}
	}
}

/* Irregular noise, overlapping events too, against 200000 begins. */
static void irregular_noise_equals_sampling(void **state)
{
	static struct coll_noise_span event[300];
	enum { SAMPLES = 200000 };
	const double works[] = { 0, 500, 30000, 3e6 };
	u64 at = 0, watched, i;
	size_t k;

	(void)state;
	for (i = 0; i < 300; i++) {
		at += 1 + random_at(1, i) % 20000;
		event[i] = (struct coll_noise_span){ at, 1 + random_at(2, i) % 9000 };
	}
	watched = at + 20000;
	for (k = 0; k < 4; k++) {
		struct sim_stretch stretch = stretch_of(event, 300, watched, works[k]);
		double sum = 0, most = 0;

		for (i = 0; i < SAMPLES; i++) {
			const double time = by_hand(event, 300, watched,
						    (i + 0.5) / SAMPLES * watched, works[k]);

			sum += time;
			most = fmax(most, time);
		}
		assert_true(fabs(stretch_mean(&stretch, 1) / (sum / SAMPLES) - 1) < 0.002);
		assert_true(fabs(stretch_mean(&stretch, 1e12) / most - 1) < 0.02);
		stretch_free(&stretch);
	}
}

/* A step of 64 to 4096 ranks in the simulator: butterfly, occupancy noise. */
static void predicted_steps_equal_simulated_ones(void **state)
{
	const struct sim_noise noise = sim_periodic(PERIOD * 1e-9, DURATION * 1e-9);
	u32 ranks;

	(void)state;
	fill_periodic();
	for (ranks = 16; ranks <= 4096; ranks *= 16) {
		struct sim_job job = {
			.algo = coll_algo_find(COLL_ALLREDUCE, "butterfly"),
			.call = { .collective = COLL_ALLREDUCE, .ranks = ranks, .type = COLL_DOUBLE,
				  .reduction = COLL_SUM, .element = 8, .commutative = true,
				  .count = 1 },
			.tuning = COLL_TUNING_UNSET,
		};
		struct sim_model model = { .costs = SIM_COSTS(1e-6, 0, 0),
					   .semantics = SIM_OCCUPANCY, .os = { noise } };
		const struct coll_machine m = { .alpha = 1e-6, .noise = { { 1e9 / PERIOD,
									     DURATION * 1e-9 } } };
		const struct coll_redundancy plain = { 0, 0 };
		struct sim_stretch stretch =
			stretch_of(periodic, EVENTS, (u64)EVENTS * PERIOD,
				   coll_redundancy_cost(&job.call, plain, &m) * 1e9);
		const double predicted = stretch_mean(&stretch, ranks) * 1e-9 +
					 coll_redundancy_delay_again(&job.call, plain, &m);
		struct sim_outcome outcome[100];
		struct sim *sim;
		double sum = 0;
		char why[100];
		u32 i;

		assert_int_equal(sim_open(&job, &sim, why, sizeof(why)), 0);
		assert_int_equal(sim_repeat(sim, &model, 1, 100, 1, SIM_ANY_PATH, outcome, NULL,
					    NULL), 0);
		for (i = 0; i < 100; i++)
			sum += sim_seconds(outcome[i].finish);
		print_message("%u ranks: predicted %.4g us, simulated %.4g us\n", ranks,
			      predicted * 1e6, sum / 100 * 1e6);
		assert_true(fabs(predicted / (sum / 100) - 1) < 0.25);
		sim_close(sim);
		stretch_free(&stretch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periodic_noise_follows_the_closed_form),
		cmocka_unit_test(long_work_loses_the_share_of_noise),
		cmocka_unit_test(consecutive_steps_lose_the_share_of_noise),
		cmocka_unit_test(without_events_work_takes_its_own_time),
		cmocka_unit_test(impossible_recordings_are_refused),
		cmocka_unit_test(irregular_noise_equals_sampling),
		cmocka_unit_test(predicted_steps_equal_simulated_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
