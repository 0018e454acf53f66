/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What the noise of captures costs work, by order statistics alone: sim/stretch.h. */
#ifndef COLL_NOISE_COST_H
#define COLL_NOISE_COST_H

#include "node/capture.h"
#include "sim/stretch.h"

/*
 * The times that `work` ns of computing take on any CPU of the captures, after `wait` ns in which
 * noise costs nothing. Replaces `stretch`, but for `wanted`; free it in any case. -EINVAL: the noise
 * leaves no time to compute; -ENOMEM.
 */
int noise_stretch(const struct node_capture *capture, u32 captures, double work, double wait,
		  struct sim_stretch *stretch);

/* ns, the sum over the CPUs. */
double noise_watched(const struct node_capture *capture);

/* A grain of computing of the last of `ranks`, each of which begins at a random moment. */
struct noise_cost {
	u64 grain;		/* ns */
	u32 ranks;
	double slowdown;	/* mean time to the grain's own */
	bool beyond;		/* more ranks than the capture has grains: a lower bound */
};

enum { NOISE_COSTS = 9 };

/* For grains of 100 us, 1 ms and 10 ms, and 1, 1000 and 10^6 ranks each. As noise_stretch(). */
int noise_costs(const struct node_capture *capture, struct noise_cost cost[NOISE_COSTS]);

#endif
