// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * MPI_THREAD_MULTIPLE: each thread uses a communicator of its own, and makes others of it. The
 * order of the threads differs between ranks. A thread that the MPI blocks is no reason that
 * another one's collective stands still.
 */
#include <pthread.h>
#include <unistd.h>

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

static void *receive(void *argument)
{
	const int last = ranks - 1;
	int token = 0;

	(void)argument;
	must(MPI_Recv(&token, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
	if (token != last)
		fail("a message is wrong");
	return NULL;
}

/*
 * Rank 0 has the data of a broadcast, and its only thread that is in MPI is in a receive since before it. The message
 * comes from a rank that has the data.
 */
static void blocked_before(void)
{
	static char data[3000000];
	const int last = ranks - 1;
	MPI_Request request;
	pthread_t receiver;

	if (ranks < 2)
		return;
	memset(data, rank ? 0 : 5, sizeof(data));
	if (!rank) {
		pthread_create(&receiver, NULL, receive, NULL);
		usleep(100000);		/* it is in there; if not, this proves less */
	}
	must(MPI_Ibcast(data, sizeof(data), MPI_CHAR, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
	if (!rank)
		pthread_join(receiver, NULL);
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (rank == last)
		must(MPI_Send(&rank, 1, MPI_INT, 0, 7, MPI_COMM_WORLD), "MPI_Send");
	if (data[sizeof(data) - 1] != 5)
		fail("a broadcast is wrong");
	must_have_counted(1, 0, "blocked before");
}

/* The receive of a call whose send the MPI refuses ends with it, though no message comes. */
static void refused_send(void)
{
	int out = 1, in = 0, class = MPI_SUCCESS;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Sendrecv(&out, 1, MPI_INT, ranks, 9, &in, 1, MPI_INT, rank, 9, comm, MPI_STATUS_IGNORE),
			&class);
	if (class != MPI_ERR_RANK)
		fail("a message to a rank that there is not: error class %d", class);
	MPI_Comm_free(&comm);
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
	blocked_before();
	refused_send();
	for (i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	MPI_Finalize();
	if (!rank)
		printf("threads are right\n");
	return 0;
}
