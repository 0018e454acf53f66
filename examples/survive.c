// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Failures: the last rank dies in the middle of its work. The others get an error that names
 * it, make a group of the living ranks, and continue. Start it with coll run --keep-going, which
 * would otherwise end the job with the first failed rank.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <coll.h>

enum { STEPS = 6, FATAL_STEP = 3, FAILED_MAX = 64 };

/* A new group of the living ranks; the old one is freed. */
static int go_on_without(struct coll_group **group, struct coll_group *world)
{
	struct coll_group *survivors;
	int failed[FAILED_MAX], count, error;

	coll_revoke(*group);	/* ranks that have not noticed leave their calls, too */
	error = coll_shrink(*group, &survivors);
	if (error)
		return error;
	count = coll_failed_ranks(*group, failed, FAILED_MAX);
	if (coll_rank(survivors) == 0)
		printf("lost %d rank, the first is %d; %d go on\n", count, count ? failed[0] : -1,
		       coll_ranks(survivors));
	if (*group != world)
		coll_group_free(*group);
	*group = survivors;
	return 0;
}

static int work(struct coll_group *world, double *total)
{
	struct coll_group *group = world;
	const int fatal = coll_rank(world) == coll_ranks(world) - 1;
	double mine = coll_rank(world), sum;
	int error = 0, step = 0;

	while (!error && step < STEPS) {
		if (fatal && step == FATAL_STEP)
			kill(getpid(), SIGKILL);
		error = coll_allreduce(&mine, &sum, 1, COLL_DOUBLE, COLL_SUM, group);
		if (!error) {
			*total += sum;
			step++;
		} else {
			error = go_on_without(&group, world);
		}
	}
	if (error)
		fprintf(stderr, "%s: %s\n", coll_strerror(error), coll_last_error(group));
	if (group != world)
		coll_group_free(group);
	return error;
}

int main(void)
{
	struct coll_context *context;
	struct coll_group *world;
	double total = 0;
	int error;

	if (coll_open("deadline=10s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	world = coll_world(context);
	error = work(world, &total);
	if (!error)
		printf("rank %d: total %g\n", coll_rank(world), total);
	coll_close(context);
	return error != 0;
}
