// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job that starts another: each has us for itself, what joins them is the MPI's. */
#include "mpitest.h"

/* The last rank comes when it has a broadcast, which the others send meanwhile. */
static MPI_Comm spawn_late(char *program, int ranks)
{
	static char data[4000000];
	MPI_Request request;
	MPI_Comm other;
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(MPI_Ibcast(data, sizeof(data), MPI_CHAR, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
	if (rank == ranks - 1)
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
			    MPI_ERRCODES_IGNORE), "MPI_Comm_spawn");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	return other;
}

int main(int argc, char **argv)
{
	MPI_Comm parent, other, both;
	int mine = 1, sum = 0, all, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_get_parent(&parent);
	other = parent == MPI_COMM_NULL ? spawn_late(argv[0], ranks) : parent;
	must(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
	if (sum != ranks)
		fail("a sum is wrong");
	must(MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &both), "MPI_Intercomm_merge");
	MPI_Comm_size(both, &all);
	must(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, both), "MPI_Allreduce");
	must(MPI_Barrier(other), "MPI_Barrier");
	if (sum != all)
		fail("a sum over both jobs is wrong");
	must_have_counted(parent == MPI_COMM_NULL ? 2 : 1, 2, "spawn");
	MPI_Comm_free(&both);
	MPI_Comm_disconnect(&other);
	MPI_Finalize();
	if (parent != MPI_COMM_NULL)
		printf("a spawned rank of %d is right\n", all);
	return 0;
}
