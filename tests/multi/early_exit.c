// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * early_exit WHAT: ranks that leave while others still need them.
 *
 *	early		rank 0 leaves at once while the others are busy. It does not wait for
 *			them, and the data that it has sent still arrives
 *	queued		the same, with thousands of small messages not yet sent
 *	ahead		rank 3 leaves before rank 0 has called: it waits until rank 0 has
 *			received its part
 *	unheard		rank 3 has its result by way of rank 2 and leaves before it has
 *			accepted the connection of rank 1, which gets its data from rank 0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/descriptors.h"
#include "tests/lib/rank.h"

enum { RANKS = 4, COUNT = 10000 };

static const double prompt = 5;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void sleep_ms(int ms)
{
	usleep(ms * 1000);
}

/* Closes; how long that took. */
static double leave(struct coll_context *context)
{
	const double start = now();

	coll_close(context);
	return now() - start;
}

static void early(struct coll_context *context, struct coll_group *world)
{
	const int rank = coll_rank(world);
	static int data[COUNT];
	double took;
	int i;

	rank_must(world, coll_barrier(world));
	for (i = 0; i < COUNT; i++)
		data[i] = rank ? 0 : i + 1;
	if (rank)
		sleep_ms(1200);
	rank_must(world, coll_bcast(data, COUNT, COLL_INT32, 0, world));
	for (i = 0; i < COUNT; i++)
		rank_assert(world, data[i] == i + 1);
	took = leave(context);
	if (took > prompt)
		printf("rank %d: leaving took %.2f s\n", rank, took);
	else
		printf("left\n");
}

static void queued(struct coll_context *context, struct coll_group *world)
{
	const int rank = coll_rank(world);
	int i, data;

	rank_must(world, coll_group_set(world, "bcast", "linear"));
	rank_must(world, coll_barrier(world));
	if (rank)
		sleep_ms(300);
	for (i = 0; i < COUNT; i++) {
		data = rank ? -1 : i;
		rank_must(world, coll_bcast(&data, 1, COLL_INT32, 0, world));
		rank_assert(world, data == i);
	}
	leave(context);
	printf("left\n");
}

static void ahead(struct coll_context *context, struct coll_group *world)
{
	const int rank = coll_rank(world);
	int all[RANKS], i;
	double took;

	rank_must(world, coll_group_set(world, "gather", "linear"));
	if (!rank)
		sleep_ms(700);
	rank_must(world, coll_gather(&rank, all, 1, COLL_INT32, 0, world));
	for (i = 0; i < RANKS && !rank; i++)
		rank_assert(world, all[i] == i);
	took = leave(context);
	if (took > 0.7 + prompt)
		printf("rank %d: leaving took %.2f s\n", rank, took);
	else
		printf("left\n");
}

/* Moves what moves, for so long. */
static void progress_for(struct coll_context *context, struct coll_group *group, int ms)
{
	for (; ms > 0; ms -= 5) {
		rank_must(group, coll_progress(context));
		sleep_ms(5);
	}
}

static void unheard(struct coll_context *context, struct coll_group *world)
{
	struct coll_group *others, *redundant;
	const int rank = coll_rank(world);
	struct coll_run *run;
	int mine = 1 << rank, sum = 0;

	rank_must(world, coll_group_split(world, rank == 3 ? 1 : 0, rank, &others));
	rank_must(others, coll_barrier(others));
	rank_must(world, coll_group_dup(world, &redundant));
	rank_must(redundant, coll_group_set(redundant, "allreduce", "butterfly-redundant:T=1"));
	if (rank == 1)
		sleep_ms(300);	/* rank 2 is the first to connect to rank 3 */
	if (rank == 3)
		files_leave(64, 1);
	rank_must(redundant, coll_iallreduce(&mine, &sum, 1, COLL_INT32, COLL_SUM, redundant,
					     &run));
	if (rank == 1) {	/* its part is on the way; rank 3 leaves meanwhile */
		progress_for(context, redundant, 100);
		sleep_ms(1000);
	}
	rank_must(redundant, coll_run_wait(&run));
	rank_assert(redundant, sum == 15);
	if (rank < 3) {
		progress_for(context, redundant, 200);
		rank_assert(redundant, !*coll_last_error(redundant));
		rank_assert(redundant, !coll_failed_ranks(redundant, NULL, 0));
		rank_must(others, coll_barrier(others));
	}
	if (leave(context) < prompt)
		printf("left\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct coll_context *context = rank_open(strcmp(what, "queued") ? "deadline=5s" :
						 "deadline=30s buffer_bytes=4K");
	struct coll_group *world = coll_world(context);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "early"))
		early(context, world);
	else if (!strcmp(what, "queued"))
		queued(context, world);
	else if (!strcmp(what, "ahead"))
		ahead(context, world);
	else if (!strcmp(what, "unheard"))
		unheard(context, world);
	else
		return 2;
	return 0;
}
