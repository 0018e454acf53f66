/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What others than the job took of a rank's cores, by colld of its node, which leaves it for this user
 * (observation.h). The rank asks now and then, by reading a file; colld is not waited for.
 */
#ifndef COLL_FLIGHT_STOLEN_H
#define COLL_FLIGHT_STOLEN_H

#include <stdbool.h>
#include <stdint.h>

#include "uapi/coll_flight.h"

/* Between two looks of colld. */
struct coll_stolen {
	uint64_t seen;			/* ns that it looked */
	uint64_t ns, stops;		/* that was taken, in all, and how often */
};

/* What was known at the latest answer. All zeros at first. */
struct coll_stolen_known {
	uint64_t ask_at;		/* coll_now() */
	uint64_t until, ns, stops;
};

/*
 * Asks, unless that was less than two seconds ago: then it only compares. false: nothing new is known, as
 * where there is no colld, it is not of this system's or user's, or has not looked since.
 */
bool coll_stolen_ask(struct coll_stolen_known *known, const struct coll_flight_page *page, uint64_t now,
		     struct coll_stolen *stolen);
/*
 * Takes one answer, which may be stale, of another version of the same rank, or absurd. false: of it nothing
 * follows; the next one is compared with it.
 */
bool coll_stolen_take(struct coll_stolen_known *known, const struct coll_flight_observed *observed,
		      struct coll_stolen *stolen);

#endif
