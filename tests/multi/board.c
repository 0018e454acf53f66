// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * board WAY [SEED]: short messages of the same bytes to several ranks are posted on boards (libcoll/exec/board.h).
 *
 *	mixes	the same random sequence of calls in each rank: blocking and not, of the world and of halves of it,
 *		with pauses of each rank's own. Says on rank 0 how much of it went by boards
 *	leaves	rank 0 broadcasts and closes its context before the others come
 *	dies	... or dies: who gets no error gets its bytes
 *	ahead	rank 0 is many broadcasts ahead: entries run out
 *	frees	groups come and go, more than there are boards at a time
 *	copies	rank 1 shares no memory with the others
 *	soon	the first calls of a program, which block; says when the first was posted
 *	waits	... or are waited for, of which one more begins before
 *	tests	... or are tested
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { ELEMENTS = 256, WARM = 50, CALLS = 1500, AHEAD = 40, PENDING = 3, ROUNDS = 12, GROUPS = 9, FIRST = 30,
       PAUSE_US = 300000 };

static unsigned int agreed, own;	/* seeds: of all ranks, and of this one */

static int drawn(unsigned int *seed, int below)
{
	return rand_r(seed) / 7 % below;
}

static struct coll_counters counters_of(struct coll_context *context)
{
	struct coll_counters counters = { .size = sizeof(counters) };

	rank_must(coll_world(context), coll_counters(context, &counters));
	return counters;
}

/* So that this rank is late, or looks, or sleeps, or others do. */
static void pause_sometimes(void)
{
	const int way = drawn(&own, 60);
	const double until = rank_seconds() + 20e-6 * drawn(&own, 10);

	if (!way)
		usleep(drawn(&own, 400));
	else if (way < 6)
		while (rank_seconds() < until)
			;
}

/* ---- calls whose results are known --------------------------------------------------------- */

struct called {
	struct coll_group *group;
	struct coll_run *run;			/* NULL: it is done */
	int kind, elements, value;
	int64_t in[ELEMENTS], out[4 * ELEMENTS * 4];
};

static void call_check(const struct called *called)
{
	const int ranks = coll_ranks(called->group), n = called->elements;
	int i;

	for (i = 0; called->kind == 0 && i < n; i++)
		rank_assert(called->group, called->out[i] == (int64_t)ranks * called->value + ranks * (ranks - 1) / 2);
	for (i = 0; called->kind == 1 && i < n * ranks; i++)
		rank_assert(called->group, called->out[i] == called->value + i / n);
	for (i = 0; called->kind == 2 && i < n; i++)
		rank_assert(called->group, called->out[i] == called->value);
	for (i = 0; called->kind == 4 && i < n * ranks; i++)
		rank_assert(called->group, called->out[i] == called->value + 100 * (i / n) + coll_rank(called->group));
}

static void call_begin(struct called *called, struct coll_group *group, bool blocks)
{
	const int most = drawn(&agreed, 4) ? 4 : ELEMENTS, kind = drawn(&agreed, 5), ranks = coll_ranks(group);
	const int n = 1 + drawn(&agreed, kind == 4 && most > ELEMENTS / ranks ? ELEMENTS / ranks : most);
	const int root = drawn(&agreed, ranks);
	int64_t *in = called->in, *out = called->out;
	int i;

	called->group = group;
	called->run = NULL;
	called->elements = n;
	called->value = drawn(&agreed, 1000);
	called->kind = kind;
	for (i = 0; i < n; i++)
		in[i] = called->value + coll_rank(group);
	for (i = 0; kind == 4 && i < n * ranks; i++)
		in[i] = called->value + 100 * coll_rank(group) + i / n;
	memset(out, 0xff, n * ranks * sizeof(*out));
	for (i = 0; called->kind == 2 && coll_rank(group) == root && i < n; i++)
		out[i] = called->value;
	if (called->kind == 0)
		rank_must(group, blocks ? coll_allreduce(in, out, n, COLL_INT64, COLL_SUM, group) :
					  coll_iallreduce(in, out, n, COLL_INT64, COLL_SUM, group, &called->run));
	else if (called->kind == 1)
		rank_must(group, blocks ? coll_allgather(in, out, n, COLL_INT64, group) :
					  coll_iallgather(in, out, n, COLL_INT64, group, &called->run));
	else if (called->kind == 2)
		rank_must(group, blocks ? coll_bcast(out, n, COLL_INT64, root, group) :
					  coll_ibcast(out, n, COLL_INT64, root, group, &called->run));
	else if (called->kind == 3)
		rank_must(group, blocks ? coll_barrier(group) : coll_ibarrier(group, &called->run));
	else
		rank_must(group, blocks ? coll_alltoall(in, out, n, COLL_INT64, group) :
					  coll_ialltoall(in, out, n, COLL_INT64, group, &called->run));
	if (blocks)
		call_check(called);
}

static void call_end(struct called *called)
{
	if (!called->run)
		return;
	rank_must(called->group, coll_run_wait(&called->run));
	call_check(called);
}

static struct coll_group *half_of(struct coll_group *world, int color)
{
	struct coll_group *half;

	rank_must(world, coll_group_split(world, color, coll_rank(world), &half));
	return half;
}

/* Calls that do not block are PENDING at most, and end in any order of the program's. */
static void mixes(struct coll_context *context, struct coll_group *world)
{
	static struct called pending[PENDING], blocking;
	struct coll_group *half = half_of(world, coll_rank(world) < (coll_ranks(world) + 1) / 2);
	struct coll_counters counters;
	int i, at;

	for (i = 0; i < CALLS; i++) {
		/* Stretches of blocking calls alone: such are executed in order. */
		const bool blocks = i / 40 % 2 || drawn(&agreed, 3);
		const bool in_half = !drawn(&agreed, 4);

		pause_sometimes();
		at = drawn(&agreed, PENDING);
		if (i / 40 % 2 || !blocks)
			call_end(&pending[at]);
		for (at = 0; i % 80 == 40 && at < PENDING; at++)
			call_end(&pending[at]);
		at = 0;
		while (at < PENDING && pending[at].run)
			at++;
		call_begin(blocks || at == PENDING ? &blocking : &pending[at], in_half ? half : world,
			   blocks || at == PENDING);
	}
	for (at = 0; at < PENDING; at++)
		call_end(&pending[at]);
	counters = counters_of(context);
	if (!coll_rank(world))
		printf("posted %llu sent %llu early %llu\n", (unsigned long long)counters.published_bytes,
		       (unsigned long long)counters.sent_bytes, (unsigned long long)counters.unexpected);
	coll_group_free(half);
}

/* ---- one rank's end, and groups' ---------------------------------------------------------------- */

static int bcast(struct coll_group *world, int64_t value)
{
	int64_t data = coll_rank(world) ? -1 : value;
	const int error = coll_bcast(&data, 1, COLL_INT64, 0, world);

	if (!error)
		rank_assert(world, data == value);
	return error;
}

static void frees(struct coll_context *context, struct coll_group *world)
{
	uint64_t before = 0, posted = 0;
	int round, i, call;

	for (round = 0; round < ROUNDS; round++) {
		struct coll_group *group[GROUPS];

		before = counters_of(context).published_bytes;
		for (i = 0; i < GROUPS; i++)
			group[i] = half_of(world, 0);
		for (call = 0; call < 2 * WARM * GROUPS; call++)
			if (call / GROUPS % 2)
				rank_must(world, bcast(group[call % GROUPS], call));
			else
				rank_must(world, coll_barrier(group[call % GROUPS]));
		posted = counters_of(context).published_bytes - before;
		for (i = 0; i < GROUPS; i++)
			coll_group_free(group[i]);
		rank_must(world, coll_barrier(world));
		usleep(2000);
	}
	if (!coll_rank(world))
		printf("posted %llu\n", (unsigned long long)posted);
}

/* All have each other's boards, and use them. */
static void warm(struct coll_context *context, struct coll_group *world)
{
	int i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < WARM; i++) {
			rank_must(world, bcast(world, i));
			rank_must(world, coll_barrier(world));
		}
		usleep(3000);
	}
	rank_assert(world, coll_rank(world) || counters_of(context).published_bytes > 0);
}

static int ends(const char *way, struct coll_context *context, struct coll_group *world)
{
	const bool root = !coll_rank(world);
	uint64_t before;
	int i;

	warm(context, world);
	before = counters_of(context).published_bytes;
	if (!root)
		usleep(PAUSE_US);
	for (i = 0; i < (strcmp(way, "ahead") ? 3 : AHEAD); i++)
		if (bcast(world, 1000 + i)) {
			rank_assert(world, !root && !strcmp(way, "dies"));
			puts("error");
			return 0;
		}
	rank_assert(world, !root || counters_of(context).published_bytes > before);
	if (root && !strcmp(way, "dies"))
		kill(getpid(), SIGKILL);
	puts("right");
	fflush(stdout);
	coll_close(context);
	return 0;
}

/* ---- the first calls ---------------------------------------------------------------------------- */

/* One is under way while the next one begins. */
static void sum_in_turn(struct coll_group *world, const char *way, struct coll_run **before, int call)
{
	static int64_t in[2], out[2];
	const int at = call % 2, ranks = coll_ranks(world);
	struct coll_run *run = NULL;
	int done = 0;

	in[at] = call + coll_rank(world);
	if (!strcmp(way, "soon"))
		rank_must(world, coll_allreduce(&in[at], &out[at], 1, COLL_INT64, COLL_SUM, world));
	else
		rank_must(world, coll_iallreduce(&in[at], &out[at], 1, COLL_INT64, COLL_SUM, world, &run));
	while (!strcmp(way, "tests") && !done)
		rank_must(world, coll_run_test(&run, &done));
	if (*before) {
		rank_must(world, coll_run_wait(before));
		rank_assert(world, out[!at] == (int64_t)ranks * (call - 1) + ranks * (ranks - 1) / 2);
	}
	if (!run)
		rank_assert(world, out[at] == (int64_t)ranks * call + ranks * (ranks - 1) / 2);
	*before = run;
}

static void begins(const char *way, struct coll_context *context, struct coll_group *world)
{
	struct coll_run *run = NULL;
	int call, first = 0;

	for (call = 1; call <= FIRST; call++) {
		sum_in_turn(world, way, &run, call);
		if (!first && counters_of(context).published_bytes)
			first = call;
	}
	if (run)
		rank_must(world, coll_run_wait(&run));
	if (!coll_rank(world))
		printf("posted %d\n", first);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "", *rank = getenv("COLL_RANK");
	const bool alone = !strcmp(way, "copies") && rank && !strcmp(rank, "1");
	struct coll_context *context = rank_open(alone ? "memory=copy" : "");
	struct coll_group *world = coll_world(context);

	agreed = argc > 2 ? atoi(argv[2]) : 1;
	own = agreed * 100 + coll_rank(world);
	if (!strcmp(way, "frees"))
		frees(context, world);
	else if (!strcmp(way, "soon") || !strcmp(way, "waits") || !strcmp(way, "tests"))
		begins(way, context, world);
	else if (!strcmp(way, "mixes") || alone || !strcmp(way, "copies"))
		mixes(context, world);
	else
		return ends(way, context, world);
	if (!coll_rank(world))
		puts("right");
	fflush(stdout);
	coll_close(context);
	return 0;
}
