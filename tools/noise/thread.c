// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "tools/common/arguments.h"
#include "node/cpus.h"
#include "thread.h"

int noise_thread_bind(u32 cpu, const char **what)
{
	struct node_cpus self = { { 0 } };

	node_cpus_add(&self, cpu);
	*what = "cannot be run on";
	return node_cpus_set_affinity(0, &self);
}

int noise_thread_schedule(const struct noise_policy *policy, const char **what)
{
	prctl(PR_SET_TIMERSLACK, 1);
	/* None is asked for: it stays what it is, under nice(1), too. */
	if (policy->policy == SCHED_OTHER && !policy->nice && !policy->runtime)
		return 0;
	*what = "the priority asked for (-P) is refused: needs root or CAP_SYS_NICE";
	return noise_policy_set(policy);
}

void *noise_thread_memory(u64 count, size_t size)
{
	void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int noise_thread_refuse(const char *command, u32 cpu, const char *what, int error)
{
	fprintf(stderr, "%s %s: CPU %u: %s: %s\n", argument_program, command, cpu, what,
		strerror(-error));
	return error;
}
