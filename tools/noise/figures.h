/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Statistics of events, exact: each one counts, in ns. */
#ifndef COLL_NOISE_FIGURES_H
#define COLL_NOISE_FIGURES_H

#include "node/capture.h"

/* Of durations, or of the times between starts. All 0 without events. */
struct noise_figures {
	u64 count, total, min, max;
	double mean, deviation;
	u64 p20, p50, p80, p90, p99, p999;
	u64 mad;		/* median distance from the median */
};

/* Sorts `values`. */
struct noise_figures noise_figures(u64 *values, u64 count);

/* The nearest rank: the least value with at least this share of all values at or below it. */
u64 noise_percentile(const u64 *sorted, u64 count, double share);
void noise_sort(u64 *values, u64 count);

/* 1, 2 and 5 times powers of ten, from 10 ns: bucket k holds edge k to edge k + 1. */
enum { NOISE_BUCKETS = 31 };
u64 noise_bucket_edge(u32 bucket);
u32 noise_bucket(u64 duration);

struct noise_bucket {
	u64 count, total;
};

/* A mean and the half width of its 95 % confidence interval, from windows of equal length. */
struct noise_mean {
	double mean, error;
	u32 windows;
};
struct noise_mean noise_mean(const double *values, u32 count);
/* b - a by Welch's test: significant if |mean| > error. */
struct noise_mean noise_mean_difference(const struct noise_mean *a, const struct noise_mean *b);

/* Quantiles of values that may be negative; sorts them. All 0 without values. */
struct noise_quantiles {
	u64 count;
	double min, p05, p50, p95, p99, max;
};
struct noise_quantiles noise_quantiles(double *values, u64 count);

enum { NOISE_WINDOWS = 50 };

/* One CPU of a capture, or all together. */
struct noise_summary {
	u32 cpu;
	u64 watched;			/* ns, sum over the CPUs */
	u64 lost;
	double loop;			/* ns per iteration; maximum over the CPUs */
	double share, rate;		/* of time taken; events per second and CPU */
	struct noise_figures length, gap;
	struct noise_bucket bucket[NOISE_BUCKETS];
	struct noise_mean window;	/* of the share */
};

/* `cpu` is an index, or NOISE_ALL. 0 or -ENOMEM. */
#define NOISE_ALL UINT32_MAX
int noise_summary(const struct node_capture *capture, u32 cpu, struct noise_summary *summary);

/*
 * Maximum distance between two samples' distributions, and the probability of that distance by
 * chance (Kolmogorov, Smirnov). Both sorted.
 */
double noise_ks(const u64 *a, u64 a_count, const u64 *b, u64 b_count, double *chance);
/* The same for one sample and an exponential distribution. */
double noise_ks_exponential(const u64 *sorted, u64 count, double mean, double *chance);

#endif
