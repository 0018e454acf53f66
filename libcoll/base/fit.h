/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A message's time as a line over its bytes, from samples of which noise has made many too long
 * and a few too short. Pure: no clock, no memory of its own.
 *
 * Of each octave of sizes the sample at the lower quartile counts, so three quarters of an octave
 * may be late. The slope is the median of the slopes between those points, each weighted with its
 * distance in bytes (Theil and Sen, weighted as by Sievers), so an octave that is wrong as a whole
 * does no harm either; the base is what it leaves of the shortest octave.
 */
#ifndef COLL_FIT_H
#define COLL_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FIT_SAMPLES_MIN = 4,	/* fewer say nothing ... */
	FIT_OCTAVE_MIN = 3,	/* ... of an octave: none of them is known to be good */
};

struct coll_fit_sample {
	double bytes, seconds;
};

struct coll_fit_line {
	double base;	/* seconds of no bytes */
	double slope;	/* seconds a byte */
};

/*
 * Sorts the samples. A part of *line that they do not determine stays as it is: both if there are
 * too few, the slope if all are of one octave, or if it would leave the shortest messages no time.
 * Returns whether the base is of the samples.
 */
bool coll_fit_line(struct coll_fit_sample *samples, uint32_t count, struct coll_fit_line *line);

/* The least of the octaves' times, which no base exceeds; sorts the samples. 0: no octave has enough. */
double coll_fit_least(struct coll_fit_sample *samples, uint32_t count);

/* Whether the base is most of the shortest samples' time: else they hardly tell it. */
bool coll_fit_tells_base(const struct coll_fit_sample *samples, uint32_t count, const struct coll_fit_line *line);
/* ... and bytes are most of the longest ones'. */
bool coll_fit_tells_slope(const struct coll_fit_sample *samples, uint32_t count, const struct coll_fit_line *line);

/* The lower quartile, and the lower median. They sort the values; there must be one. */
double coll_fit_quartile(double *values, uint32_t count);
double coll_fit_median(double *values, uint32_t count);

#endif
