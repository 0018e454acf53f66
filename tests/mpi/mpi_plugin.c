// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "mpitest.h"

int plugin_run(void);

int plugin_run(void)
{
	int rank, ranks, sum;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
	if (sum != ranks * (ranks - 1) / 2)
		fail("a sum is wrong");
	must_have_counted(1, 0, "plugin");
	MPI_Finalize();
	if (!rank)
		printf("a plugin is right\n");
	return 0;
}
