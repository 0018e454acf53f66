/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A strict reader of GOAL programs, the input of LogGOPSim, and what they cost.
 */
#ifndef TESTS_GOAL_H
#define TESTS_GOAL_H

#include <stdbool.h>

#include "core/schedule.h"

/* In nanoseconds: LogGOPSim's L, o and G; its g and O are 0. */
struct goal_costs {
	u64 latency, overhead, byte;
};

struct goal_outcome {
	u64 finish;		/* of the longest path */
	u32 line;		/* what is wrong, and where; 0: with the whole */
	char why[96];
};

/*
 * Whether LogGOPSim takes the program and runs it to its end: every line as
 * its grammar wants it and without indentation (which it cannot skip), ranks
 * and labels in order, ops that depend on earlier ones only, each message with
 * one send and one receive that agree in size and have a tag of their own,
 * no cycle. outcome->finish is then when the last op is done if ops wait for
 * each other but never for a rank's processor.
 */
bool goal_runs(const char *text, const struct goal_costs *costs, struct goal_outcome *outcome);

#endif
