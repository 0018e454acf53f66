/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Who takes the cores of a user's ranks, as coll.ko counts it. Where it cannot, the observer does without. */
#ifndef COLL_DAEMON_COUNTER_H
#define COLL_DAEMON_COUNTER_H

#include <stdio.h>

#include "node/observe/observe.h"

struct colld_counter;

/* What the log says, at most once an hour each: users can make it begin and end at each look, and with each job. */
enum colld_counting_news {
	COLLD_COUNTING_BEGINS,
	COLLD_COUNTING_FAILED,		/* the module does not count */
	COLLD_COUNTING_YIELDED,		/* others have the CPU */
	COLLD_COUNTING_DEAR,
	COLLD_COUNTING_NEWS,
};

/* Of all of them together. */
struct colld_counting {
	double most;			/* part of each CPU's time that it may cost; 0: nothing is counted */
	struct {
		u64 at;			/* 0: never */
		u32 untold;		/* times since */
	} told[COLLD_COUNTING_NEWS];
	u64 yielded, dear;		/* ranks that it does not count any more: others have a CPU, or it costs too much */
	struct colld_counter *users;	/* all that are open */
};

/* Of one user. NULL: no memory, or nothing is to be counted. `counting` outlives it. */
struct colld_counter *colld_counter_open(struct colld_counting *counting);
/* For node_observer_count(); NULL for NULL. */
const struct observer_counter *colld_counter_table(const struct colld_counter *counter);
/* After a look: when all of a user are counted that could be, for the first time, the log says so. */
void colld_counter_look(struct colld_counter *counter, const struct observer *observer);
/* All of its watches end at once; before the observer is closed, which would end them rank by rank. */
void colld_counter_stop(struct colld_counter *counter);
/* After that, and after the observer was closed. */
void colld_counter_close(struct colld_counter *counter);
/* `cpus`: of all users' ranks that are counted now. */
void colld_counting_metrics(const struct colld_counting *counting, u32 cpus, FILE *to);

#endif
