// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Mean and percentiles of samples. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static int figures_ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The nearest rank: the least sample with at least this share of all samples at or below it. */
static double figures_percentile(const double *sorted, size_t count, double share)
{
	size_t index = ceil(share * count);

	return sorted[index ? index - 1 : 0];
}

struct bench_figures bench_figures(double *samples, size_t count)
{
	double sum = 0;
	size_t i;

	if (!count)
		return (struct bench_figures){ 0 };
	qsort(samples, count, sizeof(*samples), figures_ascending);
	for (i = 0; i < count; i++)
		sum += samples[i];
	return (struct bench_figures){
		.mean = sum / count,
		.p50 = figures_percentile(samples, count, 0.5),
		.p90 = figures_percentile(samples, count, 0.9),
		.p99 = figures_percentile(samples, count, 0.99),
		.p999 = figures_percentile(samples, count, 0.999),
		.max = samples[count - 1],
		.min = samples[0],
	};
}
