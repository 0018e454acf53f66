/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Simulation for collnoise predict: steps of N ranks in virtual time under the noise of captures.
 * For N up to a limit that takes seconds.
 */
#ifndef COLL_NOISE_STEPS_H
#define COLL_NOISE_STEPS_H

#include "sim/steps.h"
#include "node/capture.h"

enum { NOISE_STEPS_RANKS_MAX = 128 };

/* Measured times of the collective without this noise, seconds, ascending; none: NULL. */
struct noise_base {
	double *sample;
	u64 samples;
	double mean, median;
};

/* Reads a file with microseconds on each line. Errors are reported on stderr. 0 or an error. */
int noise_base_read(const char *path, struct noise_base *base);

/*
 * Captures as noise of a rank: one recording after the other, entered at a random place, or by all
 * ranks at the same place. -E2BIG: too many events, or too much noise, for a model.
 */
int noise_steps_noise(const struct node_capture *capture, u32 captures, bool together,
		      struct sim_noise *noise, struct coll_noise_span **table);

struct noise_steps {
	struct sim_job job;
	struct sim_costs costs;
	struct sim_noise noise;
	struct sim_steps steps;		/* `struck` and `runs` are set here */
	const struct noise_base *base;	/* adds its times less their median; or NULL */
};

/* Scales all costs so that the job takes `ideal` seconds without noise. */
int noise_steps_scale(struct noise_steps *steps, double ideal);

/* Seconds of a step: the mean and the 99th percentile. */
int noise_steps_run(const struct noise_steps *steps, double *mean, double *p99);

#endif
