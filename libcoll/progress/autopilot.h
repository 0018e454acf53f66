/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What progress=auto has seen of an application, and what it chooses by. */
#ifndef COLL_AUTOPILOT_H
#define COLL_AUTOPILOT_H

#include "libcoll/exec/run.h"

enum { AUTO_CALLS = 256 };

/* What is known of a call, found by its key: who shares a place errs a little. */
struct coll_auto_call {
	uint64_t key;			/* of the latest here */
	uint64_t alone;			/* ns that it would take by itself, as predicted, */
	uint64_t lasted;		/* and that runs have lasted, as far as can be told */
	uint64_t bytes;			/* of its larger buffer */
	bool seen;			/* runs of it: */
	uint64_t absence, outside;	/* ns that the application stayed away meanwhile: at
					   most at a time, in all */
	uint32_t away;			/* of the latest so many, for long */
};

/* What is seen of the application, which alone touches it. */
struct coll_autopilot {
	uint64_t called;		/* when it left us last */
	uint64_t absence, outside;	/* the longest while something is in flight, and all */
	uint32_t in_flight;		/* nonblocking runs */
	uint32_t agreed;		/* runs of late that want its thread to be the owner */
	double idle;			/* cores, but for what its thread does there */
	uint64_t looked, idle_ns;	/* when, and what the counters said */
	struct coll_auto_call of[AUTO_CALLS];
};

#endif
