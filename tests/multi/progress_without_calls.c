// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * progress_without_calls [SECONDS]: a collective of several rounds completes while the
 * application makes no call, within SECONDS (60). For modes of progress that need no calls.
 * Then a run that is canceled under way, and the end of the group.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/rank.h"

enum { COUNT = 100000, WARMUP = 3, TIMES = 2 };

/* Looks at nothing but the memory. */
static bool comes(const volatile double *out, double seconds)
{
	const struct timespec while_away = { .tv_nsec = 10000000 };
	int i = 0, looks;

	for (looks = seconds * 100; looks; looks--) {
		while (i < COUNT && out[i] >= 0)
			i++;
		if (i == COUNT)
			return true;
		nanosleep(&while_away, NULL);
	}
	return false;
}

static void check_unattended(struct coll_group *group, double *in, double *out, double seconds)
{
	const int ranks = coll_ranks(group);
	struct coll_run *run;
	int i;

	for (i = 0; i < COUNT; i++) {
		in[i] = coll_rank(group) + i % 8;
		out[i] = -1;
	}
	rank_must(group, coll_barrier(group));
	rank_must(group, coll_iallreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, group, &run));
	rank_assert(group, comes(out, seconds));
	rank_must(group, coll_run_wait(&run));
	for (i = 0; i < COUNT; i++)
		rank_assert(group, out[i] == ranks * (ranks - 1) / 2. + ranks * (i % 8));
}

/* Rank 0 never calls it: it cannot end by itself. */
static void check_cancel(struct coll_group *group, double *in, double *out)
{
	struct coll_run *run = NULL;
	int error;

	if (!coll_rank(group))
		return;
	error = coll_iallreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, group, &run);
	if (!error) {		/* else another has canceled it already */
		coll_run_cancel(run);
		error = coll_run_wait(&run);
	}
	rank_assert(group, error == -ECANCELED);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 60;
	struct coll_context *context = rank_open(NULL);
	double *in = calloc(COUNT, sizeof(*in)), *out = calloc(COUNT, sizeof(*out));
	struct coll_group *world = coll_world(context), *group;
	int i;

	rank_must(world, coll_group_set(world, "allreduce", "ring"));
	for (i = 0; i < WARMUP; i++)	/* makes the links */
		rank_must(world, coll_allreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, world));
	for (i = 0; i < TIMES; i++)
		check_unattended(world, in, out, seconds);
	rank_must(world, coll_group_dup(world, &group));
	rank_must(group, coll_barrier(group));
	rank_must(world, coll_barrier(world));	/* all have left that one: none is canceled in it */
	check_cancel(group, in, out);
	rank_must(world, coll_barrier(world));	/* a rank that leaves early is blamed for that */
	coll_group_free(group);
	coll_close(context);
	free(in);
	free(out);
	return 0;
}
