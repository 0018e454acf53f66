// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * agree_and_shrink WHEN RANK ...: the ranks named are killed before the others agree
 * ("before"), while they agree ("during"), do not call ("absent"), or stand still while some of
 * the others wait for them in a call that the rest has passed ("passed"). The others agree,
 * shrink the group and compute on. "set": nobody is, and what was set on the group holds in the smaller one.
 * "survived" says that all checks held.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { ROUNDS = 3, CALLS_SAMPLED = 300 };

static void die(int signal)
{
	(void)signal;
	raise(SIGKILL);
}

/* Long enough for the others to notice, and to decide without this rank. */
static void stand_still(void)
{
	usleep(10000000);
	_Exit(0);
}

static void die_later(int us)
{
	struct itimerval timer = { .it_value = { .tv_usec = us } };

	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* All survivors tell each other what they hold: it must be the same. */
static void check_same(struct coll_group *group, uint64_t value)
{
	const int ranks = coll_ranks(group);
	uint64_t all[ranks];
	int i;

	rank_must(group, coll_allgather(&value, all, 1, COLL_UINT64, group));
	for (i = 0; i < ranks; i++)
		rank_assert(group, all[i] == value);
}

static void check_members(struct coll_group *group, int world_rank, uint64_t victims)
{
	const int ranks = coll_ranks(group);
	int order[ranks], i;

	rank_must(group, coll_allgather(&world_rank, order, 1, COLL_INT32, group));
	for (i = 0; i < ranks; i++) {
		rank_assert(group, !(victims >> order[i] & 1));
		rank_assert(group, !i || order[i] > order[i - 1]);
	}
}

/*
 * Shrinks until all victims are out. One that dies only after it has agreed is
 * in the new group; all see that by its size, and wait for the death.
 */
static struct coll_group *shrink_until_good(struct coll_group *world, uint64_t victims)
{
	const int survivors = coll_ranks(world) - __builtin_popcountll(victims);
	struct coll_group *group = world, *next;
	int i;

	for (i = 0; i < 5; i++) {
		rank_must(group, coll_shrink(group, &next));
		group = next;
		if (coll_ranks(group) == survivors)
			return group;
		while (!coll_barrier(group))
			;
	}
	rank_fail(world, "no group holds");
}

/* Options that are set while messages are sampled (measure=auto) are those of the survivors. */
static void check_options(struct coll_group *world)
{
	struct coll_group *survivors;
	double in = 1, out;
	struct coll_run *run;
	int i;

	for (i = 0; i < CALLS_SAMPLED; i++)
		rank_must(world, coll_allreduce(&in, &out, 1, COLL_DOUBLE, COLL_SUM, world));
	rank_must(world, coll_group_set(world, "noise", "100x10us"));
	rank_must(world, coll_group_set(world, "allreduce", "butterfly-redundant"));
	rank_must(world, coll_shrink(world, &survivors));
	rank_must(survivors, coll_allreduce_init(&in, &out, 1, COLL_DOUBLE, COLL_SUM, survivors, &run));
	if (!strstr(coll_run_explain(run), "noise 100x10us"))
		rank_fail(survivors, "noise that was set is not used: %s", coll_run_explain(run));
	rank_must(survivors, coll_run_free(&run));
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=4s");
	struct coll_group *world = coll_world(context), *group;
	const int rank = coll_rank(world);
	const char *when = argc > 1 ? argv[1] : "";
	uint64_t victims = 0, flag = ~(1ull << rank);
	int i, error = 0;

	for (i = 2; i < argc; i++)
		victims |= 1ull << atoi(argv[i]);
	rank_must(world, coll_barrier(world));
	if (!strcmp(when, "set"))
		check_options(world);
	if (victims >> rank & 1) {
		if (!strcmp(when, "before")) {
			/* In it all have come past the one above; it fails where another victim was quicker. */
			error = coll_barrier(world);
			raise(SIGKILL);
		}
		if (!strcmp(when, "absent") || !strcmp(when, "passed"))
			stand_still();
		die_later(1000 * (rank + 1));
	}
	if (!strcmp(when, "before")) {
		while (!error)
			error = coll_barrier(world);
		rank_assert(world, error == -ECONNRESET);
	}
	if (!strcmp(when, "passed")) {
		int mine = rank, all[coll_ranks(world)];

		error = coll_gather(&mine, all, 1, COLL_INT32, 1, world);
		rank_assert(world, error == (rank == 1 ? -ETIMEDOUT : error));
	}
	rank_must(world, coll_agree(world, &flag));
	rank_assert(world, !(flag >> rank & 1));
	if (!strcmp(when, "before"))	/* the dead had no say */
		rank_assert(world, (flag & victims) == victims);
	group = shrink_until_good(world, victims);
	check_members(group, rank, victims);
	check_same(group, flag);
	for (i = 0; i < ROUNDS; i++) {
		flag = ~(1ull << rank);
		rank_must(group, coll_agree(group, &flag));
		rank_assert(group, __builtin_popcountll(~flag) == coll_ranks(group));
		check_same(group, flag);
	}
	coll_close(context);
	printf("survived\n");
	return 0;
}
