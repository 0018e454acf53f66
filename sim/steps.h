/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Steps in virtual time: each rank computes for a grain, then all call the collective. Noise
 * continues from step to step, so a rank that noise delays begins the next step late. Steps
 * without noise are counted, not simulated.
 */
#ifndef COLL_SIM_STEPS_H
#define COLL_SIM_STEPS_H

#include "sim.h"

struct sim_steps {
	double grain;		/* seconds of computing, more under noise */
	/*
	 * Seconds after the last rank is done until all begin again, in which noise costs
	 * nothing; 0: each rank goes on when it is done itself.
	 */
	double idle;
	bool offloaded;		/* the collective is not held up by the ranks' noise */
	u32 struck;		/* ends after this many steps with noise, */
	u64 runs;		/* or this many simulated steps; at least 1 */
};

/* Number of steps that took this time. */
struct sim_step {
	double seconds;
	u64 times;
};

/*
 * step[] has 1 + `struck` entries: first those without noise, if there were any, then
 * the others one by one; *count says how many. Errors as of sim_run().
 */
int sim_steps(struct sim *sim, const struct sim_model *model, u64 seed,
	      const struct sim_steps *steps, struct sim_step *step, u32 *count);

#endif
