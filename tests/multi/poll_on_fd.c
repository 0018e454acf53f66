// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A program that sleeps in its own poll(2) on coll_fd() is woken by what it waits for. Nothing
 * else would wake it.
 *
 *	poll_on_fd [late|slow|absent|linked|canceled|closed]
 *
 * late: rank 0 joins 0.3 s after the others, which have looked for its address. slow: in each run
 * another rank is late, so the others sleep. absent: rank 0
 * does not call before the deadline of the others. linked: all have links, and only rank 0 calls.
 * canceled: its run is canceled from outside of a poll. closed: the others leave with a run in flight.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/coll.h"

enum { RUNS = 30, PATIENCE_MS = 5000, RANKS_MAX = 64, SLOW_US = 20000 };

static int run_once(struct coll_context *context, int number)
{
	struct pollfd poll_fd = { .fd = coll_fd(context), .events = POLLIN };
	struct coll_group *world = coll_world(context);
	int mine = coll_rank(world) + number, sum = 0, done = 0, error, i, expected = 0;
	struct coll_run *run;

	for (i = 0; i < coll_ranks(world); i++)
		expected += i + number;
	error = coll_iallreduce(&mine, &sum, 1, COLL_INT32, COLL_SUM, world, &run);
	while (!error && !done) {
		error = coll_run_test(&run, &done);
		if (!error && !done && poll(&poll_fd, 1, PATIENCE_MS) <= 0) {
			fprintf(stderr, "run %d: coll_fd() does not wake\n", number);
			return 1;
		}
	}
	if (!error && sum == expected)
		return 0;
	fprintf(stderr, "run %d: %s, sum %d, expected %d\n", number, coll_last_error(world), sum,
		expected);
	return 1;
}

/* All ranks are linked with all others. */
static int link_all(struct coll_group *world)
{
	int in[RANKS_MAX] = { 0 }, out[RANKS_MAX];

	return coll_ranks(world) > RANKS_MAX ? -EINVAL :
					       coll_alltoall(in, out, 1, COLL_INT32, world);
}

/* The run ends as it must, and is not waited for in a call. */
static int run_without(struct coll_context *context, bool calls, bool cancels, int expected)
{
	struct pollfd poll_fd = { .fd = coll_fd(context), .events = POLLIN };
	struct coll_group *world = coll_world(context);
	int mine = 1, sum, done = 0, error;
	struct coll_run *run;

	if (!calls) {
		sleep(3);
		return 0;
	}
	error = coll_iallreduce(&mine, &sum, 1, COLL_INT32, COLL_SUM, world, &run);
	if (!error && !coll_run_test(&run, &done) && cancels)
		error = coll_run_cancel(run);
	while (!error && poll(&poll_fd, 1, PATIENCE_MS) > 0)
		error = coll_run_test(&run, &done);
	if (error == expected)
		return 0;
	fprintf(stderr, "the end does not wake: %s\n", coll_last_error(world));
	return 1;
}

/* coll_close() ends it; if another rank has left meanwhile, it has failed. */
static void start_only(struct coll_group *world)
{
	static int mine = 1, sum;
	struct coll_run *run;
	int done;

	if (!coll_iallreduce(&mine, &sum, 1, COLL_INT32, COLL_SUM, world, &run) &&
	    coll_run_test(&run, &done))
		fprintf(stderr, "%s\n", coll_last_error(world));
}

static int run_mode(struct coll_context *context, const char *mode)
{
	struct coll_group *world = coll_world(context);
	const bool first = !coll_rank(world);

	if (!strcmp(mode, "absent"))
		return run_without(context, !first, false, -ETIMEDOUT);
	if (link_all(world)) {
		if (!first && !strcmp(mode, "canceled"))	/* rank 0 was done with it sooner */
			return 0;
		fprintf(stderr, "no links: %s\n", coll_last_error(world));
		return 1;
	}
	if (!strcmp(mode, "closed")) {
		if (first)
			sleep(3);
		else
			start_only(world);
		return 0;
	}
	return run_without(context, first, !strcmp(mode, "canceled"),
			   strcmp(mode, "canceled") ? -ETIMEDOUT : -ECANCELED);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *rank = getenv("COLL_RANK");
	const bool ends = *mode && strcmp(mode, "late") && strcmp(mode, "slow");
	struct coll_context *context;
	int number, failed = 0;

	if (!strcmp(mode, "late") && rank && !atoi(rank))
		usleep(300000);
	if (coll_open(ends ? "deadline=1s" : "deadline=20s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	if (ends) {
		failed = run_mode(context, mode);
		coll_close(context);
		return failed;
	}
	for (number = 0; number < RUNS && !failed; number++) {
		if (!strcmp(mode, "slow") && number % coll_ranks(coll_world(context)) ==
						     coll_rank(coll_world(context)))
			usleep(SLOW_US);
		failed = run_once(context, number);
	}
	coll_close(context);
	return failed;
}
