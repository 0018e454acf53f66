/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Who called last, again and again, though each time it came: the job goes on, slowly. */
#ifndef COLL_FLIGHT_LATE_H
#define COLL_FLIGHT_LATE_H

#include "cause.h"

struct coll_flight_late {
	uint32_t rank;			/* of the job */
	uint32_t calls;			/* that were looked at: of all groups, the latest */
	uint32_t last;			/* in how many of them it was the last to call */
	uint64_t late_ns;		/* how long after the median rank, in the median of these */
};

/*
 * Whether one rank was the last in three quarters of the latest calls, and by so much that neither
 * clocks nor chance explain it: 10 ms, or 100 ms between hosts, whose clocks differ. Looks at
 * events: at collectives that all ranks of their group have begun. Costs some 64 events a rank.
 */
bool coll_flight_find_late(const struct coll_flight_job *job, struct coll_flight_late *late);

#endif
