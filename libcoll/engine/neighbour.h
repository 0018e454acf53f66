/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A neighbour: somebody else's thread that computes on this thread's core. What helps depends on
 * where the scheduler counts it.
 *
 * - In this thread's group (no container, no session between): a yield gives the slice away and
 *   comes back when the neighbour's is over, 3 to 30 ms later. Who sleeps, and is woken, comes back
 *   at once as long as it takes less than its share of the core: then the scheduler owes it time.
 *   So a wait is a short look and then a sleep.
 * - In another group a yield costs nothing, and a slice is lost now and then. There yields win.
 *
 * So what is counted is the loss a wait.
 *
 * Who sleeps asks the scheduler for slices of 0.1 ms (since Linux 6.12; no right is needed; its
 * share of the core stays as it is): what wakes with a shorter slice than the running thread's need
 * not await the end of that. Who runs on and yields is only interrupted more often by them.
 *
 * Whether a neighbour is still there only yields tell. So from time to time waits yield again,
 * until one comes back late or none has for TRIAL_NS. That costs a hundredth of the time.
 *
 * Elsewhere a yield costs a comparison more, a wait a comparison and an addition.
 */
#ifndef COLL_NEIGHBOUR_H
#define COLL_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Option `wait`. */
enum coll_wait {
	COLL_WAIT_AUTO,			/* yields, unless there is a neighbour */
	COLL_WAIT_YIELD,		/* yields, whatever it costs */
	COLL_WAIT_SLEEP,		/* as if there always were a neighbour */
};

/* Of the one thread at a time that waits. Begin with coll_neighbour_init(). */
struct coll_neighbour {
	enum coll_wait wait;
	bool near;			/* waits sleep; other threads may read it */
	uint32_t late;			/* yields that came back late, not far apart */
	uint64_t lost_ns;		/* in these */
	uint64_t waits;			/* in the same time, or since a trial began */
	uint64_t late_at;		/* the last of them */
	uint64_t trial_at;		/* near: from then on waits yield again */
	pid_t thread;			/* that has short slices; 0: none */
	uint64_t slice_ns;		/* its slices before */
};

enum {
	/* A rank that shares the core gives it back sooner, a neighbour's slice is longer. */
	COLL_YIELD_LATE_NS = 1000000,
};

void coll_neighbour_init(struct coll_neighbour *neighbour, enum coll_wait wait);
/* The calling thread waits no more: it has its own slices again. */
void coll_neighbour_let_go(struct coll_neighbour *neighbour);
/* It is the one that waits from now on. */
void coll_neighbour_take(struct coll_neighbour *neighbour);

/* It is near: whether a wait that begins now is to sleep soon. */
bool coll_neighbour_sleeps(struct coll_neighbour *neighbour, uint64_t now);
/* A look and a yield took so long, which is late. It is `now`. */
void coll_neighbour_late(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now);

/* Whether waits are to sleep soon, as far as is known. Any thread may ask. */
static inline bool coll_neighbour_is_near(const struct coll_neighbour *neighbour)
{
	return __atomic_load_n(&neighbour->near, __ATOMIC_RELAXED);
}

/*
 * A look that found nothing, and a yield, took from `before` to `now`. The look counts: who was
 * preempted there has lost as much.
 */
static inline void coll_neighbour_yielded(struct coll_neighbour *neighbour, uint64_t before,
					  uint64_t now)
{
	if (now - before >= COLL_YIELD_LATE_NS)
		coll_neighbour_late(neighbour, now - before, now);
}

#endif
