/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * GOAL programs, the text that LogGOPSim's txt2bin takes, as schedules.
 *
 *	num_ranks 2
 *	rank 0 {
 *		l1: calc 500
 *		l2: send 8b to 1 tag 7
 *		l2 requires l1
 *	}
 *	rank 1 {
 *		l1: recv 8b from 0 tag 7
 *	}
 *
 * `a irequires b` (after b has started) becomes: after what b requires. Messages with
 * the same ranks and tag are matched in the order of the file. Refused with an error:
 * receives from any rank or of any tag, a second CPU, an op that requires itself by way
 * of others. A calc is computing of so many units (struct sim_costs).
 */
#ifndef COLL_SIM_GOAL_H
#define COLL_SIM_GOAL_H

#include "core/schedule.h"

/*
 * `text` needs no zero at its end; errors name it `name`. *schedule is an array of *ranks
 * schedules; free them and the array. 0, -EINVAL, -E2BIG, -ENOMEM; `why` has the line.
 */
int goal_read(const char *name, const char *text, size_t bytes, struct coll_schedule ***schedule,
	      u32 *ranks, char *why, size_t why_bytes);

#endif
