// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Lines through message times: right in noise, untouched by outliers, silent where nothing is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "libcoll/base/fit.h"

enum { SIZES = 5, EACH = 12, COUNT = SIZES * EACH };

static const double sizes[SIZES] = { 8, 1024, 8192, 65536, 262144 };
static const double alpha = 20e-6, beta = 0.8e-9;

/* From 0 up to 1. */
static double chance(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 11) * 0x1p-53;
}

/* Each is late by an exponential time with this mean, and of `share` also by 1 ms. */
static void make(struct coll_fit_sample *sample, double mean, double share)
{
	int i;

	for (i = 0; i < COUNT; i++) {
		sample[i].bytes = sizes[i % SIZES];
		sample[i].seconds = alpha + beta * sample[i].bytes - mean * log(1 - chance());
		if (chance() < share)
			sample[i].seconds += 1e-3;
	}
}

static void assert_near(double value, double wanted, double part)
{
	if (fabs(value / wanted - 1) > part)
		fail_msg("%g is not within %g of %g", value, part, wanted);
}

static void an_exact_line_is_found(void **state)
{
	struct coll_fit_line line = { 1, 1 };
	struct coll_fit_sample sample[COUNT];

	(void)state;
	make(sample, 0, 0);
	assert_true(coll_fit_line(sample, COUNT, &line));
	assert_near(line.base, alpha, 1e-9);
	assert_near(line.slope, beta, 1e-9);
}

static void noise_and_outliers_shift_it_little(void **state)
{
	struct coll_fit_sample sample[COUNT];
	int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		struct coll_fit_line line = { 0, 0 };

		make(sample, 1e-6, 0.3);
		assert_true(coll_fit_line(sample, COUNT, &line));
		assert_near(line.base, alpha, 0.1);
		assert_near(line.slope, beta, 0.05);
	}
}

/* A whole size is wrong: a buffer was made longer, a disturbance began and ended. */
static void one_wrong_size_is_outvoted(void **state)
{
	struct coll_fit_line line = { 0, 0 };
	struct coll_fit_sample sample[COUNT];
	int i;

	(void)state;
	make(sample, 0, 0);
	for (i = 0; i < COUNT; i++)
		if (sample[i].bytes == 65536)
			sample[i].seconds *= 20;
	assert_true(coll_fit_line(sample, COUNT, &line));
	assert_near(line.base, alpha, 0.1);
	assert_near(line.slope, beta, 0.1);
}

static void few_samples_say_nothing(void **state)
{
	struct coll_fit_sample sample[COUNT];
	struct coll_fit_line line = { 3, 4 };

	(void)state;
	make(sample, 0, 0);
	assert_false(coll_fit_line(sample, FIT_SAMPLES_MIN - 1, &line));
	assert_false(coll_fit_line(sample, 0, &line));
	assert_true(line.base == 3 && line.slope == 4);
}

static void one_size_leaves_the_slope(void **state)
{
	struct coll_fit_line line = { 0, 2e-9 };
	struct coll_fit_sample sample[6];
	int i;

	(void)state;
	for (i = 0; i < 6; i++)
		sample[i] = (struct coll_fit_sample){ 1000, 12e-6 + (i == 5 ? 1 : 0) };
	assert_true(coll_fit_line(sample, 6, &line));
	assert_near(line.base, 10e-6, 1e-9);
	assert_true(line.slope == 2e-9);
}

/* Nothing is known from times that shrink with bytes, or that the bytes alone exceed. */
static void impossible_times_are_not_taken(void **state)
{
	struct coll_fit_line line = { 3, 4 };
	struct coll_fit_sample sample[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_fit_sample){ 8 << i, 1e-3 / (i + 1) };
	assert_false(coll_fit_line(sample, 8, &line));
	assert_true(line.base == 3 && line.slope == 4);
}

/* Long messages that were all held up tell nothing of short ones. */
static void a_slope_that_leaves_no_base_is_not_taken(void **state)
{
	struct coll_fit_line line = { 0, 1e-9 };
	struct coll_fit_sample sample[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_fit_sample){ i < 4 ? 8 : 1024, i < 4 ? 1e-6 : 4e-3 };
	assert_true(coll_fit_line(sample, 8, &line));
	assert_near(line.base, 1e-6 - 8e-9, 1e-9);
	assert_true(line.slope == 1e-9);
}

/* One or two samples of a size may both be late. */
static void an_octave_of_two_samples_does_not_count(void **state)
{
	struct coll_fit_line line = { 0, 0 };
	struct coll_fit_sample sample[6];
	int i;

	(void)state;
	for (i = 0; i < 6; i++)
		sample[i] = (struct coll_fit_sample){ i < 4 ? 8 : 65536, i < 4 ? 1e-6 : 1e-3 };
	assert_true(coll_fit_line(sample, 6, &line));
	assert_near(line.base, 1e-6, 1e-9);
	assert_true(line.slope == 0);
}

static void sizes_of_traffic_may_be_any(void **state)
{
	struct coll_fit_line line = { 0, 0 };
	struct coll_fit_sample sample[500];
	int i;

	(void)state;
	for (i = 0; i < 500; i++) {
		sample[i].bytes = i ? floor(pow(2, 20 * chance())) : 0;
		sample[i].seconds = alpha + beta * sample[i].bytes;
	}
	assert_true(coll_fit_line(sample, 500, &line));
	assert_near(line.base, alpha, 1e-6);
	assert_near(line.slope, beta, 1e-6);
}

static void the_quartile_ignores_what_is_late(void **state)
{
	double value[] = { 9, 1, 8, 2, 100 }, one[] = { 7 };

	(void)state;
	assert_true(coll_fit_quartile(value, 5) == 2);
	assert_true(coll_fit_quartile(one, 1) == 7);
}

/* Of two that are lower medians the lower one. */
static void half_of_the_values_may_be_wrong(void **state)
{
	double value[] = { 9, 1, 8, 2, 100 }, two[] = { 5, 3 };

	(void)state;
	assert_true(coll_fit_median(value, 5) == 8);
	assert_true(coll_fit_median(two, 2) == 3);
}

/* The quartile of the octave that took least; of two samples nobody knows whether one is good. */
static void no_base_exceeds_the_least_time(void **state)
{
	struct coll_fit_sample sample[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_fit_sample){ i < 4 ? 8192 : 65536, i % 2 ? i < 4 ? 60e-6 : 90e-6 : 1 };
	assert_near(coll_fit_least(sample, 8), 60e-6, 1e-9);
	assert_true(coll_fit_least(sample, 3) <= 0);
}

static void what_bytes_explain_tells_no_base(void **state)
{
	const struct coll_fit_sample sample[] = { { 1000, 2 }, { 4000, 5 } };
	struct coll_fit_line line = { 1, 1e-3 };

	(void)state;
	assert_true(coll_fit_tells_base(sample, 2, &line) && coll_fit_tells_slope(sample, 2, &line));
	line.base = 0.9;
	assert_false(coll_fit_tells_base(sample, 2, &line));
	line.base = 4.1;
	assert_false(coll_fit_tells_slope(sample, 2, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exact_line_is_found),
		cmocka_unit_test(noise_and_outliers_shift_it_little),
		cmocka_unit_test(one_wrong_size_is_outvoted),
		cmocka_unit_test(few_samples_say_nothing),
		cmocka_unit_test(one_size_leaves_the_slope),
		cmocka_unit_test(impossible_times_are_not_taken),
		cmocka_unit_test(a_slope_that_leaves_no_base_is_not_taken),
		cmocka_unit_test(an_octave_of_two_samples_does_not_count),
		cmocka_unit_test(sizes_of_traffic_may_be_any),
		cmocka_unit_test(the_quartile_ignores_what_is_late),
		cmocka_unit_test(half_of_the_values_may_be_wrong),
		cmocka_unit_test(no_base_exceeds_the_least_time),
		cmocka_unit_test(what_bytes_explain_tells_no_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
