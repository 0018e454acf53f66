// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "policy.h"
#include "node/units.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

/* sched_setattr(2); the C library has no wrapper. */
struct attributes {
	u32 size, policy;
	u64 flags;
	s32 nice;
	u32 priority;
	u64 runtime, deadline, period;
};

static bool read_priority(struct noise_policy *policy, const char *text)
{
	const bool other = policy->policy == SCHED_OTHER;
	char *rest;
	const long value = strtol(text, &rest, 10);

	if (rest == text || *rest || value < (other ? -20 : 1) || value > (other ? 19 : 99))
		return false;
	policy->nice = other ? value : 0;
	policy->priority = other ? 0 : value;
	return true;
}

static bool read_deadline(struct noise_policy *policy, const char *text)
{
	const char *colon = strchr(text, ':');
	char runtime[32];

	if (!colon || (size_t)(colon - text) >= sizeof(runtime))
		return false;
	memcpy(runtime, text, colon - text);
	runtime[colon - text] = 0;
	return coll_text_time(runtime, NODE_US, &policy->runtime) &&
	       coll_text_time(colon + 1, NODE_US, &policy->period) && policy->runtime >= 1024 &&
	       policy->runtime <= policy->period;
}

bool noise_policy_read(struct noise_policy *policy, const char *text)
{
	*policy = (struct noise_policy){ 0 };
	if (!text[0] || text[1] != ':')
		return false;
	switch (text[0]) {
	case 'o':
		policy->policy = SCHED_OTHER;
		return read_priority(policy, text + 2);
	case 'r':
		policy->policy = SCHED_RR;
		return read_priority(policy, text + 2);
	case 'f':
		policy->policy = SCHED_FIFO;
		return read_priority(policy, text + 2);
	case 'd':
		policy->policy = SCHED_DEADLINE;
		return read_deadline(policy, text + 2);
	default:
		return false;
	}
}

int noise_policy_set(const struct noise_policy *policy)
{
	struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = policy->policy,
		.nice = policy->nice,
		.priority = policy->priority,
		.runtime = policy->runtime,
		.deadline = policy->period,
		.period = policy->period,
	};

	return syscall(SYS_sched_setattr, 0, &attributes, 0) ? -errno : 0;
}

const char *noise_policy_name(const struct noise_policy *policy)
{
	switch (policy->policy) {
	case SCHED_OTHER:
		return "other";
	case SCHED_RR:
		return "rr";
	case SCHED_FIFO:
		return "fifo";
	case SCHED_DEADLINE:
		return "deadline";
	default:
		return "?";
	}
}
