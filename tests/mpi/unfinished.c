// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * unfinished abort|exit: some collectives, then rank 0 ends the job without MPI_Finalize.
 * unfinished child: a child of rank 0 calls exit(), and the job ends as it should.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

static void end_a_child(void)
{
	const pid_t child = fork();

	if (!child)
		exit(0);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	int rank, one = 1, sum, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < 7; i++)
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (argc > 1 && !strcmp(argv[1], "child")) {
		if (!rank)
			end_a_child();
		return MPI_Finalize();
	}
	if (rank)
		sleep(20);	/* the launcher ends it */
	if (argc > 1 && !strcmp(argv[1], "abort"))
		MPI_Abort(MPI_COMM_WORLD, 3);
	exit(3);
}
