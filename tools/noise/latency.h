/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Latencies of wake-ups: how late a thread runs that a timer should have woken. By the
 * module, which also tells how late the timer's interrupt was, and who had the time; or from
 * user space, by a thread that sleeps until an absolute time, as cyclictest does.
 *
 *	latency.c		the command
 *	latency_module.c	by the module
 *	latency_user.c		from user space
 *	latency_report.c	tables, JSON, picture
 */
#ifndef COLL_NOISE_LATENCY_H
#define COLL_NOISE_LATENCY_H

#include "core/noise/buckets.h"
#include "node/cpus.h"
#include "cases.h"
#include "policy.h"

enum { NOISE_WORST = 8 };

struct noise_latency_options {
	const char *command;
	struct node_cpus cpus, housekeeping;
	u64 duration, period;		/* ns */
	u64 stop;			/* ns; 0: none */
	struct noise_policy policy;
	bool user, quiet;
};

struct noise_stage {
	u64 count, total, min, max;	/* ns */
	u64 bucket[COLL_BUCKETS];	/* core/noise/buckets.h */
};

struct noise_latency_cpu {
	u32 cpu;
	u64 missed;			/* periods */
	struct noise_stage stage[COLL_WATCH_STAGES];	/* TIMER: of the module only */
	u32 worsts;
	struct noise_case worst[NOISE_WORST];
};

struct noise_latency {
	bool module, interrupted;
	u64 took;			/* ns */
	struct noise_policy policy;	/* of the threads */
	u32 cpus;
	struct noise_latency_cpu *cpu;
	struct noise_passed passed;	/* its `any` also without the module */
};

/* One more wake-up. */
void noise_stage_add(struct noise_stage *stage, u64 latency);
/* At most 1/32 above the value that this share of all is at or below. */
u64 noise_stage_percentile(const struct noise_stage *stage, double share);

/* Set once the user interrupts the program. */
extern volatile bool noise_latency_interrupted;

/*
 * Measure; the caller frees latency->cpu. 0 or -errno; errors are reported on stderr.
 * -ENOENT of the module's: it is not loaded, and nothing is reported.
 */
int noise_latency_module(const struct noise_latency_options *options,
			 struct noise_latency *latency);
int noise_latency_user(const struct noise_latency_options *options, struct noise_latency *latency);

void noise_latency_print(const struct noise_latency_options *options,
			 const struct noise_latency *latency, FILE *to);
/* In the form of rtla timerlat hist. 0 or -ENOMEM. */
int noise_latency_histogram(const struct noise_latency *latency, u64 size, u32 entries, FILE *to);
json_t *noise_latency_json(const struct noise_latency_options *options,
			   const struct noise_latency *latency);
int noise_latency_plot(const struct noise_latency_options *options,
		       const struct noise_latency *latency, const char *path);

#endif
