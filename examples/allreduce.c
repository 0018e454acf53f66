// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Blocking: every rank gets the sum over all ranks. */
#include <stdio.h>
#include <coll.h>

int main(void)
{
	struct coll_context *context;
	struct coll_group *world;
	double mine, sum;
	int error;

	if (coll_open("deadline=10s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	world = coll_world(context);
	mine = coll_rank(world) + 1;
	error = coll_allreduce(&mine, &sum, 1, COLL_DOUBLE, COLL_SUM, world);
	if (error)
		fprintf(stderr, "%s: %s\n", coll_strerror(error), coll_last_error(world));
	else
		printf("rank %d of %d: sum %g\n", coll_rank(world), coll_ranks(world), sum);
	coll_close(context);
	return error != 0;
}
