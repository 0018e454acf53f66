/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Accuracy of the measuring loop and the injector, each tested by the other on one CPU.
 *
 * The detector: the loop stalls itself, so the events are known to the nanosecond, and measures
 * these stalls. The injector: another thread on the same CPU injects models, and the loop measures
 * them.
 */
#ifndef COLL_NOISE_CALIBRATION_H
#define COLL_NOISE_CALIBRATION_H

#include "core/noise/text.h"
#include "figures.h"
#include "injector.h"
#include "loop.h"

enum { NOISE_LENGTHS = 17, NOISE_MODELS = 8 };

struct noise_detector_row {
	u64 length;		/* requested, ns */
	u64 injected, found;
	/*
	 * Gaps of about that length: all, and those that were injected; expected without
	 * injection.
	 */
	u64 seen, matched;
	double background;
	struct noise_quantiles stall;	/* the stall's excess over the request, ns */
	struct noise_quantiles error;	/* the measured excess over the stall, ns */
};

struct noise_model_row {
	const char *text;
	struct coll_noise_said said;
	u64 fingerprint;
	u64 asked, injected, found, lost;
	double asked_share, injected_share;
	double seen_share;	/* in gaps that match injected events, without disturbances */
	double seen_error;	/* 95 % confidence, from the variation of events */
	double total_share;	/* in all gaps */
	u64 cost;		/* ns; of an event beyond its length */
	u64 disturbed;		/* found, but disturbed by another task */
	struct noise_quantiles late, length;	/* of the injector, ns */
	struct noise_quantiles error;	/* measured less requested length, ns */
	double ks_plan, ks_done;	/* probabilities; Poisson only, else negative */
};

struct noise_calibration {
	/* parameters */
	u32 cpu;
	u64 duration;			/* ns, of the whole calibration */
	u64 threshold;			/* ns */
	struct noise_policy measure, inject;
	bool module;			/* for injection by the module: */
	enum coll_noise_context context;
	u32 models;
	struct noise_model_row model[NOISE_MODELS];
	void (*progress)(const char *what);	/* or NULL */

	/* results */
	struct noise_clock clock;
	u64 iteration, least;		/* ticks */
	double background_share, background_rate;
	double background[NOISE_LENGTHS];	/* gaps per second of about that length */
	u64 cost;			/* of the current model */
	struct noise_detector_row detector[NOISE_LENGTHS];
};

/* Errors are reported on stderr. 0 or -errno. Binds the calling thread and sets its policy. */
int noise_calibrate_run(struct noise_calibration *calibration, const char *command);

#endif
