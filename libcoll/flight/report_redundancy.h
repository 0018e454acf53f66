/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What redundant exchanges (T) would do in the job's calls, by the library's model. */
#ifndef COLL_FLIGHT_REPORT_REDUNDANCY_H
#define COLL_FLIGHT_REPORT_REDUNDANCY_H

#include "report_path.h"

enum { REPORT_REDUNDANT_SITES = 4 };

/* Equal calls in which T gains. */
struct redundant_site {
	uint32_t collective;
	uint64_t bytes;
	uint32_t exchanges, relays;	/* T, and how often results are passed on */
	double share;			/* of what noise costs in a call: what T saves */
	double price;			/* ns of its own messages */
};

struct report_redundancy {
	struct redundant_site site[REPORT_REDUNDANT_SITES];
	uint32_t sites;
	uint32_t fitting;		/* sites of collectives that have T, and do not use it yet */
};

/*
 * The noise is what the job met in its timed runs: how often a message was late and by how much, how
 * often a rank had no core in a call and for how long. From it the model says which T takes the least
 * time. Of the calls with most messages alone: the model takes some ms for each.
 */
void coll_report_redundancy_find(struct report_redundancy *redundancy,
				 const struct coll_flight_job *job,
				 const struct report_runs *runs);
/* The site of this run, or NULL: T gains nothing there. */
const struct redundant_site *coll_report_redundancy_of(const struct report_redundancy *redundancy,
						       const struct coll_flight_timed *run);

#endif
