/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The event queue, by windows of time. A window is at most as long as the shortest latency
 * between two ranks, so no event of a window affects another rank within it: the events of a
 * window are processed rank by rank, in any order of ranks. That needs no comparison with
 * events of other ranks, and touches each rank's memory once per window.
 *
 * Near windows are lists in a ring, later ones wait in a heap.
 */
#ifndef COLL_SIM_CALENDAR_H
#define COLL_SIM_CALENDAR_H

#include "sim.h"

/* Ordered by time, then `what`, within a rank. */
struct sim_event {
	sim_time time;
	u32 rank, what;
};

enum { CALENDAR_WINDOWS = 4096 };

struct sim_calendar {
	sim_time width;			/* of a window */
	s64 epoch;			/* number of the current ring of windows */
	u32 head[CALENDAR_WINDOWS];	/* node + 1; 0: empty */
	u64 filled[CALENDAR_WINDOWS / 64];
	struct sim_calendar_node *node;
	u32 nodes, capacity, free;		/* free: node + 1 */
	struct sim_event *heap;		/* of later epochs */
	u64 waiting, heap_capacity;
	struct sim_event *batch, *sorted;	/* of one window */
	u32 batch_capacity;
	int error;
};

int calendar_init(struct sim_calendar *calendar, sim_time width);
/* Also a second time, or after zeros. */
void calendar_free(struct sim_calendar *calendar);

/*
 * `happening` must not be before the end of the last window taken. Keeps -ENOMEM, or -EOVERFLOW
 * at the end of virtual time, in ->error.
 */
void calendar_add(struct sim_calendar *calendar, struct sim_event happening);

/* No event is earlier; SIM_NEVER: no event is left. */
sim_time calendar_next(const struct sim_calendar *calendar);

/*
 * Takes the next window that has events: *batch, valid until the next call, is
 * sorted by rank, time and what; *end is the end of the window. Returns the
 * number of events; 0: no event is left, or calendar->error is set.
 */
u32 calendar_take(struct sim_calendar *calendar, const struct sim_event **batch, sim_time *end);

#endif
