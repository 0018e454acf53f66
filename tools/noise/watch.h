/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Watching CPUs: a measuring loop on each, all at the same time, and what came
 * of it as a capture.
 */
#ifndef COLL_NOISE_WATCH_H
#define COLL_NOISE_WATCH_H

#include <pthread.h>

#include "node/capture.h"
#include "node/cpus.h"
#include "loop.h"
#include "policy.h"

struct noise_watch_options {
	struct noise_cpus cpus, housekeeping;	/* housekeeping: none given, the caller stays */
	u64 threshold;			/* ns */
	u64 duration, warm_up;		/* ns */
	u64 period, runtime;		/* ns; watch `runtime` of each `period`; 0: all the time */
	u64 stop, stop_total;		/* ns; a gap, all gaps of a period: end there; 0: go on */
	u64 room;			/* events kept a CPU */
	struct noise_policy policy;
	bool quiet;			/* no progress on the terminal */
};

struct noise_watcher {
	struct noise_watch *watch;
	pthread_t thread;
	u32 cpu;
	struct noise_loop loop;
	u64 turn, least;		/* ticks */
	u64 first, end;			/* ticks */
	u64 involuntary;		/* context switches */
	u64 steal;			/* ns */
	int error;			/* -errno */
	const char *refused;		/* what was refused with it */
};

struct noise_watch {
	struct noise_watch_options options;
	struct noise_clock clock;
	struct noise_watcher *watcher;
	u32 watchers;
	pthread_barrier_t ready;
	u64 begin, end;			/* ticks */
	bool stop;			/* set by anybody: all end */
	bool passed;			/* a limit was */
	bool interrupted;		/* by the user */
};

/* Sensible values: everything but CPUs and duration. */
struct noise_watch_options noise_watch_defaults(void);

/*
 * In this order. Begin returns when all CPUs are watched; what fails says so on
 * stderr, with the command's name before it. Wait shows progress, and returns when
 * the time is over, a limit passed or the user interrupted. Both: 0 or -errno.
 */
int noise_watch_begin(struct noise_watch *watch, const struct noise_watch_options *options,
		      const char *command);
int noise_watch_wait(struct noise_watch *watch);
void noise_watch_free(struct noise_watch *watch);

/* What was seen. The capture is the caller's. */
int noise_watch_capture(const struct noise_watch *watch, struct noise_capture *capture);

#endif
