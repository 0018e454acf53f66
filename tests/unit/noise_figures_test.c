// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Statistics of noise against brute force, matching and spectra against what was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/capture.c"
#include "tools/noise/figures.c"
#include "tools/noise/match.c"
#include "tools/noise/spectrum.c"

static u64 random_state = 1;

static u64 some(u64 below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % below;
}

/* ---- figures ---------------------------------------------------------------------------- */

/* The least value with at least that share of all at or below it, by counting. */
static u64 slow_percentile(const u64 *values, u64 count, u64 thousandths)
{
	u64 best = UINT64_MAX, i, k;

	for (i = 0; i < count; i++) {
		u64 below = 0;

		for (k = 0; k < count; k++)
			below += values[k] <= values[i];
		if (below * 1000 >= thousandths * count && values[i] < best)
			best = values[i];
	}
	return best;
}

static u64 slow_mad(const u64 *values, u64 count)
{
	u64 *distance = calloc(count, sizeof(*distance)), i, mad;
	const u64 median = slow_percentile(values, count, 500);

	for (i = 0; i < count; i++)
		distance[i] = values[i] > median ? values[i] - median : median - values[i];
	mad = slow_percentile(distance, count, 500);
	free(distance);
	return mad;
}

static void figures_are_exact(void **state)
{
	u64 values[300], copy[300], total, count, i;
	u32 round;

	(void)state;
	for (round = 0; round < 60; round++) {
		struct noise_figures f;

		count = 1 + some(300);
		for (total = 0, i = 0; i < count; i++)
			total += copy[i] = values[i] = some(round % 2 ? 1000000 : 20);
		f = noise_figures(copy, count);
		assert_int_equal(f.count, count);
		assert_int_equal(f.total, total);
		assert_int_equal(f.min, slow_percentile(values, count, 0));
		assert_int_equal(f.max, slow_percentile(values, count, 1000));
		assert_int_equal(f.p20, slow_percentile(values, count, 200));
		assert_int_equal(f.p50, slow_percentile(values, count, 500));
		assert_int_equal(f.p80, slow_percentile(values, count, 800));
		assert_int_equal(f.p90, slow_percentile(values, count, 900));
		assert_int_equal(f.p99, slow_percentile(values, count, 990));
		assert_int_equal(f.p999, slow_percentile(values, count, 999));
		assert_int_equal(f.mad, slow_mad(values, count));
	}
	assert_int_equal(noise_figures(values, 0).count, 0);
}

static void buckets_have_the_right_events(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i + 1 < NOISE_BUCKETS; i++) {
		assert_true(noise_bucket_edge(i) < noise_bucket_edge(i + 1));
		assert_int_equal(noise_bucket(noise_bucket_edge(i)), i);
		assert_int_equal(noise_bucket(noise_bucket_edge(i + 1) - 1), i);
	}
	assert_int_equal(noise_bucket(UINT64_MAX), NOISE_BUCKETS - 1);
}

/* The interval of 95 % holds the mean 95 times of a hundred, and Welch's that of a difference. */
static void confidence_intervals_have_their_coverage(void **state)
{
	u32 round, i, held = 0, held_difference = 0;

	(void)state;
	for (round = 0; round < 2000; round++) {
		double a[20], b[10];
		struct noise_mean x, y, d;

		for (i = 0; i < 20; i++)
			a[i] = some(1000001) / 1e6 + some(1000001) / 1e6 + some(1000001) / 1e6;
		for (i = 0; i < 10; i++)
			b[i] = 5 * (some(1000001) / 1e6 + some(1000001) / 1e6);
		x = noise_mean(a, 20);
		y = noise_mean(b, 10);
		d = noise_mean_difference(&x, &y);
		held += fabs(x.mean - 1.5) <= x.error;
		held_difference += fabs(d.mean - 3.5) <= d.error;
	}
	assert_in_range(held, 1860, 1940);
	assert_in_range(held_difference, 1860, 1940);
}

static void ks_tells_exponentials(void **state)
{
	u64 value[1000], other[1000], i;
	u32 round, refused = 0;
	double chance;

	(void)state;
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 1000; i++)
			value[i] = -log((some(1u << 30) + 1.) / (1u << 30)) * 1e6;
		noise_sort(value, 1000);
		noise_ks_exponential(value, 1000, 1e6, &chance);
		refused += chance < 0.05;
	}
	assert_in_range(refused, 1, 22);	/* one in twenty, by chance */
	noise_ks_exponential(value, 1000, 1.15e6, &chance);
	assert_true(chance < 0.01);
	for (i = 0; i < 1000; i++)
		other[i] = some(2000000);	/* the same mean, another distribution */
	noise_sort(other, 1000);
	noise_ks_exponential(other, 1000, 1e6, &chance);
	assert_true(chance < 1e-6);
	noise_ks(value, 1000, other, 1000, &chance);
	assert_true(chance < 1e-6);
	assert_true(noise_ks(value, 1000, value, 1000, &chance) == 0 && chance > 0.99);
}

/* ---- captures ----------------------------------------------------------------------------- */

static void summaries_add_up(void **state)
{
	struct node_capture capture;
	struct noise_summary all, one;
	const struct coll_noise_cpu cpus[] = { { .cpu = 3, .watched = 1000000 },
					       { .cpu = 1, .watched = 3000000 } };
	u32 i;

	(void)state;
	node_capture_init(&capture);
	for (i = 0; i < 2; i++)
		assert_int_equal(node_capture_add_cpu(&capture, &cpus[i]), 0);
	for (i = 0; i < 10; i++) {
		node_capture_add_event(&capture, 100000 * (9 - i), 1000, 3, COLL_NOISE_UNKNOWN, 0);
		node_capture_add_event(&capture, 300000 * i, 30000, 1, COLL_NOISE_UNKNOWN, 0);
	}
	assert_int_equal(node_capture_finish(&capture), 0);
	assert_int_equal(capture.cpu[0].cpu, 1);
	assert_int_equal(node_capture_events(&capture, 1)[1].start, 100000);
	assert_int_equal(noise_summary(&capture, 0, &one), 0);
	assert_true(fabs(one.share - 0.1) < 1e-12 && fabs(one.window.mean - 0.1) < 1e-9);
	assert_true(fabs(one.rate - 10 / 3e-3) < 1e-6);
	assert_int_equal(one.gap.min, 300000);
	assert_int_equal(one.gap.count, 9);
	assert_int_equal(noise_summary(&capture, NOISE_ALL, &all), 0);
	assert_int_equal(all.length.count, 20);
	assert_int_equal(all.length.total, 310000);
	assert_int_equal(all.watched, 4000000);
	node_capture_free(&capture);
}

/* ---- matching ------------------------------------------------------------------------------ */

static void match_finds_what_is_covered(void **state)
{
	const struct noise_gap injected[] = { { 100, 200 }, { 300, 400 }, { 500, 600 },
					      { 700, 800 }, { 810, 900 }, { 1000, 1010 } };
	const struct noise_gap gap[] = { { 95, 210 },	  /* all of the first */
					 { 360, 460 },	  /* less than half of the second */
					 { 540, 620 },	  /* more than half of the third */
					 { 650, 660 },	  /* no event */
					 { 690, 910 } };  /* two at once */
	struct noise_match match;

	(void)state;
	assert_int_equal(noise_match(injected, 6, gap, 5, &match), 0);
	assert_int_equal(match.injected, 6);
	assert_int_equal(match.found, 4);
	assert_int_equal(match.alone, 2);
	assert_int_equal(match.together, 2);
	assert_int_equal(match.together_length, 190);
	assert_int_equal(match.seen, 115 + 80);
	assert_true(match.extra[0] == 15 && match.extra[1] == -20);
	assert_true(match.matched[0] && !match.matched[1] && match.matched[2] &&
		    !match.matched[3] && match.matched[4]);
	noise_match_free(&match);
}

/* ---- spectra --------------------------------------------------------------------------------- */

static void add_train(struct node_capture *capture, u64 period, u64 phase, u64 until, u64 jitter)
{
	u64 at;

	for (at = phase; at < until; at += period)
		node_capture_add_event(capture, at + (jitter ? some(jitter) : 0), 1000, 0,
				       COLL_NOISE_UNKNOWN, 0);
}

static const struct noise_peak *peak_at(const struct noise_spectrum *s, double hz)
{
	u32 i;

	for (i = 0; i < s->peaks; i++)
		if (fabs(s->peak[i].hz - hz) < hz * 0.002)
			return &s->peak[i];
	return NULL;
}

static void spectra_find_beats(void **state)
{
	const struct coll_noise_cpu cpu = { .watched = 20000000000ull };
	struct node_capture capture;
	struct noise_spectrum s;
	u32 i;

	(void)state;
	node_capture_init(&capture);
	*capture.head.host = 0;		/* not here: all ticks are candidates */
	node_capture_add_cpu(&capture, &cpu);
	for (i = 0; i < 3000; i++)
		node_capture_add_event(&capture, some(20000) * 1000000ull + some(1000000), 500, 0,
				       COLL_NOISE_UNKNOWN, 0);
	node_capture_finish(&capture);
	assert_int_equal(noise_spectrum(&capture, &s), 0);
	assert_int_equal(s.peaks, 0);	/* at random: none */
	noise_spectrum_free(&s);

	add_train(&capture, 4000000, 123456, cpu.watched, 20000);
	add_train(&capture, 1000000000 / 41, 999999, cpu.watched, 1000);
	node_capture_finish(&capture);
	assert_int_equal(noise_spectrum(&capture, &s), 0);
	assert_non_null(peak_at(&s, 250));
	assert_string_equal(peak_at(&s, 250)->name, "tick (HZ=250)");
	assert_true(peak_at(&s, 250)->harmonics >= 4);
	assert_non_null(peak_at(&s, 41));
	assert_null(peak_at(&s, 500));	/* that is 250's */
	assert_true(fabs(s.longest - 2) < 0.01);
	noise_spectrum_free(&s);
	node_capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_exact),
		cmocka_unit_test(buckets_have_the_right_events),
		cmocka_unit_test(confidence_intervals_have_their_coverage),
		cmocka_unit_test(ks_tells_exponentials),
		cmocka_unit_test(summaries_add_up),
		cmocka_unit_test(match_finds_what_is_covered),
		cmocka_unit_test(spectra_find_beats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
