/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The rule by which a trial decides. */
#ifndef COLLMPI_VERDICT_H
#define COLLMPI_VERDICT_H

#include <stdbool.h>

enum { TRIAL_BLOCKS = 3 };	/* of each library */

static inline double verdict_min(double a, double b)
{
	return a < b ? a : b;
}

static inline double verdict_max(double a, double b)
{
	return a > b ? a : b;
}

static inline double verdict_median(const double times[TRIAL_BLOCKS])
{
	return verdict_max(verdict_min(times[0], times[1]),
			   verdict_min(verdict_max(times[0], times[1]), times[2]));
}

/* `a` took less time than `b`: by more than they scatter, and by 10 %. */
static inline bool verdict_faster(const double a[TRIAL_BLOCKS], const double b[TRIAL_BLOCKS])
{
	const double most = verdict_max(verdict_max(a[0], a[1]), a[2]);
	const double least = verdict_min(verdict_min(b[0], b[1]), b[2]);

	return most < least && verdict_median(a) < 0.9 * verdict_median(b);
}

#endif
