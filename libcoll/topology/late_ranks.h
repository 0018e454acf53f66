/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Ranks that are waited for, by what all ranks sampled (lateness.h): those that come late to their calls
 * and those without a core, and which of them are few enough to be leaves (algo/redundancy/leaf.h).
 */
#ifndef COLL_TOPOLOGY_LATE_RANKS_H
#define COLL_TOPOLOGY_LATE_RANKS_H

#include "libcoll/exec/samples.h"

/* An exchange, whose messages usually take so long; in_time: neither was late. */
void coll_late_ranks_add(struct coll_lateness *late, const struct coll_sample *sample, double usual,
			 bool in_time);

/* A rank had no core meanwhile. */
void coll_late_ranks_stop(struct coll_lateness *late, uint32_t rank, double seconds);

void coll_late_ranks_fade(struct coll_lateness *late, double keep);

/*
 * Leaves begin to count, change or end, each for LATE_MEMORY_SECONDS at least. all_stops: those in memory,
 * of all ranks. Returns whether they did.
 */
bool coll_late_ranks_follow(struct coll_lateness *late, const struct coll_samples_found *found,
			    double all_stops);

#endif
