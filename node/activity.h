/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Counters of /proc while CPUs are measured: how often each interrupt and softirq ran there,
 * and how long each thread. They list possible sources of noise; only coll.ko attributes
 * single events.
 */
#ifndef COLL_NODE_ACTIVITY_H
#define COLL_NODE_ACTIVITY_H

#include "capture.h"
#include "cpus.h"

struct node_activity;

/* The counters now; NULL: no memory. Takes milliseconds, more with many threads. */
struct node_activity *node_activity_sample(const struct node_cpus *cpus);
/* Adds the differences to the capture, as sources without events. */
int node_activity_difference(const struct node_activity *before,
			     const struct node_activity *after, struct node_capture *capture);
void node_activity_free(struct node_activity *activity);

/* The threads alone: cheaper. Those of this process are left out, as above. NULL: no memory. */
struct node_activity *node_activity_threads(void);

/* The interrupts and softirqs of these CPUs alone. NULL: no memory. Takes 0.1 ms, more with many CPUs. */
struct node_activity *node_activity_interrupts(const struct node_cpus *cpus);
/* Calls for each that came between two samples: how often. */
void node_activity_came(const struct node_activity *before, const struct node_activity *after,
			void (*each)(const struct coll_noise_source *came, void *argument), void *argument);

/* A thread that ran. */
struct node_ran {
	const char *name;
	u32 pid, tid;
	u32 cpu;		/* where it ran last */
	u64 ns;
	u64 times;		/* that it got a CPU */
};

/* Those that ran between two samples of all threads, one that began meanwhile too. */
void node_activity_ran(const struct node_activity *before, const struct node_activity *after,
		       void (*each)(const struct node_ran *ran, void *argument), void *argument);

/* What a CPU did for others than its tasks, ns since boot; in steps of a tick. */
struct node_cpu_taken {
	u64 interrupts, softirqs, steal;
};

/* Of all CPUs below `count`; those that are not there are left as they are. */
void node_cpus_taken(struct node_cpu_taken *taken, u32 count);

/* Time that the hypervisor gave to others, ns since boot; in steps of a tick. */
u64 node_steal(u32 cpu);

#endif
