// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * argument_rules ignored: counts and displs that only the root needs are ignored elsewhere, and rank 0's result of
 *	an exscan, which it does not get.
 * argument_rules overlap: buffers that overlap are refused on all ranks.
 * argument_rules missing: a buffer that one rank forgets is refused there at once; its next run is the others' first.
 * argument_rules memory: no rank takes the run after one that had no memory to begin for that one.
 * argument_rules words: every error leaves words of its own, in the group and in the context.
 * argument_rules close: closing the context frees the handles of runs, also of those in flight.
 * argument_rules deadline: a deadline of any length, set while the run is in flight.
 * argument_rules fork: a child of a rank can neither call nor harm its parent.
 * argument_rules thread: calls by a thread that may not make them fail by themselves alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static void check_first_of_exscan(struct coll_group *world)
{
	const int rank = coll_rank(world);
	int64_t in = rank + 1, out = -1;
	struct coll_run *run = NULL;

	rank_must(world, coll_exscan(&in, rank ? &out : NULL, 1, COLL_INT64, COLL_SUM, world));
	rank_assert(world, out == (rank ? rank * (rank + 1) / 2 : -1));
	/* In place it is the input. */
	if (!rank)
		rank_assert(world, coll_iexscan(COLL_IN_PLACE, NULL, 1, COLL_INT64, COLL_SUM, world, &run) == -EINVAL);
	rank_must(world, coll_exscan(COLL_IN_PLACE, &in, 1, COLL_INT64, COLL_SUM, world));
	rank_assert(world, in == (rank ? rank * (rank + 1) / 2 : 1));
}

static void ignored(struct coll_group *world)
{
	size_t i;
	int root;

	for (i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++)
		for (root = 0; root < coll_ranks(world); root++)
			check_vector(world, nonsense[i], root);
	check_first_of_exscan(world);
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

/* ---- runs that cannot begin -------------------------------------------------------- */

static void missing(struct coll_group *world)
{
	int64_t in = 1, out = 0;
	struct coll_run *run = NULL;

	if (!coll_rank(world)) {
		rank_assert(world, coll_iallreduce(NULL, &out, 1, COLL_INT64, COLL_SUM, world, &run) == -EINVAL);
		rank_assert(world, !run && strstr(coll_last_error(world), "in is NULL"));
		rank_assert(world, coll_isend(NULL, 1, COLL_INT64, 1, 0, world, &run) == -EINVAL);
		rank_assert(world, !run && strstr(coll_last_error(world), "data is NULL"));
	}
	rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world, &run));
	rank_must(world, coll_run_wait(&run));
	rank_assert(world, out == coll_ranks(world));
}

enum { MEMORY_BYTES = 64 << 20 };	/* of a run, as much scratch again */

/* Rank 0 has so much more address space. */
static void memory_limit(struct coll_group *world, rlim_t more)
{
	struct rlimit limit;
	char line[200] = "";
	long pages = 0;
	FILE *file;

	if (coll_rank(world))
		return;
	file = fopen("/proc/self/statm", "r");
	rank_assert(world, file && fgets(line, sizeof(line), file) && sscanf(line, "%ld", &pages) == 1);
	fclose(file);
	rank_assert(world, !getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = more == RLIM_INFINITY ? limit.rlim_max : pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	rank_assert(world, !setrlimit(RLIMIT_AS, &limit));
}

/* With progress by a thread: rank 0 has no memory to begin a run of ones, and some again when it starts one of twos. */
static void no_memory(struct coll_group *world)
{
	uint8_t *data = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct coll_run *run;
	int error = 0, done = 0;

	rank_assert(world, data != MAP_FAILED);
	memset(data, 1, MEMORY_BYTES);
	rank_must(world, coll_group_set(world, "allreduce", "butterfly"));
	rank_must(world, coll_barrier(world));
	memory_limit(world, MEMORY_BYTES / 4);
	rank_must(world, coll_iallreduce(COLL_IN_PLACE, data, MEMORY_BYTES, COLL_UINT8, COLL_SUM, world, &run));
	while (!coll_rank(world) && !done)
		error = coll_run_test(&run, &done);
	memory_limit(world, RLIM_INFINITY);
	if (!coll_rank(world)) {
		rank_assert(world, error == -ENOMEM);
		memset(data, 2, MEMORY_BYTES);
		rank_must(world, coll_iallreduce(COLL_IN_PLACE, data, MEMORY_BYTES, COLL_UINT8, COLL_SUM, world,
						 &run));
	}
	error = coll_run_wait(&run);
	rank_assert(world, error == -ENOMEM);
	rank_assert(world, strstr(coll_last_error(world), "rank 0"));
}

/* ---- words -------------------------------------------------------------------- */

/* The latest error is `error`, and what is said of it has this word. */
static void check_words(struct coll_context *context, int error, int expected, const char *word)
{
	struct coll_group *world = coll_world(context);

	if (error != expected)
		rank_fail(world, "%d instead of %d where %s is expected", error, expected, word);
	if (!strstr(coll_context_error(context), word))
		rank_fail(world, "the context says '%s' of %s", coll_context_error(context), word);
}

static void group_words(struct coll_context *context, int error, int expected, const char *word)
{
	struct coll_group *world = coll_world(context);

	check_words(context, error, expected, word);
	if (!strstr(coll_last_error(world), word))
		rank_fail(world, "the group says '%s' of %s", coll_last_error(world), word);
}

static void words_of_options(struct coll_context *context)
{
	static const char *const of_context[][2] = {
		{ "engine", "epoll" }, { "progress", "thread" }, { "spin", "1ms" },
		{ "address", "127.0.0.1" }, { "clusters", "off" }, { "link_policy", "rr" },
		{ "wan_streams", "2" }, { "buffer_bytes", "1M" }, { "circuits", "off" },
	};
	struct coll_group *world = coll_world(context);
	size_t i;

	for (i = 0; i < sizeof(of_context) / sizeof(*of_context); i++)
		group_words(context, coll_group_set(world, of_context[i][0], of_context[i][1]),
			    -EINVAL, of_context[i][0]);
	group_words(context, coll_group_set(world, "deadline", "soon"), -EINVAL, "deadline");
	group_words(context, coll_group_set(world, "colour", "red"), -EINVAL, "colour");
	rank_must(world, coll_group_set(world, "deadline", "20s"));
	rank_must(world, coll_group_set(world, "alpha", "20us"));
	rank_must(world, coll_group_set(world, "noise", "none"));
}

static void words(struct coll_context *context)
{
	struct coll_group *world = coll_world(context), *part;
	struct coll_counters counters = { .size = 3 };
	const int twice[] = { 0, 0 };
	enum coll_reduction op;
	int64_t data[RANKS_MAX] = { 0 };
	struct coll_run *run;

	words_of_options(context);
	group_words(context, coll_barrier(world) | coll_bcast(data, 1, COLL_INT64, 99, world),
		    -EINVAL, "root (99)");
	/* 16 TiB of scratch: no machine has it, and no earlier words are left. */
	group_words(context, coll_allreduce(COLL_IN_PLACE, data, 1ull << 44, COLL_UINT8, COLL_SUM,
					    world), -ENOMEM, "allreduce: memory");
	group_words(context, coll_group_from_ranks(world, twice, 2, &part), -EINVAL, "ranks[1] (0)");
	check_words(context, coll_op_create(context, NULL, NULL, 1, &op), -EINVAL, "op_create");
	check_words(context, coll_op_free(context, 4711), -EINVAL, "op_free: op (4711)");
	check_words(context, coll_counters(context, &counters), -EINVAL, "counters: size (3)");

	rank_must(world, coll_barrier(world));
	if (coll_rank(world) == 1)
		usleep(300000);
	rank_must(world, coll_allreduce_init(data, data + 1, 1, COLL_INT64, COLL_SUM, world, &run));
	rank_must(world, coll_run_start(run));
	if (coll_rank(world) == 0) {
		group_words(context, coll_run_start(run), -EBUSY, "run_start: the run is in flight");
		group_words(context, coll_run_free(&run), -EBUSY, "run_free: the run is in flight");
	}
	rank_must(world, coll_run_wait(&run));
	rank_must(world, coll_run_free(&run));
	rank_must(world, coll_iallreduce(data, data + 1, 1, COLL_INT64, COLL_SUM, world, &run));
	group_words(context, coll_run_start(run), -EINVAL, "run_start: the run is not persistent");
	rank_must(world, coll_run_wait(&run));
}

/* ---- close --------------------------------------------------------------------- */

/*
 * Rank 0 leaves with handles of each kind; a run of its own is in flight, which never ends: the other one leaves
 * without it. It does not wait for that until the deadline.
 */
static void close_in_flight(struct coll_context *context)
{
	static int64_t in = 1, out[3];
	struct coll_group *world = coll_world(context), *pair;
	struct coll_run *ended, *persistent, *flying;

	rank_must(world, coll_iallreduce(&in, &out[0], 1, COLL_INT64, COLL_SUM, world, &ended));
	rank_must(world, coll_allreduce_init(&in, &out[1], 1, COLL_INT64, COLL_SUM, world,
					     &persistent));
	rank_must(world, coll_barrier(world));
	rank_must(world, coll_group_split(world, coll_rank(world) / 2, 0, &pair));
	if (coll_rank(pair) == 0)
		rank_must(pair, coll_iallreduce(&in, &out[2], 1, COLL_INT64, COLL_SUM, pair,
						&flying));
	else
		usleep(300000);
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
	/* The script's patience is a minute: nothing here lasts until the deadline. */
	struct coll_context *context = rank_open("deadline=100s");
	struct coll_group *world = coll_world(context);

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "ignored"))
		ignored(world);
	else if (!strcmp(argv[1], "overlap"))
		overlap(world);
	else if (!strcmp(argv[1], "missing"))
		missing(world);
	else if (!strcmp(argv[1], "memory"))
		no_memory(world);
	else if (!strcmp(argv[1], "words"))
		words(context);
	else if (!strcmp(argv[1], "close"))
		close_in_flight(context);
	else if (!strcmp(argv[1], "deadline"))
		deadline(world);
	else if (!strcmp(argv[1], "fork"))
		children(context);
	else
		thread(world);
	coll_close(context);
	return 0;
}
