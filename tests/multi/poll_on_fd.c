// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A program that sleeps in its own poll(2) on coll_fd() is woken by what it waits for. Nothing
 * else would wake it.
 *
 *	poll_on_fd [late|absent]
 *
 * late: rank 0 joins 0.3 s after the others, which have looked for its address. absent: rank 0
 * does not call before the deadline of the others.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/coll.h"

enum { RUNS = 30, PATIENCE_MS = 5000 };

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

/* The run ends by its deadline, and is not waited for in a call. */
static int run_absent(struct coll_context *context)
{
	struct pollfd poll_fd = { .fd = coll_fd(context), .events = POLLIN };
	int mine = 1, sum, done = 0, error;
	struct coll_run *run;

	if (!coll_rank(coll_world(context))) {
		sleep(3);
		return 0;
	}
	error = coll_iallreduce(&mine, &sum, 1, COLL_INT32, COLL_SUM, coll_world(context), &run);
	while (!error && poll(&poll_fd, 1, PATIENCE_MS) > 0)
		error = coll_run_test(&run, &done);
	if (error == -ETIMEDOUT)
		return 0;
	fprintf(stderr, "the deadline does not wake: %s\n", coll_last_error(coll_world(context)));
	return 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *rank = getenv("COLL_RANK");
	struct coll_context *context;
	int number, failed = 0;

	if (!strcmp(mode, "late") && rank && !atoi(rank))
		usleep(300000);
	if (coll_open(strcmp(mode, "absent") ? "deadline=20s" : "deadline=1s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	if (!strcmp(mode, "absent")) {
		failed = run_absent(context);
		coll_close(context);
		return failed;
	}
	for (number = 0; number < RUNS && !failed; number++)
		failed = run_once(context, number);
	coll_close(context);
	return failed;
}
