/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What coll.ko's counting takes of a CPU, of late: by looks, each of which says how much it was since the begin. */
#ifndef COLL_OBSERVE_WATCH_COST_H
#define COLL_OBSERVE_WATCH_COST_H

#include <stdint.h>

enum { WATCH_COST_LOOKS = 16 };

/* All zeros: it begins. */
struct watch_cost {
	struct {
		uint64_t time, cost;
	} look[WATCH_COST_LOOKS];	/* the latest last; between the first and it is the window */
	uint32_t looks;
};

/*
 * By now it counts for `time` ns, and took `cost` of them. Returns the part that it took in the window: in the latest
 * 5 s, or since the look before if that is longer ago; and as if it were 2 s if it is less, so that the
 * first samples are no rate.
 */
double node_watch_cost(struct watch_cost *of, uint64_t time, uint64_t cost);

#endif
