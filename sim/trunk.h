/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A trunk: a link that many ranks share. All its flows have the same bandwidth at their
 * ends, and share the trunk evenly where it is the bottleneck. An overloaded trunk loses
 * bandwidth: if x times its bandwidth is offered, it carries 1 / (1 + loss (x - 1)) of its
 * bandwidth.
 *
 * The bytes that each flow has carried since a common start are equal, so one number and a
 * heap suffice: O(log flows) for each event.
 */
#ifndef COLL_SIM_TRUNK_H
#define COLL_SIM_TRUNK_H

#include "sim.h"

struct sim_flow {
	double bytes;		/* to send; in the trunk: what flowed in each when it ends */
	sim_time start;
	u64 name;		/* the caller's; orders events of equal time */
};

struct sim_trunk {
	double end_rate;	/* bytes a picosecond at a flow's ends */
	double rate;		/* of all of it */
	double loss;
	sim_time now;
	double flowed;		/* carried by each flow */
	struct sim_flow *active, *coming;	/* heaps by bytes, and by start */
	u32 actives, comings, active_capacity, coming_capacity;
};

/* Seconds a byte takes at a flow's end, and on the trunk. */
void trunk_init(struct sim_trunk *trunk, double end, double byte, double loss);
void trunk_free(struct sim_trunk *trunk);

/* Not before trunk->now. -ENOMEM. */
int trunk_add(struct sim_trunk *trunk, struct sim_flow flow);

/* Whether a flow is in it, or will be. */
static inline bool trunk_flows(const struct sim_trunk *trunk)
{
	return trunk->actives || trunk->comings;
}

/* Time of the next begin or end of a flow; SIM_NEVER: none. */
sim_time trunk_next(const struct sim_trunk *trunk);

/* Executes it. Returns whether a flow has ended: *name, at trunk->now. */
bool trunk_step(struct sim_trunk *trunk, u64 *name);

#endif
