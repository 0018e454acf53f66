/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * collnoise predict by the schedules themselves: steps of N ranks in virtual time,
 * under the noise of captures. For as many ranks as that takes seconds.
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

/* A file with microseconds on each line. Says what is wrong with it; 0 or an error. */
int noise_base_read(const char *path, struct noise_base *base);

/*
 * Captures as noise of a rank: one recording after the other, entered anywhere, or by
 * all ranks at the same place. -E2BIG: more events, or more noise, than a model may have.
 */
int noise_steps_noise(const struct noise_capture *capture, u32 captures, bool together,
		      struct sim_noise *noise, struct coll_noise_span **table);

struct noise_steps {
	struct sim_job job;
	struct sim_costs costs;
	struct sim_noise noise;
	struct sim_steps steps;		/* `struck` and `runs` are set here */
	const struct noise_base *base;	/* its times, less their median, come on top; or NULL */
};

/* Scales all costs, so that the job takes `ideal` seconds without noise. */
int noise_steps_scale(struct noise_steps *steps, double ideal);

/* Seconds of a step: the mean, and what 99 of 100 stay below. */
int noise_steps_run(const struct noise_steps *steps, double *mean, double *p99);

#endif
