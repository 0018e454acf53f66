/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Why a job does not go on, from the pages of its ranks: who waits for whom, and the first
 * cause. A rank that is stopped, dead or elsewhere is a cause, one that waits is not; what it
 * waits for is looked at instead.
 */
#ifndef COLL_FLIGHT_CAUSE_H
#define COLL_FLIGHT_CAUSE_H

#include "find.h"

enum coll_flight_why {
	COLL_FLIGHT_NO_CAUSE,		/* nobody waits, or no page says for what */
	COLL_FLIGHT_DIED,
	COLL_FLIGHT_STOPPED,		/* by a signal */
	COLL_FLIGHT_HELD,		/* by a debugger */
	COLL_FLIGHT_IN_KERNEL,		/* it sleeps there, and no signal wakes it */
	COLL_FLIGHT_NO_CPU,		/* its kernel thread is ready, and does not run */
	COLL_FLIGHT_MISMATCH,
	COLL_FLIGHT_IN_FUNCTION,	/* in the application's reduction */
	COLL_FLIGHT_MANAGER,		/* of circuits */
	COLL_FLIGHT_OUTSIDE,		/* of the library: it has not called */
	COLL_FLIGHT_NO_PROGRESS,	/* outside, and its run needs its calls */
	COLL_FLIGHT_DEADLOCK,
	COLL_FLIGHT_LOST_PATH,
	COLL_FLIGHT_FULL_QUEUE,
	COLL_FLIGHT_JOINING,
	COLL_FLIGHT_ELSEWHERE,		/* no page of the rank is here */
	COLL_FLIGHT_IN_FLIGHT,		/* a message that was sent has not come */
	COLL_FLIGHT_SLOW,		/* it called last, again and again */
	COLL_FLIGHT_WHYS,
};

extern const char *const coll_flight_why_names[COLL_FLIGHT_WHYS];

enum { COLL_FLIGHT_CHAIN_MAX = 16, COLL_FLIGHT_TEXT = 512 };

struct coll_flight_cause {
	enum coll_flight_why why;
	uint32_t rank;			/* of the job; COLL_FLIGHT_NO_RANK: none */
	uint32_t chain[COLL_FLIGHT_CHAIN_MAX];	/* from the lowest waiting rank to it */
	uint32_t length;
	bool awaited;			/* some rank waits now */
	bool alone;			/* nobody waits for the rank: it is a fact, and no cause yet ... */
	double seconds;			/* ... for so long */
	char text[COLL_FLIGHT_TEXT];	/* one sentence */
};

/* A rank waits for another. */
struct coll_flight_edge {
	const struct coll_flight_seen *seen;	/* who waits */
	struct coll_flight_wait wait;		/* for what: a copy, since runs in the kernel have none */
	const struct coll_flight_run *run;
};

/* The ranks of one job. `whole`: no rank is on a node that was not asked. */
struct coll_flight_job {
	struct coll_flight_seen *const *seen;
	size_t count;
};

/* The page of a rank, or NULL. */
const struct coll_flight_seen *coll_flight_of(const struct coll_flight_job *job, uint32_t rank);

/* Calls for each valid wait of this rank. */
void coll_flight_waits(const struct coll_flight_seen *seen,
		       void (*each)(const struct coll_flight_edge *edge, void *argument),
		       void *argument);

/* The run that a rank has been in for longest, or NULL. */
const struct coll_flight_run *coll_flight_oldest(const struct coll_flight_seen *seen);

/* Whether a function of the application runs in its call: a reduction. */
bool coll_flight_in_function(const struct coll_flight_seen *seen);

/* Whether it waits in a call of the library. *since: since when it is there, or is not. */
bool coll_flight_inside(const struct coll_flight_seen *seen, uint64_t *since);

/* "allreduce (butterfly) no. 17 of world" */
const char *coll_flight_run_text(const struct coll_flight_seen *seen,
				 const struct coll_flight_run *run, char *text, size_t bytes);

void coll_flight_find_cause(const struct coll_flight_job *job, struct coll_flight_cause *cause);

#endif
