// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "libcoll/base/clock.h"
#include "observation.h"
#include "stolen.h"

enum {
	THREADS = 2,			/* of a rank that are looked at */
	SWITCH_NS = 1000,		/* no thread loses its core more often */
};
static const uint64_t ASK_NS = 2 * COLL_SECOND, NONE_NS = 10 * COLL_SECOND;	/* where nobody answers: more seldom */
static const uint64_t LONGEST_NS = 60 * COLL_SECOND;	/* between two answers that are compared */

static bool stolen_fits(const struct coll_stolen *stolen)
{
	return stolen->seen && stolen->seen <= LONGEST_NS && stolen->ns <= THREADS * stolen->seen &&
	       stolen->stops <= stolen->seen / SWITCH_NS && (stolen->ns || !stolen->stops);
}

bool coll_stolen_take(struct coll_stolen_known *known, const struct coll_flight_observed *observed,
		      struct coll_stolen *stolen)
{
	const struct coll_stolen_known before = *known;

	if (observed->source != COLL_FLIGHT_BY_COLLD || observed->until <= observed->since)
		return false;
	known->until = observed->until;
	known->ns = observed->stolen;
	known->stops = observed->stops;
	if (!before.until || known->until <= before.until || known->ns < before.ns ||
	    known->stops < before.stops)
		return false;
	*stolen = (struct coll_stolen){ known->until - before.until, known->ns - before.ns,
					known->stops - before.stops };
	return stolen_fits(stolen);
}

bool coll_stolen_ask(struct coll_stolen_known *known, const struct coll_flight_page *page, uint64_t now,
		     struct coll_stolen *stolen)
{
	struct coll_flight_observation one;

	if (now < known->ask_at)
		return false;
	if (!coll_flight_observation_of(page, &one)) {
		known->ask_at = now + NONE_NS;
		return false;
	}
	known->ask_at = now + ASK_NS;
	coll_flight_observed_clean(&one.observed);
	return coll_stolen_take(known, &one.observed, stolen);
}
