/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * LogGOPSim's queue: events by time, then by age, which is the order in which they were first
 * queued. An event that finds its CPU or NIC busy is queued again for the time at which it is free,
 * with its age; so the oldest of those that wait goes next.
 *
 * With m messages at one receiver that would be m^2 / 2 queuings. So they wait with their rank, by
 * age, and only the oldest of each kind is in the queue: the order in which events are served is
 * the same. A queuing costs the logarithm of the events that are queued, waiting costs nothing.
 */
#ifndef COLL_SIM_LOGGOPS_QUEUE_H
#define COLL_SIM_LOGGOPS_QUEUE_H

#include "sim.h"

/* Ops that became ready together are queued in this order. */
enum loggops_kind {
	LOGGOPS_SEND,
	LOGGOPS_RECV,		/* it never waits for a CPU */
	LOGGOPS_CALC,		/* all other ops */
	LOGGOPS_MESSAGE,	/* for this receive */
	LOGGOPS_KINDS,
};

struct loggops_event {
	sim_time time;
	u64 age;
	u32 rank;
	u32 op : 29, kind : 2;	/* enum loggops_kind */
	u32 waited : 1;		/* stands for the oldest that waits */
};

/* Ops or messages of one kind that wait for their rank, oldest first: entries + 1; 0: none. */
struct loggops_line {
	u32 oldest, youngest;
};

struct loggops_waiting;

struct loggops_queue {
	struct loggops_event *heap;
	u64 events, capacity;
	u64 born;		/* so many have been queued: the next one's age */
	struct loggops_line (*line)[LOGGOPS_KINDS];	/* per rank */
	struct loggops_waiting *waiting;
	u32 waitings, waiting_capacity, free;
	int error;		/* -ENOMEM, -EOVERFLOW */
};

int loggops_queue_init(struct loggops_queue *queue, u32 ranks);
void loggops_queue_free(struct loggops_queue *queue);

/* A new event, younger than all others. */
void loggops_queue_add(struct loggops_queue *queue, struct loggops_event event);

/* The event that is served next; false: there is none, or queue->error is set. */
bool loggops_queue_take(struct loggops_queue *queue, struct loggops_event *event);

/*
 * What was taken and finds its rank busy until `time`. Of a waited event nothing more is to be done
 * then.
 */
void loggops_queue_wait(struct loggops_queue *queue, const struct loggops_event *event,
			sim_time time);

/*
 * A waited event that was taken: gets its op, which no longer waits. False: it has been served
 * already. The next one of its kind is queued for `time` by loggops_queue_next().
 */
bool loggops_queue_leave(struct loggops_queue *queue, struct loggops_event *event);
void loggops_queue_next(struct loggops_queue *queue, const struct loggops_event *event,
			sim_time time);

#endif
