// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * never_connected WHAT: three ranks; rank 2 waits for rank 0 or 1, which is to connect to it and
 * never does. It is told why, long before its deadline.
 *
 *	dead		rank 1 dies before it has connected to anybody
 *	failed		ranks 0 and 1 call different collectives, and their group fails
 *	late		rank 2 joins late: rank 0, which is to connect to it, does not stand still
 *	freed		rank 2 has revoked and freed the group that rank 0 then comes for
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

static const double soon = 3;		/* seconds; the deadline is 30 s */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* A rank's data, by the algorithm in which the root has a link to every other rank. */
static int from_root(struct coll_group *group, int root)
{
	int data = coll_rank(group);

	rank_must(group, coll_group_set(group, "bcast", "linear"));
	return coll_bcast(&data, 1, COLL_INT32, root, group);
}

static void must_fail_soon(struct coll_group *group, int error, double start, int expected,
			   int blamed)
{
	const double took = now() - start;

	if (error != expected || coll_error_rank(group) != blamed || took > soon)
		rank_fail(group, "error %d after %.2f s, blames rank %d: %s", error, took,
			  coll_error_rank(group), coll_last_error(group));
	printf("told\n");
}

static void dead(struct coll_group *world)
{
	const int rank = coll_rank(world);
	const double start = now();

	if (rank == 1)
		raise(SIGKILL);
	if (!rank)
		printf("told\n");
	else
		must_fail_soon(world, from_root(world, 1), start, -ECONNRESET, 1);
}

/* Rank 1 gives a message to rank 0, which expects one of another call. */
static int differ(struct coll_group *group)
{
	int data = 1, all[3];

	if (!coll_rank(group))
		return from_root(group, 1);
	rank_must(group, coll_group_set(group, "gather", "linear"));
	return coll_gather(&data, all, 1, COLL_INT32, 0, group);
}

static void progress_for(struct coll_context *context, struct coll_group *world, int ms)
{
	for (; ms > 0; ms -= 10) {
		rank_must(world, coll_progress(context));
		usleep(10000);
	}
}

static void failed(struct coll_context *context, struct coll_group *world)
{
	const double start = now();
	int error = coll_rank(world) == 2 ? from_root(world, 0) : differ(world);

	if (!error)		/* the message has gone; what became of it comes later */
		error = coll_barrier(world);
	if (error != -EPROTO || now() - start > soon)
		rank_fail(world, "error %d after %.2f s: %s", error, now() - start,
			  coll_last_error(world));
	printf("told\n");
	progress_for(context, world, 1500);	/* nobody learns it from a rank that has left */
}

static void freed(struct coll_context *context, struct coll_group *world)
{
	const int rank = coll_rank(world);
	struct coll_group *part;
	int all[3], error;
	double start;

	rank_must(world, coll_group_dup(world, &part));
	if (rank == 2) {
		rank_must(part, coll_revoke(part));
		coll_group_free(part);
		progress_for(context, world, 1000);
	} else {
		usleep(300000);
		start = now();
		rank_must(part, coll_group_set(part, "gather", "linear"));
		error = coll_gather(&rank, all, 1, COLL_INT32, 0, part);
		if (!rank)
			must_fail_soon(part, error, start, -ECANCELED, 2);
	}
	rank_must(world, coll_barrier(world));
	if (rank)
		printf("told\n");
}

/* For seconds there is nobody to connect to. */
static void late(struct coll_group *world)
{
	const int rank = coll_rank(world);
	int data = rank ? -1 : 5;
	struct coll_run *run;
	double start = now();

	rank_must(world, coll_group_set(world, "bcast", "linear"));
	rank_must(world, coll_ibcast(&data, 1, COLL_INT32, 0, world, &run));
	if (!rank && now() - start > 0.5)
		rank_fail(world, "the call took %.2f s", now() - start);
	rank_must(world, coll_run_wait(&run));
	if (rank == 1 && now() - start > 1)
		rank_fail(world, "rank 0 sent after %.2f s", now() - start);
	rank_assert(world, data == 5);
	printf("told\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *rank = getenv("COLL_RANK");
	struct coll_context *context;
	struct coll_group *world;

	if (!strcmp(what, "late") && rank && !strcmp(rank, "2"))
		sleep(2);
	context = rank_open("deadline=30s");
	world = coll_world(context);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "dead"))
		dead(world);
	else if (!strcmp(what, "failed"))
		failed(context, world);
	else if (!strcmp(what, "late"))
		late(world);
	else if (!strcmp(what, "freed"))
		freed(context, world);
	else
		return 2;
	coll_close(context);
	return 0;
}
