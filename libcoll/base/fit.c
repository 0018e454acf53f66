// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "core/port.h"
#include "fit.h"

enum {
	OCTAVES = 64,
	SLOPES = OCTAVES * (OCTAVES - 1) / 2,
};

/* A slope and its weight. */
struct slope {
	double value, weight;
};

static int fit_compare(double a, double b)
{
	return (a > b) - (a < b);
}

static int by_bytes(const void *a, const void *b)
{
	const struct coll_fit_sample *x = a, *y = b;

	return fit_compare(x->bytes, y->bytes);
}

/* Equal ones by bytes: each rank's qsort is to have the same order. */
static int by_seconds(const void *a, const void *b)
{
	const struct coll_fit_sample *x = a, *y = b;
	const int order = fit_compare(x->seconds, y->seconds);

	return order ? order : fit_compare(x->bytes, y->bytes);
}

static int by_value(const void *a, const void *b)
{
	const struct slope *x = a, *y = b;

	return fit_compare(x->value, y->value);
}

static int by_number(const void *a, const void *b)
{
	return fit_compare(*(const double *)a, *(const double *)b);
}

double coll_fit_quartile(double *values, uint32_t count)
{
	coll_assert(count);
	qsort(values, count, sizeof(*values), by_number);
	return values[(count - 1) / 4];
}

double coll_fit_median(double *values, uint32_t count)
{
	coll_assert(count);
	qsort(values, count, sizeof(*values), by_number);
	return values[(count - 1) / 2];
}

/* One sample for each octave that has enough, the shortest first. Sorts all of them. */
static uint32_t fit_points(struct coll_fit_sample *samples, uint32_t count,
			   struct coll_fit_sample *point)
{
	uint32_t points = 0, first, next;

	qsort(samples, count, sizeof(*samples), by_bytes);
	for (first = 0; first < count && points < OCTAVES; first = next) {
		for (next = first + 1; next < count; next++)
			if (samples[next].bytes >= 2 * samples[first].bytes &&
			    samples[next].bytes > samples[first].bytes)
				break;
		if (next - first < FIT_OCTAVE_MIN)
			continue;
		qsort(samples + first, next - first, sizeof(*samples), by_seconds);
		point[points++] = samples[first + (next - first - 1) / 4];
	}
	return points;
}

static double weighted_median(struct slope *slope, uint32_t count)
{
	double all = 0, below = 0;
	uint32_t i;

	qsort(slope, count, sizeof(*slope), by_value);
	for (i = 0; i < count; i++)
		all += slope[i].weight;
	for (i = 0; i + 1 < count; i++) {
		below += slope[i].weight;
		if (below >= all / 2)
			break;
	}
	return slope[i].value;
}

/* 0: the points are of one octave, or time does not grow with bytes. */
static double fit_slope(const struct coll_fit_sample *point, uint32_t points)
{
	struct slope slope[SLOPES];
	uint32_t count = 0, i, j;
	double median;

	for (i = 0; i < points; i++)
		for (j = 0; j < i; j++) {
			const double apart = point[i].bytes - point[j].bytes;

			slope[count++] = (struct slope){
				.value = (point[i].seconds - point[j].seconds) / apart,
				.weight = apart,
			};
		}
	median = count ? weighted_median(slope, count) : 0;
	return median > 0 ? median : 0;
}

/* What a slope leaves of the shortest messages; not positive: that cannot be the slope. */
static double fit_base(const struct coll_fit_sample *shortest, double slope)
{
	return shortest->seconds - slope * shortest->bytes;
}

bool coll_fit_line(struct coll_fit_sample *samples, uint32_t count, struct coll_fit_line *line)
{
	struct coll_fit_sample point[OCTAVES];
	const uint32_t points = count < FIT_SAMPLES_MIN ? 0 : fit_points(samples, count, point);
	double slope;

	if (!points)
		return false;
	slope = fit_slope(point, points);
	if (slope <= 0 || fit_base(point, slope) <= 0)
		slope = line->slope;
	if (fit_base(point, slope) <= 0)
		return false;
	line->slope = slope;
	line->base = fit_base(point, slope);
	return true;
}

double coll_fit_least(struct coll_fit_sample *samples, uint32_t count)
{
	struct coll_fit_sample point[OCTAVES];
	const uint32_t points = count < FIT_SAMPLES_MIN ? 0 : fit_points(samples, count, point);
	double least = points ? point[0].seconds : 0;
	uint32_t i;

	for (i = 1; i < points; i++)
		if (point[i].seconds < least)
			least = point[i].seconds;
	return least;
}

bool coll_fit_tells_base(const struct coll_fit_sample *samples, uint32_t count, const struct coll_fit_line *line)
{
	double shortest = samples[0].bytes;
	uint32_t i;

	for (i = 1; i < count; i++)
		if (samples[i].bytes < shortest)
			shortest = samples[i].bytes;
	return line->base >= line->slope * shortest;
}

bool coll_fit_tells_slope(const struct coll_fit_sample *samples, uint32_t count, const struct coll_fit_line *line)
{
	double longest = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		if (samples[i].bytes > longest)
			longest = samples[i].bytes;
	return line->slope * longest >= line->base;
}
