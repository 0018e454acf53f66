// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Codes of tasks that have failed, until a wait or test finds them done. The MPI that completes their requests knows
 * nothing of it: it would call the error handler of a communicator of its own choice, and that of the task's own
 * communicator has been called before.
 */
#include <stdlib.h>

#include "shim.h"

struct failure {
	struct failure *next;
	MPI_Request request;
	int code;
};

static struct failure *failures;

bool failure_any(void)
{
	return __atomic_load_n(&failures, __ATOMIC_ACQUIRE);
}

void failure_note(MPI_Request request, int code)
{
	struct failure *one = malloc(sizeof(*one));

	if (!one)
		shim_end_job("no memory for the error of a collective, whose result would be taken for right");
	shim_lock();
	*one = (struct failure){ failures, request, code };
	__atomic_store_n(&failures, one, __ATOMIC_RELEASE);
	shim_unlock();
}

static struct failure **failure_find(MPI_Request request)
{
	struct failure **slot = &failures;

	while (*slot && (*slot)->request != request)
		slot = &(*slot)->next;
	return slot;
}

int failure_of(MPI_Request request)
{
	const struct failure *one;
	int code;

	if (!failure_any())
		return MPI_SUCCESS;
	shim_lock();
	one = *failure_find(request);
	code = one ? one->code : MPI_SUCCESS;
	shim_unlock();
	return code;
}

int failure_take(MPI_Request request)
{
	struct failure **slot, *one;
	int code = MPI_SUCCESS;

	if (!failure_any())
		return MPI_SUCCESS;
	shim_lock();
	slot = failure_find(request);
	one = *slot;
	if (one) {
		code = one->code;
		__atomic_store_n(slot, one->next, __ATOMIC_RELEASE);
	}
	shim_unlock();
	free(one);
	return code;
}
