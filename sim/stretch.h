/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * How long work takes under recorded noise, and the maximum over N ranks: order statistics,
 * exact except that the rests of events are cut into pieces. There is no schedule and no
 * virtual time. docs/guide/predict.md explains its use.
 */
#ifndef COLL_SIM_STRETCH_H
#define COLL_SIM_STRETCH_H

#include "core/port.h"
#include "uapi/coll_noise.h"

/* A distribution of times, in ns: steps of a weight each. All zero: none yet. */
struct sim_stretch {
	struct stretch_step {
		double time, weight;
	} *step;
	u64 steps, capacity;
	u32 wanted;		/* about so many steps for each recording; 0: 2^18 */
};

/*
 * Adds what `work` ns take that begin anywhere in a recording of `watched` ns,
 * which is followed by itself, after `wait` ns in which events cost nothing: with
 * INFINITY the work may begin anywhere inside an event, with 0 never. Events in
 * order of start; those that overlap are merged. 0, -ENOMEM, or -EINVAL if events leave no time or lie outside.
 */
int stretch_add(struct sim_stretch *stretch, const struct coll_noise_span *event, u32 events,
		u64 watched, double work, double wait);
/* After the last of them. */
void stretch_finish(struct sim_stretch *stretch);
void stretch_free(struct sim_stretch *stretch);

/* Mean of the longest of `ranks`, each by itself; and the time it stays below with `share`. */
double stretch_mean(const struct sim_stretch *stretch, double ranks);
double stretch_quantile(const struct sim_stretch *stretch, double ranks, double share);

#endif
