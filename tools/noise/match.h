/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What was injected against what was seen, event by event; all in ticks. */
#ifndef COLL_NOISE_MATCH_H
#define COLL_NOISE_MATCH_H

#include "loop.h"

struct noise_match {
	u64 injected, found;
	u64 alone;		/* of the found: nothing else injected in the gap */
	u64 seen;		/* what the gaps of those that were alone are long, together */
	double *extra;		/* of each of these: how much longer its gap is, ticks */
	u64 together, together_length;	/* the others, and how long they were */
	bool *matched;		/* of each gap: something injected was found in it */
};

/*
 * An injected event is found when a gap covers at least half of it. Both in order
 * of begin; neither overlap among themselves. 0 or -ENOMEM.
 */
int noise_match(const struct noise_gap *injected, u64 count, const struct noise_gap *gap, u64 gaps,
		struct noise_match *match);
void noise_match_free(struct noise_match *match);

#endif
