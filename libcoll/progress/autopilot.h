/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What progress=auto measures of an application. */
#ifndef COLL_AUTOPILOT_H
#define COLL_AUTOPILOT_H

#include "libcoll/exec/run.h"

enum { AUTO_CALLS = 256 };

/* Measurements of a call, found by its key. Calls that share an entry err a little. */
struct coll_auto_call {
	uint64_t key;			/* of the latest call in this entry */
	uint64_t alone;			/* ns that it would take by itself, predicted */
	uint64_t lasted;		/* ns that its runs have taken, measured */
	uint64_t bytes;			/* of its larger buffer */
	bool seen;			/* runs of it: */
	uint64_t absence, outside;	/* ns of the application's absence: longest, total */
	uint32_t away;			/* of the latest runs, for long ones */
};

/* Measurements of the application; only its thread uses them. */
struct coll_autopilot {
	uint64_t called;		/* when it left the library */
	uint64_t absence, outside;	/* ns: longest absence and total while runs are in flight */
	uint32_t in_flight;		/* nonblocking runs */
	uint32_t agreed;		/* latest runs that prefer the application as owner */
	double idle;			/* cores, without what the library's thread uses */
	uint64_t looked, idle_ns;	/* when they were measured, and the counters then */
	struct coll_auto_call of[AUTO_CALLS];
};

#endif
