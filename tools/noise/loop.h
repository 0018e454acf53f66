/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The measuring loop: one thread on one CPU reads the clock, and where two
 * readings are too far apart somebody else had the CPU. What a turn of the loop
 * costs bounds what it can see.
 */
#ifndef COLL_NOISE_LOOP_H
#define COLL_NOISE_LOOP_H

#include "clock.h"

/* From one reading to the next, in ticks. */
struct noise_gap {
	u64 begin, end;
};

/*
 * Time that the loop takes from itself, `duration` ticks at the first turn after
 * `start`: what a perfect injector does. What it really took goes to `done`.
 */
struct noise_stalls {
	const struct noise_gap *plan;	/* begin and length, in ticks, in order */
	struct noise_gap *done;
	u64 count, index;
};

struct noise_loop {
	/* what is wanted */
	bool counter;		/* of the clock */
	u64 threshold;		/* gaps longer than this are kept */
	u64 limit;		/* a gap longer than this stops everybody; 0: none does */
	u64 limit_total;	/* so do gaps that add up to more than this in one call */
	struct noise_gap *gap;
	u64 room;
	const bool *stop;	/* set: the loop ends */
	struct noise_stalls *stalls;	/* or NULL */

	/* what came; may be looked at meanwhile */
	u64 gaps, lost;		/* kept, and for want of room not */
	u64 lost_ticks;
	u64 watched, turns;
	bool passed;		/* a limit */
};

/* Watches until the clock shows `end`. Again and again is fine: all adds up. */
void noise_loop_run(struct noise_loop *loop, u64 end);

/* What a turn usually costs, in ticks: the median and the least of many. Takes a moment. */
u64 noise_loop_turn(bool counter, u64 *least);

#endif
