// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Nonblocking: two reductions are under way while this rank computes. It polls them between
 * pieces of its work, and takes whichever ends first.
 */
#include <stdio.h>
#include <coll.h>

enum { COUNT = 100000, PIECES = 50 };

static double in[COUNT], sum[COUNT], greatest[COUNT];

/* A piece of work that has nothing to do with the data under way. */
static double compute(int piece)
{
	double result = 0;
	int i;

	for (i = 1; i <= 20000; i++)
		result += 1.0 / ((double)i * (piece + 1));
	return result;
}

static int reduce_and_compute(struct coll_group *group, double *work)
{
	struct coll_run *run[2] = { NULL, NULL };
	int error, done = 0, piece;
	size_t index, left;

	error = coll_iallreduce(in, sum, COUNT, COLL_DOUBLE, COLL_SUM, group, &run[0]);
	if (!error)
		error = coll_iallreduce(in, greatest, COUNT, COLL_DOUBLE, COLL_MAX, group, &run[1]);
	for (piece = 0; !error && piece < PIECES; piece++) {
		*work += compute(piece);
		if (!done)	/* polls the engine; the runs are freed when both have ended */
			error = coll_run_testall(run, 2, &done);
	}
	for (left = 2; !error && left; left--) {
		error = coll_run_waitany(run, 2, &index);
		if (index == 2)
			break;	/* both have ended before */
	}
	return error;
}

int main(void)
{
	struct coll_context *context;
	struct coll_group *world;
	double work = 0;
	int error, i;

	if (coll_open("deadline=10s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	world = coll_world(context);
	for (i = 0; i < COUNT; i++)
		in[i] = coll_rank(world) + i;
	error = reduce_and_compute(world, &work);
	if (error)
		fprintf(stderr, "%s: %s\n", coll_strerror(error), coll_last_error(world));
	else
		printf("rank %d: last sum %g, last greatest %g, own work %.3f\n", coll_rank(world),
		       sum[COUNT - 1], greatest[COUNT - 1], work);
	coll_close(context);
	return error != 0;
}
