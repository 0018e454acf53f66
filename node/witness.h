/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Who was about while CPUs were watched, as far as /proc tells anybody: how
 * often each interrupt and softirq came there, how long each thread ran. No
 * event is joined to its cause; that takes the module.
 */
#ifndef COLL_NOISE_WITNESS_H
#define COLL_NOISE_WITNESS_H

#include "capture.h"
#include "cpus.h"

struct noise_witness;

/* What has been counted so far; NULL: no memory. Takes milliseconds, more with many threads. */
struct noise_witness *noise_witness_look(const struct noise_cpus *cpus);
/* Adds the differences to the capture, as sources without events. */
int noise_witness_difference(const struct noise_witness *before, const struct noise_witness *after,
			     struct noise_capture *capture);
void noise_witness_free(struct noise_witness *witness);

/* Time that the hypervisor gave to others, ns since boot; in steps of a tick. */
u64 noise_steal(u32 cpu);

#endif
