/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Watching CPUs: a measuring loop on each, all at the same time; the result is a capture. */
#ifndef COLL_NOISE_WATCH_H
#define COLL_NOISE_WATCH_H

#include <pthread.h>

#include "node/capture.h"
#include "node/cpus.h"
#include "loop.h"
#include "policy.h"

struct noise_watch_options {
	struct node_cpus cpus, housekeeping;	/* housekeeping; none: CPUs not watched */
	u64 threshold;			/* ns */
	u64 duration, warm_up;		/* ns */
	u64 period, runtime;		/* ns; watch `runtime` of each `period`; 0: all the time */
	u64 stop, stop_total;		/* ns; limit of a gap, of all gaps of a period; 0: none */
	u64 capacity;			/* capacity in events, per CPU */
	struct noise_policy policy;
	bool quiet;			/* no progress on the terminal */
	void (*ready)(void *argument);	/* all loops are about to begin, and wait; or NULL */
	void *ready_argument;
};

struct noise_watcher {
	struct noise_watch *watch;
	pthread_t thread;
	u32 cpu;
	struct noise_loop loop;
	u64 iteration, least;		/* ticks */
	u64 first, end;			/* ticks */
	u64 involuntary;		/* context switches */
	u64 steal;			/* ns */
	int error;			/* -errno */
	const char *refused;		/* what failed with `error` */
};

struct noise_watch {
	struct noise_watch_options options;
	struct noise_clock clock;
	struct noise_watcher *watcher;
	u32 watchers;
	pthread_barrier_t ready;
	u64 begin, end;			/* ticks */
	bool stop;			/* any loop sets it: all end */
	bool passed;			/* a limit was passed */
	bool interrupted;		/* by the user */
};

/* Default values of everything but CPUs and duration. */
struct noise_watch_options noise_watch_defaults(void);

/*
 * Call in this order. Begin returns when all CPUs are watched; errors are reported on stderr,
 * after the command's name. Wait shows progress; it returns when the time has passed, a limit was
 * passed or the user interrupted. Both: 0 or -errno.
 */
int noise_watch_begin(struct noise_watch *watch, const struct noise_watch_options *options,
		      const char *command);
int noise_watch_wait(struct noise_watch *watch);
void noise_watch_free(struct noise_watch *watch);

/* The recorded events. The caller owns the capture. */
int noise_watch_capture(const struct noise_watch *watch, struct node_capture *capture);

#endif
