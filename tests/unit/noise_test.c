// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Plans of noise: their distributions, their seeds, entering them anywhere, refusals. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/noise/noise.h"

#define US 1000ull
#define MS 1000000ull
enum { SAMPLES = 10000 };

static const struct coll_noise_span table[] = {
	{ 0, 30 * US }, { 100 * US, 10 * US }, { 100 * US, 20 * US }, { 700 * US, 40 * US },
};
static const struct coll_noise_span lengths[] = { { 0, 10 * US }, { 0, 20 * US }, { 0, 90 * US } };

static const struct coll_noise_model periodic = {
	.arrival = COLL_NOISE_PERIODIC, .phase = COLL_NOISE_RANDOM, .period = 10 * MS,
	.duration = 250 * US, .seed = 7,
};
static const struct coll_noise_model poisson = {
	.arrival = COLL_NOISE_POISSON, .phase = COLL_NOISE_RANDOM,
	.length = COLL_NOISE_EXPONENTIAL, .period = 10 * MS, .duration = 250 * US, .seed = 7,
};
static const struct coll_noise_model pareto = {
	.arrival = COLL_NOISE_POISSON, .phase = COLL_NOISE_RANDOM, .length = COLL_NOISE_PARETO,
	.shape = 2500, .period = 10 * MS, .duration = 250 * US, .seed = 7,
};
static const struct coll_noise_model empirical = {
	.arrival = COLL_NOISE_POISSON, .phase = COLL_NOISE_RANDOM, .length = COLL_NOISE_TABLE,
	.period = 10 * MS, .seed = 7,
};
static const struct coll_noise_model replay = {
	.arrival = COLL_NOISE_REPLAY, .phase = COLL_NOISE_RANDOM, .length = COLL_NOISE_TABLE,
	.period = MS, .seed = 7,
};

static struct coll_noise_plan plan_of(const struct coll_noise_model *model)
{
	struct coll_noise_plan plan = { .model = model };
	const char *wrong;

	if (model->arrival == COLL_NOISE_REPLAY) {
		plan.table = table;
		plan.spans = sizeof(table) / sizeof(*table);
	} else if (model->length == COLL_NOISE_TABLE) {
		plan.table = lengths;
		plan.spans = sizeof(lengths) / sizeof(*lengths);
	}
	if (coll_noise_check(&plan, &wrong))
		fail_msg("refused: %s", wrong);
	return plan;
}

/* ---- distributions ---------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

typedef double distribution(double x);

static double unit_exponential(double x)
{
	return 1 - exp(-x);
}

static double unit_pareto(double x)	/* mean 1, exponent 2.5 */
{
	return x < 0.6 ? 0 : 1 - pow(0.6 / x, 2.5);
}

static double unit_uniform(double x)
{
	return x;
}

/* Kolmogorov and Smirnov's test: that p > 0.01 means D * sqrt(n) < 1.628. */
static void fits(double *sample, int count, distribution *cdf)
{
	double distance = 0;
	int i;

	qsort(sample, count, sizeof(*sample), ascending);
	for (i = 0; i < count; i++) {
		double p = cdf(sample[i]);

		distance = fmax(distance, fmax(p - (double)i / count, (i + 1.) / count - p));
	}
	if (distance * sqrt(count) >= 1.628)
		fail_msg("distance %g of %d samples", distance, count);
}

static void starts_and_lengths_fit(const struct coll_noise_model *model, distribution *cdf)
{
	static double gap[SAMPLES], length[SAMPLES];
	struct coll_noise_plan plan = plan_of(model);
	u32 number;
	int i;

	for (number = 0; number < 3; number++) {
		struct coll_noise_stream stream = coll_noise_stream(&plan, number);
		u64 last = 0;

		for (i = 0; i < SAMPLES; i++) {
			struct coll_noise_span event = coll_noise_next(&plan, &stream);

			assert_true(event.start >= last);
			gap[i] = (double)(event.start - last) / model->period;
			length[i] = (double)event.duration / model->duration;
			last = event.start;
		}
		fits(gap, SAMPLES, unit_exponential);
		fits(length, SAMPLES, cdf);
	}
}

static void random_events_have_their_distribution(void **state)
{
	(void)state;
	starts_and_lengths_fit(&poisson, unit_exponential);
	starts_and_lengths_fit(&pareto, unit_pareto);
}

/* As they would be if one of them did not know of the other. */
static void gaps_and_lengths_are_independent(void **state)
{
	struct coll_noise_plan plan = plan_of(&poisson);
	struct coll_noise_stream stream = coll_noise_stream(&plan, 0);
	double with_next = 0, with_length = 0, last_gap = 1;
	u64 last = 0;
	int i;

	(void)state;
	for (i = 0; i < 10 * SAMPLES; i++) {
		struct coll_noise_span event = coll_noise_next(&plan, &stream);
		double gap = (double)(event.start - last) / poisson.period;

		with_next += (gap - 1) * (last_gap - 1);
		with_length += (gap - 1) * ((double)event.duration / poisson.duration - 1);
		last_gap = gap;
		last = event.start;
	}
	assert_true(fabs(with_next / i) < 4 / sqrt(i));
	assert_true(fabs(with_length / i) < 4 / sqrt(i));
}

static void lengths_have_their_mean_and_deviation(void **state)
{
	static const struct {
		const struct coll_noise_model *model;
		double mean, deviation;	/* of the lengths, in units of 250 us */
	} cases[] = {
		{ &periodic, 1, 0 },
		{ &poisson, 1, 1 },
		{ &pareto, 1, 0.8944 },	/* infinite fourth moment: the deviation is loose */
		{ &empirical, 0.16, 0.1424 },
	};
	unsigned int c;
	int i;

	(void)state;
	for (c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct coll_noise_plan plan = plan_of(cases[c].model);
		struct coll_noise_stream stream = coll_noise_stream(&plan, 3);
		double sum = 0, squares = 0;
		u64 last = 0;
		const int count = 100 * SAMPLES;

		for (i = 0; i < count; i++) {
			struct coll_noise_span event = coll_noise_next(&plan, &stream);
			double length = event.duration / (250. * US);

			sum += length;
			squares += length * length;
			last = event.start;
		}
		sum /= count;
		assert_true(fabs((double)last / count / (10 * MS) - 1) < 0.004);
		assert_true(fabs(sum - cases[c].mean) < 0.004);
		assert_true(fabs(sqrt(fmax(squares / count - sum * sum, 0)) -
				 cases[c].deviation) < (cases[c].model == &pareto ? 0.1 : 0.01));
	}
}

static void phases_are_uniform(void **state)
{
	static double phase[SAMPLES];
	struct coll_noise_plan plan = plan_of(&periodic);
	int i;

	(void)state;
	for (i = 0; i < SAMPLES; i++) {
		struct coll_noise_stream stream = coll_noise_stream(&plan, i);

		phase[i] = (double)coll_noise_next(&plan, &stream).start / periodic.period;
	}
	fits(phase, SAMPLES, unit_uniform);
}

/* ---- phases ----------------------------------------------------------------- */

static void phase_same_is_equal_on_every_stream(void **state)
{
	const struct coll_noise_model *const models[] = { &periodic, &poisson, &pareto, &replay };
	unsigned int m;
	int i;

	(void)state;
	for (m = 0; m < sizeof(models) / sizeof(*models); m++) {
		struct coll_noise_model model = *models[m];
		struct coll_noise_plan plan;
		struct coll_noise_stream a, b;

		model.phase = COLL_NOISE_SAME;
		plan = plan_of(&model);
		a = coll_noise_stream(&plan, 0);
		b = coll_noise_stream(&plan, 1234567);
		for (i = 0; i < SAMPLES; i++) {
			struct coll_noise_span of_a = coll_noise_next(&plan, &a);
			struct coll_noise_span of_b = coll_noise_next(&plan, &b);

			assert_memory_equal(&of_a, &of_b, sizeof(of_a));
			if (!i && model.arrival != COLL_NOISE_POISSON)
				assert_int_equal(of_a.start, 0);
		}
	}
}

static void staggered_streams_take_turns(void **state)
{
	struct coll_noise_model model = periodic;
	struct coll_noise_plan plan;
	u32 i;

	(void)state;
	model.phase = COLL_NOISE_STAGGERED;
	model.streams = 3;
	plan = plan_of(&model);
	for (i = 0; i < 7; i++) {
		struct coll_noise_stream stream = coll_noise_stream(&plan, i);

		assert_int_equal(coll_noise_next(&plan, &stream).start, i % 3 * 10 * MS / 3);
		assert_int_equal(coll_noise_next(&plan, &stream).start,
				 10 * MS + i % 3 * 10 * MS / 3);
	}
	model = replay;
	model.phase = COLL_NOISE_STAGGERED;
	model.streams = 2;
	plan = plan_of(&model);
	{
		struct coll_noise_stream stream = coll_noise_stream(&plan, 1);

		assert_int_equal(coll_noise_next(&plan, &stream).start, 200 * US);
		assert_int_equal(coll_noise_next(&plan, &stream).start, 500 * US);
		assert_int_equal(coll_noise_next(&plan, &stream).start, 600 * US);
	}
}

static void replays_wrap_around(void **state)
{
	struct coll_noise_plan plan = plan_of(&replay);
	struct coll_noise_stream stream;
	u64 shift;
	int i;

	(void)state;
	stream = coll_noise_stream(&plan, 5);
	shift = stream.shift;
	assert_in_range(shift, 1, MS - 1);
	for (i = 0; i < 4 * 50; i++) {
		struct coll_noise_span event = coll_noise_next(&plan, &stream);
		u64 place = (event.start + shift) % MS;

		assert_true(place == 0 || place == 100 * US || place == 700 * US);
		assert_true((event.duration == 40 * US) == (place == 700 * US));
	}
	assert_true(coll_noise_next(&plan, &stream).start >= 50 * MS);
	coll_noise_seek(&plan, &stream, 50 * MS);
	assert_true(coll_noise_next(&plan, &stream).start < 51 * MS);
}

static void longest_cuts(void **state)
{
	struct coll_noise_model model = pareto;
	struct coll_noise_plan plan;
	struct coll_noise_stream stream;
	int i, at_most = 0;

	(void)state;
	model.longest = 300 * US;
	plan = plan_of(&model);
	stream = coll_noise_stream(&plan, 0);
	for (i = 0; i < SAMPLES; i++) {
		u64 duration = coll_noise_next(&plan, &stream).duration;

		assert_in_range(duration, 149 * US, 300 * US);
		at_most += duration == 300 * US;
	}
	assert_in_range(at_most, 1500, 2100);	/* (0.6 / 1.2)^2.5 of them: 17.7 % */
}

/* ---- the same everywhere, from everywhere --------------------------------------- */

static u64 digest(const struct coll_noise_model *model, u32 number)
{
	struct coll_noise_plan plan = plan_of(model);
	struct coll_noise_stream stream = coll_noise_stream(&plan, number);
	u64 sum = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		struct coll_noise_span event = coll_noise_next(&plan, &stream);

		sum = (sum ^ event.start) * 0x100000001b3ull;
		sum = (sum ^ event.duration) * 0x100000001b3ull;
	}
	return sum;
}

/* What these plans were from the beginning, and shall be on every machine. */
static void plans_are_golden(void **state)
{
	static const struct {
		const struct coll_noise_model *model;
		u64 digest;
	} golden[] = {
		{ &periodic, 0xb4e69ae22c547d40 }, { &poisson, 0x4197d2dffaed0c89 },
		{ &pareto, 0x7f87a51f5948357d },   { &empirical, 0xd1cf8d5e657fa455 },
		{ &replay, 0x8c32cd981fb81880 },
	};
	struct coll_noise_plan plan = plan_of(&poisson);
	struct coll_noise_stream stream = coll_noise_stream(&plan, 0);
	struct coll_noise_span first = coll_noise_next(&plan, &stream);
	unsigned int i;

	(void)state;
	assert_int_equal(first.start, 672092);
	assert_int_equal(first.duration, 349109);
	for (i = 0; i < sizeof(golden) / sizeof(*golden); i++)
		assert_true(digest(golden[i].model, 3) == golden[i].digest);
}

static void seeds_and_streams_differ(void **state)
{
	struct coll_noise_model other = poisson;

	(void)state;
	other.seed = 8;
	assert_true(digest(&poisson, 3) == digest(&poisson, 3));
	assert_true(digest(&poisson, 3) != digest(&poisson, 4));
	assert_true(digest(&poisson, 3) != digest(&other, 3));
}

static void streams_are_entered_anywhere(void **state)
{
	const struct coll_noise_model *const models[] = { &periodic, &poisson, &empirical,
							  &replay };
	static struct coll_noise_span walked[1000];
	unsigned int m, i, k;
	u64 at;

	(void)state;
	for (m = 0; m < sizeof(models) / sizeof(*models); m++) {
		struct coll_noise_plan plan = plan_of(models[m]);
		struct coll_noise_stream stream = coll_noise_stream(&plan, 9);

		for (i = 0; i < 1000; i++)
			walked[i] = coll_noise_next(&plan, &stream);
		for (at = 0, k = 0; at < walked[990].start; at += 377771) {
			struct coll_noise_span event;

			while (walked[k].start < at)
				k++;
			coll_noise_seek(&plan, &stream, at);
			event = coll_noise_next(&plan, &stream);
			assert_memory_equal(&event, &walked[k], sizeof(event));
		}
		coll_noise_seek(&plan, &stream, walked[500].start);
		assert_int_equal(coll_noise_next(&plan, &stream).start, walked[500].start);
		coll_noise_seek(&plan, &stream, 1ull << 62);
		assert_true(coll_noise_next(&plan, &stream).start >= 1ull << 62);
	}
}

/* ---- refusals --------------------------------------------------------------- */

static void refused(struct coll_noise_model model, const struct coll_noise_span *spans, u32 count,
		    const char *reason)
{
	struct coll_noise_plan plan = { &model, spans, count };
	const char *wrong = NULL;

	assert_int_equal(coll_noise_check(&plan, &wrong), -EINVAL);
	if (!wrong || strncmp(wrong, reason, strlen(reason)))
		fail_msg("not refused for '%s' but for '%s'", reason, wrong);
}

#define WITH(model, ...) \
	({ struct coll_noise_model changed = (model); changed.__VA_ARGS__; changed; })

static void hostile_models_are_refused(void **state)
{
	static const struct coll_noise_span backwards[] = { { 5, 1 }, { 4, 1 } };
	static const struct coll_noise_span late[] = { { MS, 1 } };
	static const struct coll_noise_span full[] = { { 0, 960 * US } };
	static const struct coll_noise_span forever[] = { { 0, ~0ull } };

	(void)state;
	refused(WITH(periodic, arrival = 3), NULL, 0, "arrival: ");
	refused(WITH(periodic, phase = 3), NULL, 0, "phase: ");
	refused(WITH(periodic, phase = 255), NULL, 0, "phase: ");
	refused(WITH(periodic, length = 4), NULL, 0, "length: ");
	refused(WITH(periodic, zero = 1), NULL, 0, "padding: ");
	refused(WITH(periodic, zero2 = 1), NULL, 0, "padding: ");
	refused(WITH(periodic, period = 999), NULL, 0, "period: ");
	refused(WITH(periodic, period = ~0ull), NULL, 0, "period: ");
	refused(WITH(periodic, duration = 0), NULL, 0, "duration: ");
	refused(WITH(periodic, duration = ~0ull), NULL, 0, "duration: ");
	refused(WITH(periodic, duration = 9501 * US), NULL, 0, "duration: the events fill");
	refused(WITH(periodic, longest = ~0ull), NULL, 0, "longest: ");
	refused(WITH(periodic, shape = 1500), NULL, 0, "shape: 0");
	refused(WITH(periodic, streams = 2), NULL, 0, "streams: 0");
	refused(WITH(periodic, phase = COLL_NOISE_STAGGERED), NULL, 0, "streams: at least 1");
	refused(WITH(poisson, phase = COLL_NOISE_STAGGERED), NULL, 0, "phase: Poisson");
	refused(WITH(pareto, shape = 1000), NULL, 0, "shape: above 1");
	refused(WITH(pareto, shape = ~0u), NULL, 0, "shape: above 1");
	refused(periodic, lengths, 3, "table: none");
	refused(WITH(replay, length = COLL_NOISE_FIXED), table, 4, "length: a replay");
	refused(WITH(replay, duration = 1), table, 4, "duration: 0");
	refused(replay, NULL, 0, "table: from 1");
	refused(replay, table, COLL_NOISE_SPANS_MAX + 1, "table: from 1");
	refused(replay, backwards, 2, "table: starts ascend");
	refused(replay, late, 1, "table: starts are below");
	refused(replay, full, 1, "duration: the events fill");
	refused(replay, forever, 1, "table: durations");
	refused(empirical, table, 4, "table: starts are 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_have_their_distribution),
		cmocka_unit_test(gaps_and_lengths_are_independent),
		cmocka_unit_test(lengths_have_their_mean_and_deviation),
		cmocka_unit_test(phases_are_uniform),
		cmocka_unit_test(phase_same_is_equal_on_every_stream),
		cmocka_unit_test(staggered_streams_take_turns),
		cmocka_unit_test(replays_wrap_around),
		cmocka_unit_test(longest_cuts),
		cmocka_unit_test(plans_are_golden),
		cmocka_unit_test(seeds_and_streams_differ),
		cmocka_unit_test(streams_are_entered_anywhere),
		cmocka_unit_test(hostile_models_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
