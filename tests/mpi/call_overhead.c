// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the shim adds to a call: CPU time of MPI_Allreduce of one double on one rank, where
 * libcoll has nothing to wait for, against coll_allreduce() of the same. The two alternate;
 * the minimum of several rounds counts.
 */
#include <time.h>

#include "libcoll/coll.h"
#include "mpitest.h"

enum { ROUNDS = 20, CALLS = 20000 };

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static double of_mpi(void)
{
	double in = 1, out, start = cpu_ns();
	int i;

	for (i = 0; i < CALLS; i++)
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return (cpu_ns() - start) / CALLS;
}

static double of_coll(struct coll_group *world)
{
	double in = 1, out, start = cpu_ns();
	int i;

	for (i = 0; i < CALLS; i++)
		if (coll_allreduce(&in, &out, 1, COLL_DOUBLE, COLL_SUM, world))
			abort();
	return (cpu_ns() - start) / CALLS;
}

int main(int argc, char **argv)
{
	double mpi = 1e9, coll = 1e9, now;
	struct coll_context *context;
	int round;

	MPI_Init(&argc, &argv);
	setenv("COLL_RANK", "0", 1);	/* a job of its own */
	setenv("COLL_RANKS", "1", 1);
	if (coll_open(NULL, &context))
		fail("%s", coll_context_error(NULL));
	for (round = 0; round < ROUNDS; round++) {
		now = of_mpi();
		mpi = now < mpi ? now : mpi;
		now = of_coll(coll_world(context));
		coll = now < coll ? now : coll;
	}
	must_have_counted(ROUNDS * CALLS, 0, "overhead");
	coll_close(context);
	MPI_Finalize();
	printf("MPI_Allreduce %.0f ns, coll_allreduce %.0f ns: the shim adds %.0f ns\n", mpi, coll,
	       mpi - coll);
	return mpi - coll > 1000;
}
