/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The clocks of a job's hosts, aligned by the messages between them. */
#ifndef COLL_FLIGHT_CLOCKS_H
#define COLL_FLIGHT_CLOCKS_H

#include "cause.h"

/* A message that one rank has sent and another has got. */
struct coll_flight_message {
	uint32_t from, to;		/* indices of job->seen */
	uint64_t sent, got;
};

/* How to read a rank's clock as that of the first rank's host. */
struct coll_flight_clocks {
	int64_t *offset;		/* ns to add, per index of job->seen */
	double error;			/* s: no time is wrong by more, or -1: not known */
	double late;			/* s: by as much a receive was noted before its send */
};

/*
 * Hosts that exchanged messages both ways are aligned by the fastest ones: the error is half of
 * the two together. Others by CLOCK_REALTIME, whose error is not known.
 */
bool coll_flight_align(const struct coll_flight_job *job,
		       const struct coll_flight_message *messages, size_t count,
		       struct coll_flight_clocks *clocks);

/* Per index of job->seen the index of the first rank on its host. False: there is no memory. */
bool coll_flight_first_of_host(const struct coll_flight_job *job, uint32_t *first);

#endif
