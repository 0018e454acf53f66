/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Calls that a late message held up, found among all calls of a group (option measure=auto or always).
 * Samples (samples.h) are of few runs: where calls are short, delays take much of the time and meet
 * few of them. A rank that waits for long knows it, and has looked at the clock meanwhile.
 *
 * Each rank notes of a run
 *
 *	that it has *waited*: it looked, long after it had begun the run, and found nothing. Only such a
 *	look is evidence. A rank without a core does not look, and none that is elsewhere.
 *	that it was *late*: it began the run long after the run before, or did not look for long in it.
 *
 * A run in which some waited, longer than others were late, had a message that was. For who has ended a run that needs
 * all ranks knows that all had begun it; who has begun that one and the next in quick succession sends
 * what the next one needs no later than that after. No clocks are compared. (One-way delay
 * variation, RFC 3393, with the sender's interval bounded.)
 *
 * What ranks note of a run meets in the cell that its number draws; surveys add them up. A cell in which
 * several runs have met tells nothing. Where there are many such runs a part of them is drawn.
 *
 * A run that was not late pays for two comparisons; nothing here looks at a clock.
 */
#ifndef COLL_DELAYS_H
#define COLL_DELAYS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	DELAY_CELLS = 32,
	DELAY_WAITED_NS = 300000,	/* a rank has waited */
	DELAY_LATE_NS = 100000,		/* a rank was late: with what may add to that less than the above */
	DELAY_BYTES = 16384,		/* longer messages take long by themselves */
};

/* What all ranks note of a run: sums. */
struct coll_delay_cell {
	uint64_t tag, runs;		/* of its number, by each rank that noted something */
	uint64_t ranks;			/* that did; << DELAY_WAITED: that waited */
	uint64_t waited, late;		/* ns of those that waited; by which ranks were late */
};

enum { DELAY_WAITED = 32 };

struct coll_delays {
	uint64_t began;			/* the latest run that needs all ranks; 0: none */
	uint64_t gone;			/* the engine's, when a run began or ended last */
	uint32_t every;			/* of so many runs one is drawn: a power of two */
	uint32_t notes;			/* since the latest survey, of runs drawn or not */
	uint32_t unmissed;		/* ... messages that came that late, but for which no run waited */
	uint64_t call_ns;		/* mean, between the latest two surveys */
	uint32_t run[DELAY_CELLS];	/* whose cells these are, if there is a note in them */
	struct coll_delay_cell cell[DELAY_CELLS];
};

/* Runs that were held up by late messages; only some were looked at. */
struct coll_delays_found {
	uint32_t seen;			/* that were */
	double runs, seconds;		/* of all, and by how much */
};

void coll_delays_init(struct coll_delays *delays);

/* This rank has waited so many ns in a run, or was late by so many. */
void coll_delays_note(struct coll_delays *delays, uint32_t run, uint64_t waited, uint64_t late);

/*
 * The engine's `gone` as it is now: what came to it since this group looked at it last was in this run, or at its end,
 * where the rank had no core and sent late.
 */
static inline void coll_delays_gone(struct coll_delays *delays, uint32_t run, uint64_t gone)
{
	if (gone == delays->gone)
		return;
	coll_delays_note(delays, run, 0, gone - delays->gone);
	delays->gone = gone;
}

/* A run begins. `needs_all`: whoever ends it knows that all ranks have begun it. */
static inline void coll_delays_begin(struct coll_delays *delays, uint32_t run, bool needs_all, uint64_t gone,
				     uint64_t now)
{
	coll_delays_gone(delays, run - 1, gone);
	if (now - delays->began > DELAY_LATE_NS)
		coll_delays_note(delays, run, 0, now - delays->began);
	if (needs_all)
		delays->began = now;
}

/*
 * A message has come so many runs after its own, which ended by what came another way (algo/redundancy). All
 * ranks had begun that: it was late. Where calls are seldom, it may have lain there for most of that time.
 */
static inline void coll_delays_stale(struct coll_delays *delays, uint32_t runs)
{
	delays->unmissed += delays->call_ns <= DELAY_LATE_NS && (runs - 1) * delays->call_ns > DELAY_WAITED_NS;
}

/* The same for one that is here, but that was injected to be late by so many ns. */
static inline void coll_delays_due(struct coll_delays *delays, uint64_t ns)
{
	delays->unmissed += ns > DELAY_WAITED_NS;
}

/* For a survey, which all ranks begin before the same run: what was noted; then nothing is. */
void coll_delays_take(struct coll_delays *delays, struct coll_delay_cell cell[DELAY_CELLS]);

/*
 * By the sum of all ranks' cells, and of their notes: the same on all ranks. From the next run on so many are drawn
 * that the cells suffice for as many runs with notes.
 */
struct coll_delays_found coll_delays_collect(struct coll_delays *delays, const struct coll_delay_cell *sum,
					     uint64_t notes);

#endif
