// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * any_run DIRECTORY: several runs are waited for and tested together. The last rank joins
 * a run late, when the others have written a file to say that they need it no earlier.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { SLOW, NONE, QUICK, RUNS };	/* places in runs[]; NONE holds NULL */
enum { CROSSED_BYTES = 100000 };

static const char *directory;

static bool is_last(const struct coll_group *group)
{
	return coll_rank(group) == coll_ranks(group) - 1;
}

/* ---- news that go around the library ------------------------------------------ */

static void name_of(char name[256], const char *what, int rank)
{
	snprintf(name, 256, "%s/%s.%d", directory, what, rank);
}

static void say(const struct coll_group *world, const char *what)
{
	char name[256];
	int fd;

	name_of(name, what, coll_rank(world));
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	rank_assert(world, fd >= 0);
	close(fd);
}

/* The last rank waits until all others have checked it; meanwhile its runs continue. */
static void hear(struct coll_context *context, const struct coll_group *world, const char *what)
{
	char name[256];
	int rank;

	for (rank = 0; rank < coll_ranks(world) - 1; rank++) {
		name_of(name, what, rank);
		while (access(name, F_OK)) {
			rank_must(world, coll_progress(context));
			usleep(1000);
		}
	}
}

/* ---- pairs of runs ------------------------------------------------------------ */

struct pair {
	struct coll_context *context;
	struct coll_group *world, *group[RUNS];
	struct coll_run *runs[RUNS];
	uint64_t in, out[RUNS];
};

/* All start the quick one, then the slow one: the last rank when it has heard `what`. */
static void pair_start(struct pair *pair, const char *what)
{
	static const int order[] = { QUICK, SLOW };
	int i;

	pair->in = 1;
	pair->runs[NONE] = NULL;
	for (i = 0; i < 2; i++) {
		const int which = order[i];

		if (which == SLOW && is_last(pair->world))
			hear(pair->context, pair->world, what);
		rank_must(pair->world,
			  coll_iallreduce(&pair->in, &pair->out[which], 1, COLL_UINT64, COLL_SUM,
					  pair->group[which], &pair->runs[which]));
	}
}

static void check_sum(struct pair *pair, int which)
{
	rank_assert(pair->world, !pair->runs[which]);
	rank_assert(pair->world, pair->out[which] == (uint64_t)coll_ranks(pair->world));
}

/* The rest, in any order; then there is none. */
static void check_drained(struct pair *pair)
{
	size_t index, rounds = 0;
	int done = 0;

	do {
		rank_must(pair->world, coll_run_waitany(pair->runs, RUNS, &index));
	} while (index < RUNS && ++rounds < RUNS);
	rank_assert(pair->world, index == RUNS);
	rank_must(pair->world, coll_run_testany(pair->runs, RUNS, &index, &done));
	rank_assert(pair->world, index == RUNS && done);
	check_sum(pair, SLOW);
	check_sum(pair, QUICK);
}

static void check_waitany(struct pair *pair)
{
	size_t index;

	pair_start(pair, "waitany");
	if (!is_last(pair->world)) {
		rank_must(pair->world, coll_run_waitany(pair->runs, RUNS, &index));
		rank_assert(pair->world, index == QUICK);
		check_sum(pair, QUICK);
		rank_assert(pair->world, pair->runs[SLOW]);
		say(pair->world, "waitany");
	}
	check_drained(pair);
}

static void check_testany(struct pair *pair)
{
	size_t index = 0;
	int done = 0;

	pair_start(pair, "testany");
	if (!is_last(pair->world)) {
		while (!done)
			rank_must(pair->world, coll_run_testany(pair->runs, RUNS, &index, &done));
		rank_assert(pair->world, index == QUICK);
		rank_must(pair->world, coll_run_testany(pair->runs, RUNS, &index, &done));
		rank_assert(pair->world, !done && index == RUNS);
		say(pair->world, "testany");
	}
	check_drained(pair);
}

static void check_testall(struct pair *pair)
{
	int done = 0, i;

	pair_start(pair, "testall");
	for (i = 0; !is_last(pair->world) && i < 100; i++) {
		rank_must(pair->world, coll_run_testall(pair->runs, RUNS, &done));
		rank_assert(pair->world, !done && pair->runs[QUICK] && pair->runs[SLOW]);
	}
	if (!is_last(pair->world))
		say(pair->world, "testall");
	while (!done)
		rank_must(pair->world, coll_run_testall(pair->runs, RUNS, &done));
	check_sum(pair, SLOW);
	check_sum(pair, QUICK);
}

/* ---- persistent runs ------------------------------------------------------------ */

/* Each end is reported once; runs that have not been started are skipped. */
static void check_persistent(struct pair *pair)
{
	struct coll_run *runs[RUNS] = { NULL };
	size_t index;
	int i, round;

	for (i = 0; i < RUNS; i++)
		rank_must(pair->world, coll_barrier_init(pair->world, &runs[i]));
	for (round = 0; round < 3; round++) {
		int seen = 0;

		rank_must(pair->world, coll_run_start(runs[0]));
		rank_must(pair->world, coll_run_start(runs[2]));
		for (i = 0; i < 2; i++) {
			rank_must(pair->world, coll_run_waitany(runs, RUNS, &index));
			rank_assert(pair->world, index < RUNS && runs[index]);
			seen |= 1 << index;
		}
		rank_assert(pair->world, seen == 5);
		rank_must(pair->world, coll_run_waitany(runs, RUNS, &index));
		rank_assert(pair->world, index == RUNS);
	}
	for (i = 0; i < RUNS; i++)
		rank_must(pair->world, coll_run_free(&runs[i]));
}

/* ---- errors ---------------------------------------------------------------------- */

/* The run that has the nearest deadline ends first, and the other is not touched by it. */
static void check_deadline(struct pair *pair)
{
	struct coll_group *lonely;
	struct coll_run *runs[RUNS] = { NULL };
	size_t index;

	rank_must(pair->world, coll_group_dup(pair->world, &lonely));
	if (!is_last(pair->world)) {
		rank_must(pair->world, coll_ibarrier(lonely, &runs[QUICK]));
		rank_must(pair->world, coll_run_deadline(runs[QUICK], 100000000));
		rank_must(pair->world, coll_ibarrier(pair->group[SLOW], &runs[SLOW]));
		rank_assert(pair->world, coll_run_waitany(runs, RUNS, &index) == -ETIMEDOUT);
		rank_assert(pair->world, index == QUICK && !runs[QUICK] && runs[SLOW]);
		say(pair->world, "deadline");
	} else {
		hear(pair->context, pair->world, "deadline");
		rank_must(pair->world, coll_ibarrier(pair->group[SLOW], &runs[SLOW]));
	}
	rank_must(pair->world, coll_run_waitall(runs, RUNS));
	coll_group_free(lonely);
}

/*
 * One rank waits for a message in the first context before its own in the second has gone, the other the
 * other way round: neither would come if only the context of one run was looked at.
 */
static void check_crossed(struct pair *pair)
{
	static uint8_t in[CROSSED_BYTES], out[CROSSED_BYTES];
	const int rank = coll_rank(pair->world), other = !rank;
	struct coll_context *second = rank_open(NULL);
	struct coll_group *worlds[] = { pair->world, coll_world(second) };
	struct coll_group *from = worlds[rank % 2], *to = worlds[!(rank % 2)];
	struct coll_run *runs[2];

	memset(in, 1 + rank, sizeof(in));
	if (rank < 2) {
		rank_must(from, coll_irecv(out, sizeof(out), COLL_UINT8, other, 0, from, NULL, &runs[0]));
		rank_must(to, coll_isend(in, sizeof(in), COLL_UINT8, other, 0, to, &runs[1]));
		rank_must(from, coll_run_waitall(runs, 2));
		rank_assert(from, !runs[0] && !runs[1] && out[0] == 1 + other);
	}
	coll_close(second);
}

/* Of runs of two contexts no first one can be waited for: this one and a job of one rank. */
static void check_contexts(struct pair *pair)
{
	struct coll_context *alone;
	struct coll_run *runs[2];
	size_t index = 7;
	int done = 0;

	rank_must(pair->world, coll_ibarrier(pair->world, &runs[0]));
	clearenv();
	rank_must(pair->world, coll_open(NULL, &alone));
	rank_assert(pair->world, coll_ranks(coll_world(alone)) == 1);
	rank_must(pair->world, coll_ibarrier(coll_world(alone), &runs[1]));
	rank_assert(pair->world, coll_run_waitany(runs, 2, &index) == -EINVAL && index == 2);
	rank_assert(pair->world, coll_run_testany(runs, 2, &index, &done) == -EINVAL);
	done = 0;
	while (!done)
		rank_must(pair->world, coll_run_testall(runs, 2, &done));
	rank_assert(pair->world, !runs[0] && !runs[1]);
	coll_close(alone);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct pair pair = { .context = context, .world = coll_world(context) };

	if (argc != 2)
		return 2;
	directory = argv[1];
	rank_must(pair.world, coll_group_dup(pair.world, &pair.group[SLOW]));
	rank_must(pair.world, coll_group_dup(pair.world, &pair.group[QUICK]));
	check_waitany(&pair);
	check_testany(&pair);
	check_testall(&pair);
	check_persistent(&pair);
	if (coll_ranks(pair.world) > 1) {
		check_deadline(&pair);
		check_crossed(&pair);
	}
	check_contexts(&pair);
	coll_close(context);
	return 0;
}
