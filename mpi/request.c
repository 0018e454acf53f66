// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Waiting and testing. Our requests are requests of the MPI, so it knows when they are
 * done. While one of our tasks is under way, or another thread may begin one, or the node
 * has more ranks than cores, the MPI must not block: these functions poll.
 */
#include <sched.h>

#include "shim.h"

/* One round of a loop around an MPI_Test...; `only_ours`: it may sleep. */
static void wait_turn(struct pace *pace, bool only_ours)
{
	if (only_ours)
		pace_turn(pace);
	else
		pace_poll(pace);
	task_progress();
}

static int wait_one(MPI_Request *request, MPI_Status *status)
{
	struct pace pace = { 0 };
	bool only_ours;
	int done = 0, code;

	if (!must_poll())
		return real.Wait(request, status);
	only_ours = task_all_ours(1, request);
	for (task_progress(); must_poll(); wait_turn(&pace, only_ours)) {
		code = real.Test(request, &done, status);
		if (code || done)
			return code;
	}
	return real.Wait(request, status);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	MPI_Request *before = trace_copy(1, request);
	int code = wait_one(request, status);

	trace_wait(1, before, request, code);
	return code;
}
ALSO(PMPI_Wait, MPI_Wait)

static int wait_all(int count, MPI_Request requests[], MPI_Status *statuses)
{
	struct pace pace = { 0 };
	bool only_ours;
	int done = 0, code;

	if (!must_poll())
		return real.Waitall(count, requests, statuses);
	only_ours = task_all_ours(count, requests);
	for (task_progress(); must_poll(); wait_turn(&pace, only_ours)) {
		code = real.Testall(count, requests, &done, statuses);
		if (code || done)
			return code;
	}
	return real.Waitall(count, requests, statuses);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses)
{
	MPI_Request *before = trace_copy(count, requests);
	int code = wait_all(count, requests, statuses);

	trace_wait(count, before, requests, code);
	return code;
}
ALSO(PMPI_Waitall, MPI_Waitall)

static int wait_any(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	struct pace pace = { 0 };
	bool only_ours;
	int done = 0, code;

	if (!must_poll())
		return real.Waitany(count, requests, index, status);
	only_ours = task_all_ours(count, requests);
	for (task_progress(); must_poll(); wait_turn(&pace, only_ours)) {
		code = real.Testany(count, requests, index, &done, status);
		if (code || done)
			return code;
	}
	return real.Waitany(count, requests, index, status);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	MPI_Request *before = trace_copy(count, requests);
	int code = wait_any(count, requests, index, status);

	trace_wait(count, before, requests, code);
	return code;
}
ALSO(PMPI_Waitany, MPI_Waitany)

static int wait_some(int count, MPI_Request requests[], int *done, int indices[],
		 MPI_Status *statuses)
{
	struct pace pace = { 0 };
	bool only_ours;
	int code;

	if (!must_poll())
		return real.Waitsome(count, requests, done, indices, statuses);
	only_ours = task_all_ours(count, requests);
	for (task_progress(); must_poll(); wait_turn(&pace, only_ours)) {
		code = real.Testsome(count, requests, done, indices, statuses);
		if (code || *done)
			return code;
	}
	return real.Waitsome(count, requests, done, indices, statuses);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
		 MPI_Status *statuses)
{
	MPI_Request *before = trace_copy(count, requests);
	int code = wait_some(count, requests, done, indices, statuses);

	trace_wait(count, before, requests, code);
	return code;
}
ALSO(PMPI_Waitsome, MPI_Waitsome)

/* Before a test of the MPI's: completes the requests of tasks that have ended. */
static void before_test(void)
{
	if (task_any())
		task_progress();
}

/* A test that found nothing is not recorded. */
static void after_test(int count, MPI_Request *before, const MPI_Request *after, int done,
		       int code)
{
	if (done)
		trace_wait(count, before, after, code);
	else
		trace_nothing(before);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	MPI_Request *before = trace_copy(1, request);
	int code;

	before_test();
	code = real.Test(request, flag, status);
	after_test(1, before, request, *flag, code);
	return code;
}
ALSO(PMPI_Test, MPI_Test)

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
	MPI_Request *before = trace_copy(count, requests);
	int code;

	before_test();
	code = real.Testall(count, requests, flag, statuses);
	after_test(count, before, requests, *flag, code);
	return code;
}
ALSO(PMPI_Testall, MPI_Testall)

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	MPI_Request *before = trace_copy(count, requests);
	int code;

	before_test();
	code = real.Testany(count, requests, index, flag, status);
	after_test(count, before, requests, *flag, code);
	return code;
}
ALSO(PMPI_Testany, MPI_Testany)

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
		 MPI_Status *statuses)
{
	MPI_Request *before = trace_copy(count, requests);
	int code;

	before_test();
	code = real.Testsome(count, requests, done, indices, statuses);
	after_test(count, before, requests, *done, code);
	return code;
}
ALSO(PMPI_Testsome, MPI_Testsome)

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	before_test();
	return real.Request_get_status(request, flag, status);
}
ALSO(PMPI_Request_get_status, MPI_Request_get_status)

/* ---- persistent ones ------------------------------------------------------ */

int MPI_Start(MPI_Request *request)
{
	struct task *task;
	int code;

	if (!shim.on)
		return real.Start(request);
	shim_lock();
	task = task_persistent(*request);
	if (task) {
		trace_begin();
		code = task_start(task);
		trace_collective(&task->call, PERSISTENT, request, code);
	} else {
		code = real.Start(request);
	}
	shim_unlock();
	return code;
}
ALSO(PMPI_Start, MPI_Start)

int MPI_Startall(int count, MPI_Request requests[])
{
	int code = MPI_SUCCESS, i;
	bool ours = false;

	if (!shim.on)
		return real.Startall(count, requests);
	shim_lock();
	for (i = 0; i < count; i++)
		ours |= task_persistent(requests[i]) != NULL;
	shim_unlock();
	if (!ours)
		return real.Startall(count, requests);
	for (i = 0; !code && i < count; i++)
		code = MPI_Start(&requests[i]);
	return code;
}
ALSO(PMPI_Startall, MPI_Startall)

int MPI_Request_free(MPI_Request *request)
{
	struct task *task;

	if (shim.on) {
		shim_lock();
		task = task_persistent(*request);
		if (task)
			task_free_persistent(task);
		shim_unlock();
	}
	return real.Request_free(request);
}
ALSO(PMPI_Request_free, MPI_Request_free)
