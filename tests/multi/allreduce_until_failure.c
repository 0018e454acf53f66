// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * allreduce_until_failure: all ranks call allreduce without pause until their network fails.
 * Each rank prints how long the failure took to be reported, and the ranks that the error
 * names: "rank 0: 2.9 s: ..."
 */
#include <stdio.h>
#include <time.h>

#include "libcoll/coll.h"

enum { COUNT = 1000 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(void)
{
	static double in[COUNT], out[COUNT];
	struct coll_context *context;
	struct coll_group *world;
	double start = now(), before = start;
	int error;

	setlinebuf(stdout);
	if (coll_open(NULL, &context)) {
		printf("no job: %s\n", coll_context_error(NULL));
		return 1;
	}
	world = coll_world(context);
	for (;;) {
		before = now();
		error = coll_allreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, world);
		if (error)
			break;
		if (before - start > 20) {
			printf("nothing failed\n");
			return 1;
		}
	}
	printf("rank %d: %.1f s: %s\n", coll_rank(world), now() - before, coll_last_error(world));
	coll_close(context);
	return 0;
}
