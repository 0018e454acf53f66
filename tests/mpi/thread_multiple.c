// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * MPI_THREAD_MULTIPLE: each thread uses a communicator of its own, and makes others of it. The
 * order of the threads differs between ranks.
 */
#include <pthread.h>

#include "mpitest.h"

enum { THREADS = 3, ROUNDS = 100, COPIES = 30 };

static MPI_Comm comms[THREADS];
static int rank, ranks;

static void *work(void *argument)
{
	const int number = (int)(intptr_t)argument;
	int i, sum, mine, got;
	MPI_Request request;

	for (i = 0; i < ROUNDS; i++) {
		mine = rank + i + number;
		must(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comms[number]),
		     "MPI_Allreduce");
		if (sum != ranks * (ranks - 1) / 2 + ranks * (i + number))
			fail("thread %d: a sum is wrong", number);
		got = rank == i % ranks ? i : -1;
		must(MPI_Ibcast(&got, 1, MPI_INT, i % ranks, comms[number], &request),
		     "MPI_Ibcast");
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
		if (got != i)
			fail("thread %d: a broadcast is wrong", number);
	}
	return NULL;
}

/* A communicator that all ranks see made, and one that they meet in its first collective. */
static void *copy(void *argument)
{
	const int number = (int)(intptr_t)argument;
	MPI_Request request;
	MPI_Comm made;
	int i;

	for (i = 0; i < COPIES; i++) {
		if (i % 2) {
			must(MPI_Comm_idup(comms[number], &made, &request), "MPI_Comm_idup");
			must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
		} else {
			must(MPI_Comm_dup(comms[number], &made), "MPI_Comm_dup");
		}
		must(MPI_Barrier(made), "MPI_Barrier");
		MPI_Comm_free(&made);
	}
	return NULL;
}

static void at_once(void *(*function)(void *))
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, function, (void *)(intptr_t)((i + rank) % THREADS));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	int provided, i;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (provided < MPI_THREAD_MULTIPLE)
		fail("the MPI has no MPI_THREAD_MULTIPLE");
	for (i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	at_once(work);
	must_have_counted(THREADS * ROUNDS * 2, 0, "threads");
	at_once(copy);
	must_have_counted(THREADS * COPIES, 0, "communicators that threads make");
	for (i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	MPI_Finalize();
	if (!rank)
		printf("threads are right\n");
	return 0;
}
