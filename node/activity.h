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

/* Time that the hypervisor gave to others, ns since boot; in steps of a tick. */
u64 node_steal(u32 cpu);

#endif
