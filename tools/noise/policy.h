/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A thread's scheduling policy in rtla's syntax: o:0, r:1, f:50, d:1ms:10ms. */
#ifndef COLL_NOISE_POLICY_H
#define COLL_NOISE_POLICY_H

#include "core/port.h"

struct noise_policy {
	u32 policy;		/* SCHED_OTHER ... */
	s32 nice;
	u32 priority;
	u64 runtime, period;	/* ns; SCHED_DEADLINE; runtime of SCHED_OTHER: its slice */
};

bool noise_policy_read(struct noise_policy *policy, const char *text);
/* The calling thread; 0 or -errno. */
int noise_policy_set(const struct noise_policy *policy);
const char *noise_policy_name(const struct noise_policy *policy);

#endif
