// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The options noise, link_noise and grain: what they say, and what T then becomes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/redundancy/redundancy.h"
#include "libcoll/base/options.h"

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fabs(b);
}

static int set(struct coll_options *options, const char *key, const char *value, char *why)
{
	*why = '\0';
	return coll_options_set(options, key, value, why, 300);
}

static void begin(struct coll_options *options)
{
	char why[300] = "";

	unsetenv("COLL_NOISE");
	unsetenv("COLL_LINK_NOISE");
	unsetenv("COLL_GRAIN");
	if (coll_options_init(options, why, sizeof(why)))
		fail_msg("%s", why);
}

static void kinds_of_noise_are_read(void **state)
{
	struct coll_options options;
	char why[300];

	(void)state;
	begin(&options);
	assert_true(options.machine.noise[0].rate <= 0);
	assert_int_equal(set(&options, "noise", "1003x2.1us+0.5x4ms", why), 0);
	assert_true(near(options.machine.noise[0].rate, 1003));
	assert_true(near(options.machine.noise[0].duration, 2.1e-6));
	assert_true(near(options.machine.noise[1].rate, 0.5));
	assert_true(near(options.machine.noise[1].duration, 4e-3));
	assert_true(options.machine.noise[2].rate <= 0);
	assert_int_equal(set(&options, "link_noise", "1000x10us", why), 0);
	assert_true(near(options.machine.link_noise.duration, 10e-6));
	assert_int_equal(set(&options, "grain", "3ms", why), 0);
	assert_true(near(options.machine.grain, 3e-3));
	/* Fewer kinds than before leave none of the old ones; none leaves none. */
	assert_int_equal(set(&options, "noise", "7x1us", why), 0);
	assert_true(options.machine.noise[1].rate <= 0);
	assert_int_equal(set(&options, "noise", "none", why), 0);
	assert_true(options.machine.noise[0].rate <= 0);
	assert_int_equal(set(&options, "noise", "1x1us+1x2us+1x3us+1x4us+1x5us+1x6us+1x7us+1x8us",
			     why), 0);
	assert_true(near(options.machine.noise[7].duration, 8e-6));
}

static void wrong_noise_is_refused(void **state)
{
	static const char *const wrong[] = {
		"x",
		"1000",
		"1000x",
		"x10us",
		"0x1us",
		"-1x1us",
		"1e10x1us",
		"1000x0us",
		"1000x10ms ",
		"1000x2000s",
		"1000x10us+",
		"+1000x10us",
		"1000x10us++1x1us",
		"nanx1us",
		"1xnan",
		"1x1us+1x2us+1x3us+1x4us+1x5us+1x6us+1x7us+1x8us+1x9us",
	};
	struct coll_options options;
	char why[300];
	u32 i;

	(void)state;
	begin(&options);
	assert_int_equal(set(&options, "noise", "7x1us", why), 0);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		if (set(&options, "noise", wrong[i], why) != -EINVAL)
			fail_msg("noise=%s was taken", wrong[i]);
		assert_non_null(strstr(why, "noise"));
		assert_non_null(strstr(why, "RATExDURATION"));
		assert_true(near(options.machine.noise[0].rate, 7));	/* it stays as it was */
	}
	assert_int_equal(set(&options, "link_noise", "1x1us+1x2us", why), -EINVAL);
	assert_non_null(strstr(why, "link_noise"));
}

/*
 * T that a call leaves open: none without noise. With it more the more ranks there are, as
 * long as delays meet fewer classes than there are: up to 2^15 ranks with paper 1's noise.
 * Beyond, a delay in the first exchange is all but sure and no T helps against that, so
 * all from 2 on take as long, and where sends cost time fewer are better again.
 */
static void chosen_t_grows_with_ranks(void **state)
{
	struct coll_call call = { .collective = COLL_ALLREDUCE, .type = COLL_DOUBLE,
				  .reduction = COLL_SUM, .element = 8, .commutative = true,
				  .count = 1 };
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "butterfly-redundant");
	struct coll_options options;
	struct coll_tuning tuning;
	u64 before = 0, first = 0;
	char why[300];

	(void)state;
	begin(&options);
	options.machine.alpha = 1e-7;
	options.machine.overhead = 1e-12;	/* 0 were: not known */
	options.machine.beta = 1e-9;
	options.machine.noise_event = true;	/* as paper 1 has it */
	tuning = COLL_TUNING_UNSET;
	call.ranks = 4096;
	coll_redundancy_choose(algo, &call, &options.machine, &tuning);
	assert_true(tuning.redundancy == COLL_UNSET);
	assert_int_equal(set(&options, "noise", "1000x10us", why), 0);
	assert_int_equal(set(&options, "link_noise", "1000x10us", why), 0);
	for (call.ranks = 16; call.ranks <= 1 << 15; call.ranks *= 2) {
		tuning = COLL_TUNING_UNSET;
		coll_redundancy_choose(algo, &call, &options.machine, &tuning);
		assert_true(tuning.redundancy != COLL_UNSET && tuning.redundancy >= before);
		before = tuning.redundancy;
		first = first ? first : before;
		printf("# %u ranks: T = %llu\n", call.ranks, (unsigned long long)before);
	}
	assert_true(before > first);
	for (; call.ranks <= 1 << 17; call.ranks *= 2) {
		const double two = coll_redundancy_delay(&call, (struct coll_redundancy){ 2, 0 },
							 &options.machine);
		const double five = coll_redundancy_delay(&call, (struct coll_redundancy){ 5, 0 },
							  &options.machine);

		tuning = COLL_TUNING_UNSET;
		coll_redundancy_choose(algo, &call, &options.machine, &tuning);
		printf("# %u ranks: T = %llu; T = 2: %.4g us late, 5: %.4g us\n", call.ranks,
		       (unsigned long long)tuning.redundancy, two * 1e6, five * 1e6);
		assert_true(fabs(two / five - 1) < 0.05);
		assert_true(tuning.redundancy >= 1);
	}
	options.machine.overhead = 2e-6;
	for (call.ranks = 1 << 13; call.ranks <= 1 << 17; call.ranks *= 16) {
		before = tuning.redundancy;
		tuning = COLL_TUNING_UNSET;
		coll_redundancy_choose(algo, &call, &options.machine, &tuning);
	}
	assert_true(tuning.redundancy <= before);
	tuning = COLL_TUNING_UNSET;
	tuning.redundancy = 1;		/* explicit values stay */
	coll_redundancy_choose(algo, &call, &options.machine, &tuning);
	assert_int_equal(tuning.redundancy, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_noise_are_read),
		cmocka_unit_test(wrong_noise_is_refused),
		cmocka_unit_test(chosen_t_grows_with_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
