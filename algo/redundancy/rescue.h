/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A result that several ranks have: a rank's own reduction makes it, or one of the others sends it,
 * whichever comes first. All that may never happen is optional and in scratch.
 */
#ifndef COLL_RESCUE_H
#define COLL_RESCUE_H

#include "algo/common/partial.h"

/* The receives of a result that others may send. */
struct coll_rescue {
	u32 count;
	u64 final[STEPS_MAX];		/* where they go */
	u32 received[STEPS_MAX];
	u32 served[STEPS_MAX];		/* done: the result is not sent to this partner */
	u32 any;			/* done as soon as one of them is */
};

/* None so far. */
#define COLL_RESCUE_NONE ((struct coll_rescue){ .any = COLL_NONE })

/* One more, from this rank. */
void coll_emit_rescue(struct coll_build *b, struct coll_rescue *rescue, u32 rank, u64 bytes);
/* After the last one. */
void coll_emit_rescue_any(struct coll_build *b, struct coll_rescue *rescue);

/* Waits for a result to be there: own reduction or any of those received. */
struct coll_ways {
	u32 count, op[STEPS_MAX + 1];
};

/*
 * The ways to the result at mine.place, of which mine.ready is the reduction: an optional op that is
 * skipped once rescue->any is done.
 */
struct coll_ways coll_emit_ways(struct coll_build *b, const struct coll_rescue *rescue,
				struct coll_partial mine, u64 bytes);

/* The next op waits for the first of them. */
void coll_emit_after_ways(struct coll_build *b, const struct coll_ways *ways);

#endif
