// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a trace has to bear: persistent collectives whose communicator, types and operation the program has freed,
 * messages of all kinds, and a thread's first call. For 2 ranks.
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

/* Rank 0 sends four messages, which rank 1 probes for and receives by their handles, the last ones from any rank. */
static void messages(void)
{
	static char buffer[4 * (MPI_BSEND_OVERHEAD + 64)];
	int rank, size, value = 7, flag = 0, i;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_Message message;
	void *detached;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Buffer_attach(buffer, sizeof(buffer));
	if (!rank) {
		must(MPI_Bsend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), "MPI_Bsend");
		must(MPI_Ibsend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]), "MPI_Ibsend");
		must(MPI_Isend(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]), "MPI_Isend");
		must(MPI_Waitall(2, requests, statuses), "MPI_Waitall");
		must(MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD), "MPI_Send");
	}
	for (i = 0; rank == 1 && i < 4; i++, value = flag = 0) {
		if (i % 2)
			must(MPI_Mprobe(i / 2 ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD, &message, statuses),
			     "MPI_Mprobe");
		while (!(i % 2) && !flag)
			must(MPI_Improbe(0, i, MPI_COMM_WORLD, &flag, &message, statuses), "MPI_Improbe");
		if (i < 2) {
			must(MPI_Mrecv(&value, 1, MPI_INT, &message, statuses), "MPI_Mrecv");
		} else {
			must(MPI_Imrecv(&value, 1, MPI_INT, &message, requests), "MPI_Imrecv");
			must(MPI_Wait(requests, statuses), "MPI_Wait");
		}
		if (value != 7)
			fail("message %d is wrong", i);
	}
	MPI_Buffer_detach(&detached, &size);
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
	messages();
	if (pthread_create(&thread, NULL, first_call, NULL) || pthread_join(thread, NULL))
		fail("no thread");
	MPI_Finalize();
	return 0;
}
