// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * late_rank CALLS RANK MS [overlap]: computes for 2 ms before each of so many allreduces, this rank
 * MS longer (RANK -1: no rank); overlap: while each is under way. CALLS 0: until it is ended. For
 * coll report.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context);
	const int calls = argc > 1 ? atoi(argv[1]) : 1, late = argc > 2 ? atoi(argv[2]) : -1;
	const int ms = argc > 3 ? atoi(argv[3]) : 0;
	const bool overlap = argc > 4 && !strcmp(argv[4], "overlap");
	struct coll_run *run = NULL;
	int i, in, out;

	for (i = 0; !calls || i < calls; i++) {
		in = coll_rank(world);
		if (overlap)
			rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT32, COLL_SUM, world,
							 &run));
		usleep(2000 + (coll_rank(world) == late ? ms * 1000 : 0));
		rank_must(world, overlap ? coll_run_wait(&run) :
				 coll_allreduce(&in, &out, 1, COLL_INT32, COLL_SUM, world));
	}
	coll_close(context);
	return 0;
}
