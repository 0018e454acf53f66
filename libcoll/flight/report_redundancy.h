/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What redundant exchanges (T) would do in the job's calls, by the library's model. */
#ifndef COLL_FLIGHT_REPORT_REDUNDANCY_H
#define COLL_FLIGHT_REPORT_REDUNDANCY_H

#include "algo/common/algo.h"
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
	/* Sites of collectives that have T and leaves, and use neither yet. */
	const struct report_usual *fit[REPORT_REDUNDANT_SITES];
	uint32_t fitting;
};

/* What is known of the machine by the messages of equal calls, with the noise that these and the ranks met. */
struct coll_machine coll_report_machine(const struct report_runs *runs, const struct report_usual *usual);
/* How often this rank was without a core in equal calls, and for how long. */
struct coll_noise_rate coll_report_noise_of_rank(const struct report_runs *runs, const struct report_usual *usual,
						 uint32_t rank);

/*
 * The noise is what the job met in its timed runs: how often a message was late and by how much, how
 * often a rank had no core in a call and for how long. From it the model says which T takes the least
 * time. Of the calls with most messages alone: the model takes some ms for each.
 */
void coll_report_redundancy_find(struct report_redundancy *redundancy,
				 const struct coll_flight_job *job,
				 const struct report_runs *runs);
/* The number of the run's site among those that fit; redundancy->fitting: it is of none. */
uint32_t coll_report_fit_of(const struct report_redundancy *redundancy, const struct coll_flight_timed *run);
/* The site of this run, or NULL: T gains nothing there. */
const struct redundant_site *coll_report_redundancy_of(const struct report_redundancy *redundancy,
						       const struct coll_flight_timed *run);

#endif
