// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks that enter a call of the MPI's which waits for all others, while these wait for a broadcast that the former
 * are to forward. For 4 ranks; the broadcast is long, and a tree.
 */
#include "mpitest.h"

static char data[4000000];
static int rank, ranks;

/* The sides of an inter-communicator: the later one waits for the broadcast before it comes. */
static void sides(MPI_Comm half, int low, int early)
{
	MPI_Comm between = MPI_COMM_NULL;
	MPI_Request request;

	data[0] = rank ? 0 : 1;
	must(MPI_Ibcast(data, sizeof(data), MPI_CHAR, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
	if (low != early)
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Intercomm_create(half, 1, MPI_COMM_WORLD, low ? ranks / 2 + 1 : 1, 8, &between),
	     "MPI_Intercomm_create");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Comm_free(&between), "MPI_Comm_free");
	if (data[0] != 1)
		fail("a broadcast is wrong");
}

/* The last rank comes when it has the broadcast. */
static void disconnected(void)
{
	MPI_Request request;
	MPI_Comm comm;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	must(MPI_Ibcast(data, sizeof(data), MPI_CHAR, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
	if (rank == ranks - 1)
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Comm_disconnect(&comm), "MPI_Comm_disconnect");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

int main(int argc, char **argv)
{
	MPI_Comm half;
	int low;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	low = rank < ranks / 2;
	must(MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half), "MPI_Comm_split");
	sides(half, low, 0);
	sides(half, low, 1);
	disconnected();
	must_have_counted(3, 0, "broadcasts");
	MPI_Comm_free(&half);
	MPI_Finalize();
	if (!rank)
		printf("all came in\n");
	return 0;
}
