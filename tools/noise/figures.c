// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

static int figures_ascending(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

void noise_sort(u64 *values, u64 count)
{
	if (count)
		qsort(values, count, sizeof(*values), figures_ascending);
}

static u64 rank_of(u64 count, double share)
{
	const u64 rank = ceil(share * count - 1e-9);

	return rank ? rank - 1 : 0;
}

u64 noise_percentile(const u64 *sorted, u64 count, double share)
{
	return count ? sorted[rank_of(count, share)] : 0;
}

/* Median distance from the median, of sorted values: merges the distances on both sides. */
static u64 median_distance(const u64 *sorted, u64 count, u64 median)
{
	u64 above = 0, below, distance = 0, rank = (count + 1) / 2;

	while (above < count && sorted[above] < median)
		above++;
	for (below = above; rank--;) {
		const u64 up = above < count ? sorted[above] - median : UINT64_MAX;
		const u64 down = below ? median - sorted[below - 1] : UINT64_MAX;

		distance = up < down ? up : down;
		if (up < down)
			above++;
		else
			below--;
	}
	return distance;
}

struct noise_figures noise_figures(u64 *values, u64 count)
{
	struct noise_figures f = { .count = count };
	double squares = 0;
	u64 i;

	if (!count)
		return f;
	noise_sort(values, count);
	for (i = 0; i < count; i++)
		f.total += values[i];
	f.mean = (double)f.total / count;
	for (i = 0; i < count; i++)
		squares += (values[i] - f.mean) * (values[i] - f.mean);
	f.deviation = sqrt(squares / count);
	f.min = values[0];
	f.max = values[count - 1];
	f.p20 = noise_percentile(values, count, 0.2);
	f.p50 = noise_percentile(values, count, 0.5);
	f.p80 = noise_percentile(values, count, 0.8);
	f.p90 = noise_percentile(values, count, 0.9);
	f.p99 = noise_percentile(values, count, 0.99);
	f.p999 = noise_percentile(values, count, 0.999);
	f.mad = median_distance(values, count, f.p50);
	return f;
}

static int ascending_reals(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct noise_quantiles noise_quantiles(double *values, u64 count)
{
	if (!count)
		return (struct noise_quantiles){ 0 };
	qsort(values, count, sizeof(*values), ascending_reals);
	return (struct noise_quantiles){
		.count = count,
		.min = values[0],
		.p05 = values[rank_of(count, 0.05)],
		.p50 = values[rank_of(count, 0.5)],
		.p95 = values[rank_of(count, 0.95)],
		.p99 = values[rank_of(count, 0.99)],
		.max = values[count - 1],
	};
}

/* ---- buckets ------------------------------------------------------------------------- */

u64 noise_bucket_edge(u32 bucket)
{
	static const u64 steps[] = { 1, 2, 5 };
	u64 edge = 10;
	u32 decade;

	for (decade = bucket / 3; decade; decade--)
		edge *= 10;
	return bucket ? edge * steps[bucket % 3] : 0;
}

u32 noise_bucket(u64 duration)
{
	u32 bucket = 0;

	while (bucket + 1 < NOISE_BUCKETS && duration >= noise_bucket_edge(bucket + 1))
		bucket++;
	return bucket;
}

/* ---- means ------------------------------------------------------------------------------ */

/* Student's t at 97.5 %, to 1 %: Cornish and Fisher's expansion around the normal. */
static double figures_student(double freedom)
{
	const double z = 1.959964, z2 = z * z, v = freedom;

	if (freedom < 3)
		return freedom < 2 ? 12.71 : 4.303;
	return z * (1 + (z2 + 1) / (4 * v) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * v * v) +
		    (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * v * v * v));
}

struct noise_mean noise_mean(const double *values, u32 count)
{
	struct noise_mean result = { .windows = count };
	double squares = 0;
	u32 i;

	for (i = 0; i < count; i++)
		result.mean += values[i] / count;
	for (i = 0; i < count; i++)
		squares += (values[i] - result.mean) * (values[i] - result.mean);
	if (count > 1)
		result.error = figures_student(count - 1) * sqrt(squares / (count - 1) / count);
	return result;
}

/* The square of the standard error. */
static double figures_variance(const struct noise_mean *m)
{
	const double error = m->windows > 1 ? m->error / figures_student(m->windows - 1) : 0;

	return error * error;
}

struct noise_mean noise_mean_difference(const struct noise_mean *a, const struct noise_mean *b)
{
	const double x = figures_variance(a), y = figures_variance(b), both = x + y;
	struct noise_mean result = { .mean = b->mean - a->mean };
	double freedom = 1e9;

	if (a->windows > 1 && b->windows > 1 && both > 0)
		freedom = both * both / (x * x / (a->windows - 1) + y * y / (b->windows - 1));
	result.windows = a->windows < b->windows ? a->windows : b->windows;
	result.error = figures_student(freedom) * sqrt(both);
	return result;
}

/* ---- a capture ---------------------------------------------------------------------------- */

/* From the first to the last moment. Longer than the watched time if there were pauses. */
static double span_of(const struct coll_noise_cpu *cpu, const struct coll_noise_event *event)
{
	const struct coll_noise_event *last = cpu->events ? &event[cpu->events - 1] : NULL;
	const u64 end = last ? last->start + last->duration : 0;

	return end > cpu->first + cpu->watched ? end - cpu->first : cpu->watched;
}

/* The share of each window of one CPU that was taken; long events are split between windows. */
static void add_windows(const struct coll_noise_cpu *cpu, const struct coll_noise_event *event,
			double *share)
{
	const double window = span_of(cpu, event) / NOISE_WINDOWS;
	const double watched = (double)cpu->watched / NOISE_WINDOWS;
	u64 i;

	for (i = 0; i < cpu->events && watched > 0; i++) {
		double from = (double)(event[i].start - cpu->first);
		const double end = from + event[i].duration;
		u32 w = from < 0 ? 0 : from / window;

		for (; w < NOISE_WINDOWS && from < end; w++) {
			const double edge = (w + 1) * window < end ? (w + 1) * window : end;

			share[w] += (edge - from) / watched;
			from = edge;
		}
	}
}

/* Adds one CPU's events to the durations, gaps and buckets of all. */
static void add_cpu(const struct coll_noise_cpu *cpu, const struct coll_noise_event *event,
		    struct noise_summary *summary, u64 *length, u64 *gap)
{
	u64 i;

	for (i = 0; i < cpu->events; i++) {
		struct noise_bucket *bucket = &summary->bucket[noise_bucket(event[i].duration)];

		bucket->count++;
		bucket->total += event[i].duration;
		length[summary->length.count++] = event[i].duration;
		if (i)
			gap[summary->gap.count++] = event[i].start - event[i - 1].start;
	}
	summary->watched += cpu->watched;
	summary->lost += cpu->lost;
	summary->loop = summary->loop > cpu->loop / 1e3 ? summary->loop : cpu->loop / 1e3;
}

int noise_summary(const struct node_capture *capture, u32 cpu, struct noise_summary *summary)
{
	const u32 first = cpu == NOISE_ALL ? 0 : cpu;
	const u32 end = cpu == NOISE_ALL ? capture->head.cpus : cpu + 1;
	double share[NOISE_WINDOWS] = { 0 };
	u64 *length = calloc(capture->head.events + 1, sizeof(*length));
	u64 *gap = calloc(capture->head.events + 1, sizeof(*gap));
	u32 i;

	*summary = (struct noise_summary){ .cpu = cpu };
	if (!length || !gap) {
		free(length);
		free(gap);
		return -ENOMEM;
	}
	for (i = first; i < end; i++) {
		const struct coll_noise_event *events = node_capture_events(capture, i);

		add_cpu(&capture->cpu[i], events, summary, length, gap);
		add_windows(&capture->cpu[i], events, share);
	}
	if (cpu != NOISE_ALL)
		summary->cpu = capture->cpu[cpu].cpu;
	for (i = 0; i < NOISE_WINDOWS; i++)
		share[i] /= end - first ? end - first : 1;
	summary->window = noise_mean(share, NOISE_WINDOWS);
	summary->length = noise_figures(length, summary->length.count);
	summary->gap = noise_figures(gap, summary->gap.count);
	if (summary->watched) {
		summary->share = (double)summary->length.total / summary->watched;
		summary->rate = summary->length.count * 1e9 / summary->watched;
	}
	free(length);
	free(gap);
	return 0;
}

/* ---- distributions ------------------------------------------------------ */

/* Kolmogorov's distribution with Stephens' correction for `size` values. */
static double ks_chance(double distance, double size)
{
	const double root = sqrt(size), x = (root + 0.12 + 0.11 / root) * distance;
	double sum = 0, sign = 1;
	int k;

	if (x < 0.2)
		return 1;
	for (k = 1; k < 100; k++, sign = -sign)
		sum += sign * exp(-2 * k * k * x * x);
	return sum * 2 > 1 ? 1 : sum * 2 < 0 ? 0 : sum * 2;
}

double noise_ks(const u64 *a, u64 a_count, const u64 *b, u64 b_count, double *chance)
{
	double most = 0;
	u64 i = 0, j = 0;

	*chance = 1;
	if (!a_count || !b_count)
		return 0;
	while (i < a_count && j < b_count) {
		const u64 value = a[i] < b[j] ? a[i] : b[j];
		double distance;

		while (i < a_count && a[i] == value)
			i++;
		while (j < b_count && b[j] == value)
			j++;
		distance = fabs((double)i / a_count - (double)j / b_count);
		most = distance > most ? distance : most;
	}
	*chance = ks_chance(most, (double)a_count * b_count / (a_count + b_count));
	return most;
}

double noise_ks_exponential(const u64 *sorted, u64 count, double mean, double *chance)
{
	double most = 0;
	u64 i;

	*chance = 1;
	for (i = 0; i < count; i++) {
		const double expected = 1 - exp(-(double)sorted[i] / mean);
		const double above = (i + 1.0) / count - expected,
			     below = expected - (double)i / count;

		most = above > most ? above : most;
		most = below > most ? below : most;
	}
	if (count)
		*chance = ks_chance(most, count);
	return most;
}
