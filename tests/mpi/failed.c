// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Collectives that fail, since rank 1 does not come: each wait and test of rank 0 returns the error, and the error
 * handler is that of the communicator alone. For 2 ranks, with a deadline; with an argument under MPI_THREAD_MULTIPLE.
 */
#include "mpitest.h"

static int rank, handled, value = 1, sum;

static void count_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

/* Of its own: a group that has failed once refuses what comes next. */
static MPI_Comm comm_that_returns(void)
{
	MPI_Errhandler handler;
	MPI_Comm comm;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	must(MPI_Comm_create_errhandler(count_error, &handler), "MPI_Comm_create_errhandler");
	must(MPI_Comm_set_errhandler(comm, handler), "MPI_Comm_set_errhandler");
	MPI_Errhandler_free(&handler);
	handled = 0;
	return comm;
}

static void must_fail(int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	if (!code)
		fail("%s succeeds", what);
	MPI_Error_string(code, text, &length);
	if (!strstr(text, "rank 1"))
		fail("%s: %s", what, text);
	if (handled != 1)
		fail("%s: the error handler was called %d times", what, handled);
}

enum { WAIT, TEST, STATUS, WAITANY, TESTANY, ONE_WAYS };

static int complete_one(MPI_Request *request, int way)
{
	int flag = 0, index = MPI_UNDEFINED, code = MPI_SUCCESS;

	switch (way) {
	case WAIT:
		return MPI_Wait(request, MPI_STATUS_IGNORE);
	case STATUS:
		while (!flag)
			code = MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
		must_fail(code, "MPI_Request_get_status");
		/* fall through */
	case TEST:
		for (flag = 0; !flag;)
			code = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
		return code;
	case WAITANY:
		return MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
	default:
		while (!flag)
			code = MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
		return code;
	}
}

static void one(int way)
{
	const MPI_Comm comm = comm_that_returns();
	MPI_Request request;

	if (rank)
		return;
	must(MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &request), "MPI_Iallreduce");
	must_fail(complete_one(&request, way), "a nonblocking allreduce");
	if (request != MPI_REQUEST_NULL)
		fail("a request that has failed is not null");
}

/* A persistent one fails, too, and nothing hangs where it is started again. */
static void persistent(int way)
{
	const MPI_Comm comm = comm_that_returns();
	MPI_Request request;

	must(INIT(Allreduce)(&value, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request), "MPI_Allreduce_init");
	if (rank)
		return;
	must(MPI_Start(&request), "MPI_Start");
	must_fail(complete_one(&request, way), "a persistent allreduce");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "a wait for an inactive request");
	handled = 0;
	must_fail(MPI_Start(&request), "MPI_Start");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "a wait for what has not started");
	must(MPI_Request_free(&request), "MPI_Request_free");
}

enum { WAITALL, TESTALL, WAITSOME, TESTSOME, SEVERAL_WAYS };

static int complete_several(int count, MPI_Request *requests, MPI_Status *statuses, int *indices, int way)
{
	int flag = 0, code = MPI_SUCCESS, i;

	switch (way) {
	case WAITALL:
	case TESTALL:
		for (i = 0; statuses && i < count; i++)
			indices[i] = i;
		if (way == WAITALL)
			return MPI_Waitall(count, requests, statuses);
		while (!flag)
			code = MPI_Testall(count, requests, &flag, statuses);
		return code;
	case WAITSOME:
		return MPI_Waitsome(count, requests, &flag, indices, statuses);
	default:
		while (!flag)
			code = MPI_Testsome(count, requests, &flag, indices, statuses);
		return code;
	}
}

/* Among `others` that are good, and done already; the wait for some finds all of them at once, or it alone. */
static void several(int way, int others, bool ignore)
{
	const MPI_Comm comm = comm_that_returns();
	MPI_Request requests[20];
	MPI_Status statuses[20];
	int indices[20] = { 0 }, i, code;

	if (rank)
		return;
	for (i = 0; i < others; i++)
		must(MPI_Ibarrier(MPI_COMM_SELF, &requests[i]), "MPI_Ibarrier");
	must(MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[others]), "MPI_Iallreduce");
	do
		code = complete_several(others + 1, requests, ignore ? MPI_STATUSES_IGNORE : statuses, indices, way);
	while (!code && requests[others] != MPI_REQUEST_NULL);
	if (code != MPI_ERR_IN_STATUS || handled != 1)
		fail("several: code %d, the error handler was called %d times", code, handled);
	for (i = 0; !ignore && i <= others; i++)
		if (indices[i] == others)
			break;
		else if (statuses[i].MPI_ERROR)
			fail("a good request has an error");
	if (!ignore)
		must_fail(statuses[i].MPI_ERROR, "its status");
}

int main(int argc, char **argv)
{
	int way, level;

	MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (way = 0; way < ONE_WAYS; way++)
		one(way);
	persistent(WAIT);
	persistent(TEST);
	for (way = 0; way < SEVERAL_WAYS; way++)
		several(way, 2, false);
	several(WAITALL, 19, false);
	several(TESTSOME, 0, true);
	if (rank) {
		MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		printf("what fails is said\n");
		MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
