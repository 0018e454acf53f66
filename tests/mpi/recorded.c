// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a trace has to bear: persistent collectives whose communicator, types and operation the program has freed,
 * and a thread's first call.
 */
#include <pthread.h>

#include "mpitest.h"

static void add_pairs(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < 2 * *count; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void persistent(void)
{
	int in[2] = { 1, 2 }, sum[2], all[128], ranks, i;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_Datatype pair;
	MPI_Comm comm;
	MPI_Op op;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	MPI_Comm_size(comm, &ranks);
	must(MPI_Type_contiguous(2, MPI_INT, &pair), "MPI_Type_contiguous");
	must(MPI_Type_commit(&pair), "MPI_Type_commit");
	must(MPI_Op_create(add_pairs, 1, &op), "MPI_Op_create");
	must(INIT(Allgather)(in, 1, pair, all, 1, pair, comm, MPI_INFO_NULL, &requests[0]), "MPI_Allgather_init");
	must(INIT(Allreduce)(in, sum, 1, pair, op, comm, MPI_INFO_NULL, &requests[1]), "MPI_Allreduce_init");
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
	MPI_Comm_free(&comm);
	for (i = 0; i < 3; i++) {
		must(MPI_Startall(2, requests), "MPI_Startall");
		must(MPI_Waitall(2, requests, statuses), "MPI_Waitall");
		if (all[2 * ranks - 1] != 2 || sum[1] != 2 * ranks)
			fail("a persistent collective is wrong");
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
}

static void *first_call(void *unused)
{
	(void)unused;
	must(MPI_Barrier(MPI_COMM_SELF), "MPI_Barrier");
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	persistent();
	if (pthread_create(&thread, NULL, first_call, NULL) || pthread_join(thread, NULL))
		fail("no thread");
	MPI_Finalize();
	return 0;
}
