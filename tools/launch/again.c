// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A command that starts itself as the ranks of a job on this node. */
#include <sched.h>
#include <stdlib.h>

#include "launch.h"
#include "libcoll/base/clock.h"

enum { GRACE_S = 2 };

bool launch_is_rank(void)
{
	static const char *const signs[] = { "COLL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK", "PMIX_RANK", "SLURM_STEP_ID" };
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		const char *value = getenv(signs[i]);

		if (value && *value)
			return true;
	}
	return false;
}

int launch_usual_ranks(void)
{
	cpu_set_t set;
	const int cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return cores > 2 ? cores : 2;
}

int launch_again(const char *command, int ranks, int argc, char **argv)
{
	char **again = calloc(argc + 2, sizeof(*again)), self[] = "/proc/self/exe";
	struct launch job = { .ranks = ranks, .grace = GRACE_S * COLL_SECOND };
	int i, status;

	if (!again)
		return 1;
	again[0] = self;
	again[1] = (char *)command;
	for (i = 1; i < argc; i++)
		again[i + 1] = argv[i];
	job.argv = again;
	status = launch_job(&job);
	free(again);
	return status;
}
