/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The measuring loop: one thread on one CPU reads the clock. If two readings are too far apart,
 * something else had the CPU. An iteration's duration limits the resolution.
 */
#ifndef COLL_NOISE_LOOP_H
#define COLL_NOISE_LOOP_H

#include "clock.h"

/* From one reading to the next, in ticks. */
struct noise_gap {
	u64 begin, end;
};

/*
 * A stall of the loop itself: `duration` ticks, at the first iteration after `start`. A perfect
 * injector would do the same. `done` gets its actual begin and end.
 */
struct noise_stalls {
	const struct noise_gap *plan;	/* begin and length, in ticks, in order */
	struct noise_gap *done;
	u64 count, index;
};

struct noise_loop {
	/* parameters */
	bool counter;		/* of the clock */
	u64 threshold;		/* gaps longer than this are kept */
	u64 limit;		/* a longer gap stops all loops; 0: none does */
	u64 limit_total;	/* so does a longer sum of gaps in one call */
	struct noise_gap *gap;
	u64 capacity;
	const bool *stop;	/* the loop ends when it is set */
	struct noise_stalls *stalls;	/* or NULL */

	/* results; may be read while it runs */
	u64 gaps, lost;		/* stored, and lost for lack of capacity */
	u64 lost_ticks;
	u64 watched, iterations;
	bool passed;		/* a limit */
};

/* Watches until the clock shows `end`. Repeated calls add up. */
void noise_loop_run(struct noise_loop *loop, u64 end);

/* Duration of an iteration, in ticks: median and minimum of many. */
u64 noise_loop_iteration(bool counter, u64 *least);

#endif
