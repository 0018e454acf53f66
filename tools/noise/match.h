/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Matches injected events with measured gaps; all times in ticks. */
#ifndef COLL_NOISE_MATCH_H
#define COLL_NOISE_MATCH_H

#include "loop.h"

struct noise_match {
	u64 injected, found;
	u64 alone;		/* number of found events that are alone in their gap */
	u64 seen;		/* total length of their gaps */
	double *extra;		/* for each of them: gap less injected length, ticks */
	u64 together, together_length;	/* the other found events, and their total length */
	bool *matched;		/* per gap: contains an injected event */
};

/*
 * An injected event is found if a gap covers at least half of it. Both lists are in order of begin
 * and without overlap. 0 or -ENOMEM.
 */
int noise_match(const struct noise_gap *injected, u64 count, const struct noise_gap *gap, u64 gaps,
		struct noise_match *match);
void noise_match_free(struct noise_match *match);

#endif
