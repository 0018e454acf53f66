// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A program with a tool that counts its calls, by functions of MPI's names that call those of PMPI_: the tool sees
 * what the program calls, and nothing that the shim does for that. For 2 ranks.
 */
#include "mpitest.h"

static int waits, starts, isends, irecvs, sendrecvs;

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	waits++;
	return PMPI_Wait(request, status);
}

int MPI_Start(MPI_Request *request)
{
	starts++;
	return PMPI_Start(request);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
	isends++;
	return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
	irecvs++;
	return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
		 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
	sendrecvs++;
	return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
}

static void exchange(int other)
{
	int out = other, in = -1, both = other;

	must(MPI_Sendrecv(&out, 1, MPI_INT, other, 1, &in, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	     "MPI_Sendrecv");
	must(MPI_Sendrecv_replace(&both, 1, MPI_INT, other, 2, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	     "MPI_Sendrecv_replace");
	if (in != 1 - other || both != 1 - other)
		fail("a message is wrong");
}

/* The barrier is under way on rank 0, so the shim polls the MPI instead of blocking in it. */
int main(int argc, char **argv)
{
	MPI_Request barrier, kept;
	int rank, token = 5;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &kept), "MPI_Barrier_init");
	if (!rank)
		must(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "MPI_Ibarrier");
	exchange(1 - rank);
	if (!rank)
		must(MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
	else
		must(MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD), "MPI_Send");
	must(MPI_Startall(1, &kept), "MPI_Startall");
	if (rank)
		must(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "MPI_Ibarrier");
	if (waits || starts || isends || irecvs || sendrecvs != 1)
		fail("seen: %d waits, %d starts, %d isends, %d irecvs, %d sendrecvs; the program called one sendrecv",
		     waits, starts, isends, irecvs, sendrecvs);
	must(MPI_Wait(&barrier, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Wait(&kept, MPI_STATUS_IGNORE), "MPI_Wait");
	if (waits != 2)
		fail("%d waits of two were seen", waits);
	MPI_Request_free(&kept);
	must_have_counted(2, 0, "a program with a tool");
	MPI_Finalize();
	return 0;
}
