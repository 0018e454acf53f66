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
 * A rank of the same job that computes, copies or starts on this core looks the same for a while.
 * Where ranks share cores it takes more waits to conclude, for sleeping is no good between them: an
 * allreduce of 8 bytes among 8 ranks of 2 cores takes two to five times as long.
 *
 * Who sleeps asks the scheduler for slices of 0.1 ms (since Linux 6.12; no right is needed; its
 * share of the core stays as it is): what wakes with a shorter slice than the running thread's need
 * not await the end of that. Who runs on and yields is only interrupted more often by them.
 *
 * Whether a neighbour is still there only yields tell. So from time to time waits yield again,
 * until some come back late or none has for TRIAL_NS. The first trial is soon, in case it was no
 * neighbour; each that fails doubles the pause, until trials take a hundredth of the time. A job
 * whose waits come far more often than before, as after a long message, tries at once.
 *
 * Elsewhere a yield costs a comparison more, a wait a comparison, an addition and a store.
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
	bool crowded;			/* ranks of this node share cores */
	bool near;			/* waits sleep; other threads may read it */
	bool wait_is_late;		/* a yield of the wait under way has come back late */
	uint32_t late;			/* such waits, not far apart */
	uint64_t lost_ns;		/* in these */
	uint64_t waits;			/* in the same time, or since a trial began */
	uint64_t late_at;		/* the last of them */
	uint64_t trial_at;		/* near: from then on waits yield again */
	uint32_t failed;		/* trials, of which none has succeeded since */
	uint32_t slept;			/* near: waits of the block under way ... */
	uint64_t slept_from;		/* ... and when it began */
	uint64_t block_ns;		/* what such blocks have taken lately; 0: not known */
	uint64_t early_at;		/* before then no trial, however often waits come */
	pid_t thread;			/* that has short slices; 0: none */
	uint64_t slice_ns;		/* its slices before */
};

enum {
	/* A rank that shares the core gives it back sooner, a neighbour's slice is longer. */
	COLL_YIELD_LATE_NS = 1000000,
};

void coll_neighbour_init(struct coll_neighbour *neighbour, enum coll_wait wait, bool crowded);
/* The calling thread waits no more: it has its own slices again. */
void coll_neighbour_let_go(struct coll_neighbour *neighbour);
/* It is the one that waits from now on. */
void coll_neighbour_take(struct coll_neighbour *neighbour);

/* It is near: whether a wait that begins now is to sleep soon. */
bool coll_neighbour_sleeps(struct coll_neighbour *neighbour, uint64_t now);
/* A look and a yield took so long, which is late. It is `now`. */
void coll_neighbour_late(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now);

/* A wait begins. */
static inline void coll_neighbour_waits(struct coll_neighbour *neighbour)
{
	neighbour->waits++;
	neighbour->wait_is_late = false;
}

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
