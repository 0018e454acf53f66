/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Counters of /proc while CPUs are measured: how often each interrupt and softirq ran there,
 * and how long each thread. They list possible sources of noise; only coll.ko attributes
 * single events.
 */
#ifndef COLL_NOISE_ACTIVITY_H
#define COLL_NOISE_ACTIVITY_H

#include "capture.h"
#include "cpus.h"

struct noise_activity;

/* The counters now; NULL: no memory. Takes milliseconds, more with many threads. */
struct noise_activity *noise_activity_sample(const struct noise_cpus *cpus);
/* Adds the differences to the capture, as sources without events. */
int noise_activity_difference(const struct noise_activity *before,
			      const struct noise_activity *after, struct noise_capture *capture);
void noise_activity_free(struct noise_activity *activity);

/* Time that the hypervisor gave to others, ns since boot; in steps of a tick. */
u64 noise_steal(u32 cpu);

#endif
