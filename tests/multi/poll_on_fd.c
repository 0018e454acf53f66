// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A program that sleeps in its own poll(2) on coll_fd() is woken by delayed messages. Nothing
 * else would wake it.
 */
#include <poll.h>
#include <stdio.h>

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

int main(void)
{
	struct coll_context *context;
	int number, failed = 0;

	if (coll_open("deadline=20s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	for (number = 0; number < RUNS && !failed; number++)
		failed = run_once(context, number);
	coll_close(context);
	return failed;
}
