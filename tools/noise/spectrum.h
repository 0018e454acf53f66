/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What comes regularly: the power of the train of event starts over frequency,
 * and its peaks, each with the names of what is known to come that often.
 */
#ifndef COLL_NOISE_SPECTRUM_H
#define COLL_NOISE_SPECTRUM_H

#include "node/capture.h"

enum { NOISE_PEAKS = 12, NOISE_PEAK_NAME = 96 };

struct noise_peak {
	double hz;
	double power;		/* times that of the frequencies around it; 1 is nothing */
	u32 harmonics;		/* multiples that are peaks too */
	char name[NOISE_PEAK_NAME];	/* candidates, or empty */
};

struct noise_spectrum {
	double step;		/* Hz between points */
	u32 points;		/* power[k] is at k * step; [0] means nothing */
	double *power;
	double least;		/* peaks less than this may be chance */
	double longest;		/* s: the longest period that can be seen, a tenth of the span */
	u32 peaks;
	struct noise_peak peak[NOISE_PEAKS];	/* the strongest first */
};

/* All CPUs' spectra, added. 0 or -ENOMEM. */
int noise_spectrum(const struct noise_capture *capture, struct noise_spectrum *spectrum);
void noise_spectrum_free(struct noise_spectrum *spectrum);

#endif
