/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The pages of users' ranks on this node, for a report. What it reads is made by users: how many pages, and
 * for how long it searches, is bounded. It is for a process of its own (child.h).
 */
#ifndef COLL_DAEMON_GATHER_H
#define COLL_DAEMON_GATHER_H

#include "libcoll/flight/find.h"
#include "question.h"

enum {
	REPORT_JOBS = 1024,		/* of a list ... */
	REPORT_JOBS_USER = 32,		/* ... of one user: it hides no other's */
	REPORT_RANKS = 1024,
};

/* A job with ranks here that have not left it. */
struct report_job {
	u32 user;
	u32 ranks, here;		/* in all; on this node */
	u64 opened;			/* by the first rank here */
	u64 calls;			/* of the rank here that has most */
	char job[64], program[32];
};

struct report_gathered {
	struct report_job *job;		/* of a list */
	u32 jobs;
	struct coll_flight_set set;	/* of one job */
	u32 user;			/* whose it is */
	bool several;			/* users have jobs of this name: the set is of one of them */
	bool more;			/* jobs, or ranks, than there is room or time for */
};

/*
 * `state`: colld's folder, where it leaves what it saw of ranks. 0; -ETIMEDOUT: of a job, there are too many
 * processes, or descriptors, to be read in time, and a list has `more`; -ENOMEM, -errno: no /proc.
 */
int report_gather(const struct report_question *question, const char *state,
		  struct report_gathered *gathered);
void report_gathered_free(struct report_gathered *gathered);

#endif
