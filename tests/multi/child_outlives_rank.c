// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * child_outlives_rank [early]: rank 2 is killed while a child of it lives, which holds its
 * connections (early: and its listening socket, before there are connections). The others
 * learn it at once, not at the deadline.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { VICTIM = 2, CHILD_S = 12 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* The child keeps what it has inherited, but for the test's output. */
static void die(void)
{
	if (!fork()) {
		setsid();	/* coll run ends a dead rank's process group */
		close(1);
		close(2);
		sleep(CHILD_S);
		_exit(0);
	}
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=20s");
	struct coll_group *world = coll_world(context);
	int64_t in = 1, out;
	double start;
	int error;

	(void)argv;
	if (argc < 2)
		rank_must(world, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world));
	if (coll_rank(world) == VICTIM)
		die();
	start = now();
	do
		error = coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world);
	while (!error);
	if (error != -ECONNRESET || !strstr(coll_last_error(world), "rank 2"))
		rank_fail(world, "%d: %s", error, coll_last_error(world));
	if (now() - start > 5)
		rank_fail(world, "it took %.1f s", now() - start);
	coll_close(context);
	printf("survived\n");
	return 0;
}
