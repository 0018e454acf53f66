// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * argument_rules ignored: counts and displs that only the root needs are ignored elsewhere.
 * argument_rules overlap: buffers that overlap are refused on all ranks.
 * argument_rules deadline: a deadline of any length, set while the run is in flight.
 * argument_rules fork: a child of a rank can neither call nor harm its parent.
 * argument_rules thread: calls by a thread that may not make them fail by themselves alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { RANKS_MAX = 16 };

/* ---- ignored ---------------------------------------------------------------- */

static const size_t zeros[RANKS_MAX], garbage[RANKS_MAX] = { ~0ul, 1ul << 63, 7, ~0ul, 3 };
static const size_t *const nonsense[] = { NULL, zeros, garbage };

/* Rank r has r + 1 elements of 100 + r, on the root at position 20 r. */
static void check_vector(struct coll_group *world, const size_t *elsewhere, int root)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	size_t counts[RANKS_MAX], displs[RANKS_MAX];
	int32_t all[RANKS_MAX * 20], mine[RANKS_MAX];
	int i, j;

	for (i = 0; i < ranks; i++) {
		counts[i] = i + 1;
		displs[i] = 20 * i;
		mine[i] = 100 + rank;
	}
	memset(all, 0xff, sizeof(all));
	rank_must(world, coll_gatherv(mine, rank + 1, all, rank == root ? counts : elsewhere,
				      rank == root ? displs : elsewhere, COLL_INT32, root,
				      world));
	for (i = 0; i < ranks && rank == root; i++)
		for (j = 0; j <= i; j++)
			rank_assert(world, all[20 * i + j] == 100 + i);
	memset(mine, 0, sizeof(mine));
	rank_must(world, coll_scatterv(all, rank == root ? counts : elsewhere,
				       rank == root ? displs : elsewhere, mine, rank + 1,
				       COLL_INT32, root, world));
	for (j = 0; j <= rank; j++)
		rank_assert(world, mine[j] == 100 + rank);
}

static void ignored(struct coll_group *world)
{
	size_t i;
	int root;

	for (i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++)
		for (root = 0; root < coll_ranks(world); root++)
			check_vector(world, nonsense[i], root);
}

/* ---- buffers that overlap ------------------------------------------------------- */

static void overlap(struct coll_group *world)
{
	int64_t data[2 * RANKS_MAX] = { 0 };
	const int ranks = coll_ranks(world);

	rank_assert(world, coll_allreduce(data, data, 4, COLL_INT64, COLL_SUM, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "overlap"));
	rank_assert(world, coll_allreduce(data, data + 3, 4, COLL_INT64, COLL_SUM, world) ==
			   -EINVAL);
	rank_assert(world, coll_alltoall(data, data, 1, COLL_INT64, world) == -EINVAL);
	rank_must(world, coll_allreduce(data, data + 4, 4, COLL_INT64, COLL_SUM, world));
	rank_must(world, coll_alltoall(data, data + ranks, 1, COLL_INT64, world));
	rank_must(world, coll_allreduce(COLL_IN_PLACE, data, 4, COLL_INT64, COLL_SUM, world));
}

/* ---- deadlines ---------------------------------------------------------------- */

static void deadline(struct coll_group *world)
{
	static const uint64_t lengths[] = { UINT64_MAX, UINT64_MAX / 2, 1ull << 62 };
	int64_t in = 1, out;
	struct coll_run *run;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world, &run));
		rank_must(world, coll_run_deadline(run, lengths[i]));
		if (coll_rank(world) == 1)
			usleep(300000);
		rank_must(world, coll_run_wait(&run));
		rank_assert(world, out == coll_ranks(world));
	}
}

/* ---- threads ------------------------------------------------------------------ */

struct attempt {
	struct coll_group *world;
	struct coll_run *run;
};

static void *call_elsewhere(void *argument)
{
	struct attempt *attempt = argument;
	struct coll_group *world = attempt->world;
	struct coll_run *run = NULL;
	int64_t in = 1, out;
	int done = 7, error;

	error = coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world);
	if (error != -EPERM)
		rank_fail(world, "allreduce: %d", error);
	rank_assert(world, strstr(coll_last_error(world), "thread"));
	rank_assert(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world, &run) ==
			   -EPERM);
	rank_assert(world, !run);
	rank_assert(world, coll_run_test(&attempt->run, &done) == -EPERM && !done);
	rank_assert(world, coll_run_wait(&attempt->run) == -EPERM && attempt->run);
	rank_assert(world, coll_run_free(&attempt->run) < 0 && attempt->run);
	return NULL;
}

static void thread(struct coll_group *world)
{
	struct attempt attempt = { .world = world };
	int64_t in = 1, out = 0;
	pthread_t other;

	/* One rank is late, so that the run is in flight meanwhile. */
	rank_must(world, coll_barrier(world));
	if (coll_rank(world) == 1)
		usleep(300000);
	rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world,
					 &attempt.run));
	if (coll_rank(world) == 0) {
		pthread_create(&other, NULL, call_elsewhere, &attempt);
		pthread_join(other, NULL);
	}
	rank_must(world, coll_run_wait(&attempt.run));
	rank_assert(world, out == coll_ranks(world));
	rank_must(world, coll_barrier(world));
}

/* ---- children ------------------------------------------------------------------ */

static void call_in_child(struct coll_context *context, struct coll_run *run)
{
	struct coll_group *world = coll_world(context), *copy;
	int64_t in = 1, out;

	rank_assert(world, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world) == -EPERM);
	rank_assert(world, strstr(coll_last_error(world), "fork"));
	rank_assert(world, coll_run_wait(&run) == -EPERM && run);
	rank_assert(world, coll_group_dup(world, &copy) == -EPERM);
	rank_assert(world, coll_progress(context) == -EPERM);
	rank_assert(world, coll_revoke(world) == -EPERM);
	coll_close(context);
	_exit(0);
}

static void children(struct coll_context *context)
{
	struct coll_group *world = coll_world(context);
	int64_t in = 1, out = 0;
	struct coll_run *run;
	int status;
	pid_t child;

	rank_must(world, coll_barrier(world));
	if (coll_rank(world) == 1)
		usleep(300000);
	rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world, &run));
	child = fork();
	if (!child)
		call_in_child(context, run);
	rank_assert(world, waitpid(child, &status, 0) == child && !status);
	rank_must(world, coll_run_wait(&run));
	rank_assert(world, out == coll_ranks(world));
	rank_must(world, coll_barrier(world));
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=10s");
	struct coll_group *world = coll_world(context);

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "ignored"))
		ignored(world);
	else if (!strcmp(argv[1], "overlap"))
		overlap(world);
	else if (!strcmp(argv[1], "deadline"))
		deadline(world);
	else if (!strcmp(argv[1], "fork"))
		children(context);
	else
		thread(world);
	coll_close(context);
	return 0;
}
