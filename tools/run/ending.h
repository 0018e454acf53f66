/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The report of a job that coll run starts (--report): also of ranks that it has to end. */
#ifndef COLL_RUN_ENDING_H
#define COLL_RUN_ENDING_H

#include <sys/stat.h>

#include "libcoll/flight/find.h"

struct run_ending {
	char *file;			/* the report's, absolute: from malloc; NULL: none is wanted */
	struct stat before;		/* of what was there; st_ino 0: nothing */
	struct coll_flight_set seen;	/* ranks that lived when the launcher began to end them */
};

/*
 * What the ranks do meanwhile, and who has their cores (node/observe), is written into the folder
 * of the report as the job goes on, since the ranks may make the report. An agent does the same.
 */
struct run_looking {
	const char *file;		/* the report's */
	struct observer *observer;	/* NULL: not yet */
	uint64_t write_at;
};

/* As launch.looks. */
uint64_t run_looking_on(void *looking, const char *job);
void run_looking_close(struct run_looking *looking);

/* "COLL_REPORT=FILE" for the ranks, from malloc. NULL: stderr has the reason. */
char *run_ending_open(struct run_ending *ending, const char *file);
/* As launch.ends: the ranks make the report themselves, or it is made of what is there. */
void run_ending_told(void *ending, const char *job, bool over);
void run_ending_close(struct run_ending *ending);

#endif
