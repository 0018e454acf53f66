// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "colld_noise.h"

enum {
	THREADS = 2,		/* of a rank */
	STOPS_A_SECOND = 1000000,	/* of a rank, at most */
};
static const double forgotten_seconds = 10, between_surveys = 2, part_least = 1e-3;

/* All ranks' sums; a rank may have told anything. */
static bool tells_colld(const struct coll_samples_found *found, struct coll_late_colld *now)
{
	*now = (struct coll_late_colld){ found->told, found->stolen.seen * 1e-9, found->stolen.ns * 1e-9,
					 found->stolen.stops, 0 };
	return found->told && found->told <= found->ranks && now->seen > 0 &&
	       now->stolen <= THREADS * now->seen && now->stops <= STOPS_A_SECOND * now->seen;
}

void coll_colld_noise_take(struct coll_late_colld *colld, const struct coll_samples_found *found)
{
	struct coll_late_colld now;

	if (tells_colld(found, &now)) {
		now.seen += colld->seen / 2;
		now.stolen += colld->stolen / 2;
		now.stops += colld->stops / 2;
		*colld = now;
		return;
	}
	colld->age += found->seconds > 0 ? found->seconds : between_surveys;
	if (colld->age > forgotten_seconds)
		*colld = (struct coll_late_colld){ .ranks = 0 };
}

double coll_colld_noise(const struct coll_late_colld *colld, struct coll_noise_rate *noise)
{
	*noise = (struct coll_noise_rate){ 0, 0 };
	if (colld->ranks <= 0 || colld->stops < 1 || colld->stolen < part_least * colld->seen)
		return 0;
	*noise = (struct coll_noise_rate){ colld->stops / colld->seen, colld->stolen / colld->stops };
	return colld->stops;
}
