/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * How far the measuring loop and the injector are to be trusted, found by one
 * against the other on one CPU.
 *
 * The detector: the loop takes time from itself, so that what is to be found is
 * known to the nanosecond, and looks for it. The injector: noise after models,
 * from another thread on the same CPU, is looked for by the loop.
 */
#ifndef COLL_NOISE_CALIBRATION_H
#define COLL_NOISE_CALIBRATION_H

#include "core/noise/text.h"
#include "figures.h"
#include "injector.h"
#include "loop.h"

enum { NOISE_LENGTHS = 17, NOISE_MODELS = 8 };

struct noise_detector_row {
	u64 length;		/* asked, ns */
	u64 injected, found;
	/* Gaps about that long, all and those that were injected; expected without any. */
	u64 seen, matched;
	double background;
	struct noise_quantiles stall;	/* how much longer than asked it was, ns */
	struct noise_quantiles error;	/* how much longer than it was it looked, ns */
};

struct noise_model_row {
	const char *text;
	struct coll_noise_said said;
	u64 fingerprint;
	u64 asked, injected, found, lost;
	double asked_share, injected_share;
	double seen_share;	/* of gaps that were found, without what disturbed them */
	double seen_error;	/* 95 % of chance, from how much the events differ */
	double total_share;	/* of all gaps */
	u64 cost;		/* ns; an event's own, beyond its length */
	u64 disturbed;		/* found, but somebody else came too */
	struct noise_quantiles late, length;	/* of the injector, ns */
	struct noise_quantiles error;	/* seen, against asked, ns */
	double ks_plan, ks_done;	/* chances; Poisson only, else negative */
};

struct noise_calibration {
	/* what is wanted */
	u32 cpu;
	u64 duration;			/* ns, of everything */
	u64 threshold;			/* ns */
	struct noise_policy measure, inject;
	bool module;			/* it injects: */
	enum coll_noise_context context;
	u32 models;
	struct noise_model_row model[NOISE_MODELS];
	void (*progress)(const char *what);	/* or NULL */

	/* what came */
	struct noise_clock clock;
	u64 turn, least;		/* ticks */
	double background_share, background_rate;
	double background[NOISE_LENGTHS];	/* gaps a second about as long as each */
	u64 cost;			/* of the model under test */
	struct noise_detector_row detector[NOISE_LENGTHS];
};

/* What fails says so. 0 or -errno. The calling thread is bound and scheduled as wanted. */
int noise_calibrate_run(struct noise_calibration *calibration, const char *command);

#endif
