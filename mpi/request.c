// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Waiting and testing. Our requests are requests of the MPI, so it knows when they are
 * done. While one of our tasks is under way, or another thread may begin one, or the node
 * has more ranks than cores, the MPI must not block: these functions poll.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* ---- requests that are done --------------------------------------------- */

enum { FEW_REQUESTS = 8 };

/* What a call was given, before the MPI sets it to null: for the trace, and to know which of our tasks have failed. */
struct before {
	int count;
	MPI_Request *requests;		/* NULL: nobody is going to ask */
	MPI_Request few[FEW_REQUESTS];
};

/* `may_fail`: a task may end with an error meanwhile. */
static void before_copy(struct before *before, int count, const MPI_Request *requests, bool may_fail)
{
	before->count = count;
	before->requests = NULL;
	if (count <= 0 || !requests || !(may_fail || shim.threads || failure_any() || shim.settings.trace))
		return;
	before->requests = count <= FEW_REQUESTS ? before->few : malloc(count * sizeof(*requests));
	if (!before->requests)
		shim_end_job("no memory to wait for requests");
	memcpy(before->requests, requests, count * sizeof(*requests));
}

static void before_wait(struct before *before, int count, const MPI_Request *requests)
{
	trace_begin();
	before_copy(before, count, requests, must_poll());
}

static void before_free(struct before *before)
{
	if (before->requests != before->few)
		free(before->requests);
}

/* One of them is done; `index` may be MPI_UNDEFINED. Returns the code of the call. */
static int before_one(const struct before *before, int index, int code)
{
	return code || !before->requests || index < 0 || index >= before->count ? code :
	       failure_take(before->requests[index]);
}

/* The first error: so far MPI_ERROR of a status means nothing. */
static void statuses_good(int count, MPI_Status *statuses)
{
	int i;

	for (i = 0; statuses != MPI_STATUSES_IGNORE && i < count; i++)
		statuses[i].MPI_ERROR = MPI_SUCCESS;
}

/* So many are done, those of `indices` or all. Returns the code of the call. */
static int before_several(const struct before *before, int done, const int *indices, MPI_Status *statuses, int code)
{
	int i, failed;

	if (!before->requests || (code && code != MPI_ERR_IN_STATUS))
		return code;
	for (i = 0; i < done; i++) {
		failed = failure_take(before->requests[indices ? indices[i] : i]);
		if (!failed)
			continue;
		if (!code)
			statuses_good(done, statuses);
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[i].MPI_ERROR = failed;
		code = MPI_ERR_IN_STATUS;
	}
	return code;
}

static void before_end(struct before *before, const MPI_Request *after, int code)
{
	trace_wait(before->count, before->requests, after, code);
	before_free(before);
}

/* ---- waiting ------------------------------------------------------------ */

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
	struct before before;
	int code;

	before_wait(&before, 1, request);
	code = wait_one(request, status);
	code = before_one(&before, 0, code);
	before_end(&before, request, code);
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
	struct before before;
	int code;

	before_wait(&before, count, requests);
	code = wait_all(count, requests, statuses);
	code = before_several(&before, count, NULL, statuses, code);
	before_end(&before, requests, code);
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
	struct before before;
	int code;

	before_wait(&before, count, requests);
	code = wait_any(count, requests, index, status);
	code = before_one(&before, code ? MPI_UNDEFINED : *index, code);
	before_end(&before, requests, code);
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
	struct before before;
	int code;

	before_wait(&before, count, requests);
	code = wait_some(count, requests, done, indices, statuses);
	code = before_several(&before, *done, indices, statuses, code);
	before_end(&before, requests, code);
	return code;
}
ALSO(PMPI_Waitsome, MPI_Waitsome)

/* Completes the requests of tasks that have ended. */
static void tasks_advance(void)
{
	if (task_any())
		task_progress();
}

static void before_test(struct before *before, int count, const MPI_Request *requests)
{
	trace_begin();		/* what tasks take is no computing of the program's */
	tasks_advance();
	before_copy(before, count, requests, false);
}

/* A test that found nothing is not recorded. */
static void after_test(struct before *before, const MPI_Request *after, int done, int code)
{
	if (done) {
		before_end(before, after, code);
	} else {
		trace_nothing();
		before_free(before);
	}
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct before before;
	int code;

	before_test(&before, 1, request);
	code = real.Test(request, flag, status);
	if (*flag)
		code = before_one(&before, 0, code);
	after_test(&before, request, *flag, code);
	return code;
}
ALSO(PMPI_Test, MPI_Test)

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
	struct before before;
	int code;

	before_test(&before, count, requests);
	code = real.Testall(count, requests, flag, statuses);
	if (*flag)
		code = before_several(&before, count, NULL, statuses, code);
	after_test(&before, requests, *flag, code);
	return code;
}
ALSO(PMPI_Testall, MPI_Testall)

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	struct before before;
	int code;

	before_test(&before, count, requests);
	code = real.Testany(count, requests, index, flag, status);
	if (*flag)
		code = before_one(&before, *index, code);
	after_test(&before, requests, *flag, code);
	return code;
}
ALSO(PMPI_Testany, MPI_Testany)

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
		 MPI_Status *statuses)
{
	struct before before;
	int code;

	before_test(&before, count, requests);
	code = real.Testsome(count, requests, done, indices, statuses);
	if (*done)
		code = before_several(&before, *done, indices, statuses, code);
	after_test(&before, requests, *done, code);
	return code;
}
ALSO(PMPI_Testsome, MPI_Testsome)

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	int code;

	tasks_advance();
	code = real.Request_get_status(request, flag, status);
	return code || !*flag ? code : failure_of(request);
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
		trace_started(task->event, *request, code);
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

/* ---- ending early ----------------------------------------------------------- */

/* What MPI does not have for collectives. To the MPI our request is one of a kind that can be freed and cancelled. */
static int request_refuse(const struct task *task, const char *what)
{
	fprintf(stderr, "libcollmpi: rank %d: %s: the request is of a collective, %s; valid: to wait or test for it\n",
		shim.rank, what, which_names[task->call.which]);
	if (!task->comm->freed)
		real.Comm_call_errhandler(task->comm->handle, MPI_ERR_REQUEST);
	return MPI_ERR_REQUEST;
}

static int request_free(MPI_Request *request)
{
	const struct task *task = task_of(*request);
	struct task *persistent = task_persistent(*request);

	if (task && !persistent)
		return request_refuse(task, "MPI_Request_free");
	failure_take(*request);
	if (persistent && !task_free_persistent(persistent)) {
		*request = MPI_REQUEST_NULL;
		return MPI_SUCCESS;
	}
	return real.Request_free(request);
}

int MPI_Request_free(MPI_Request *request)
{
	int code;

	if (!shim.on || !request || *request == MPI_REQUEST_NULL)
		return real.Request_free(request);
	shim_lock();
	code = request_free(request);
	shim_unlock();
	return code;
}
ALSO(PMPI_Request_free, MPI_Request_free)

int MPI_Cancel(MPI_Request *request)
{
	const struct task *task;
	int code;

	if (!shim.on || !request || *request == MPI_REQUEST_NULL)
		return real.Cancel(request);
	shim_lock();
	task = task_of(*request);
	code = task ? request_refuse(task, "MPI_Cancel") : real.Cancel(request);
	shim_unlock();
	return code;
}
ALSO(PMPI_Cancel, MPI_Cancel)
