/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Periodic noise: the power of the event starts over frequency, and its peaks, each with known
 * sources of that frequency.
 */
#ifndef COLL_NOISE_SPECTRUM_H
#define COLL_NOISE_SPECTRUM_H

#include "node/capture.h"

enum { NOISE_PEAKS = 12, NOISE_PEAK_NAME = 96 };

struct noise_peak {
	double hz;
	double power;		/* relative to the frequencies around it; 1: no peak */
	u32 harmonics;		/* multiples that are peaks too */
	char name[NOISE_PEAK_NAME];	/* candidates, or empty */
};

struct noise_spectrum {
	double step;		/* Hz between points */
	u32 points;		/* power[k] is at k * step; [0] is unused */
	double *power;
	double least;		/* smaller peaks may be chance */
	double longest;		/* s: the longest visible period, a tenth of the span */
	u32 peaks;
	struct noise_peak peak[NOISE_PEAKS];	/* the strongest first */
};

/* The sum of all CPUs' spectra. 0 or -ENOMEM. */
int noise_spectrum(const struct node_capture *capture, struct noise_spectrum *spectrum);
void noise_spectrum_free(struct noise_spectrum *spectrum);

#endif
