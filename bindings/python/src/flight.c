// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Flights: runs, and the buffers that must live as long as they do. */
#include <errno.h>
#include <stdlib.h>

#include "pycoll.h"

struct pycoll_flight *pycoll_flight_new(pycoll_group *group, const char *call)
{
	struct pycoll_flight *flight = calloc(1, sizeof(*flight));

	if (!flight) {
		PyErr_NoMemory();
		return NULL;
	}
	flight->call = call;
	flight->group = (pycoll_group *)Py_NewRef((PyObject *)group);
	group->flights++;
	return flight;
}

/* Nobody has waited: it is told as an exception of a destructor is. */
static void flight_tell(struct pycoll_flight *flight)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_SetObject((PyObject *)Py_TYPE(flight->raised), flight->raised);
	PyErr_WriteUnraisable(flight->op);
	PyErr_Restore(type, value, trace);
	Py_DECREF(flight->raised);
}

void pycoll_flight_free(struct pycoll_flight *flight)
{
	pycoll_group *group = flight->group;

	if (flight->raised)
		flight_tell(flight);
	pycoll_buffer_release(&flight->send);
	pycoll_buffer_release(&flight->recv);
	Py_XDECREF(flight->result);
	Py_XDECREF(flight->op);
	free(flight);
	pycoll_group_flight_ended(group);
	Py_DECREF((PyObject *)group);
}

static PyObject *received_new(const struct coll_received *received)
{
	PyObject *module = PyImport_ImportModule("coll.messages"), *made;

	made = module ? PyObject_CallMethod(module, "Received", "iin", received->source, received->tag,
					    (Py_ssize_t)received->count) : NULL;
	Py_XDECREF(module);
	return made;
}

PyObject *pycoll_flight_result(const struct pycoll_flight *flight)
{
	if (flight->receives && !flight->active && flight->received.source >= 0)
		return received_new(&flight->received);
	return Py_NewRef(flight->result ? flight->result : Py_None);
}

/* Inside enter and leave: once, for a run that has ended. */
static void flight_end(struct pycoll_flight *flight)
{
	PyGILState_STATE state;

	flight->active = false;
	if (!flight->op)
		return;
	state = PyGILState_Ensure();
	flight->raised = pycoll_op_end(flight->op);
	PyGILState_Release(state);
}

int pycoll_flight_test(struct pycoll_flight *flight, struct pycoll_failure *failure)
{
	int done = 0, error = 0;

	*failure = (struct pycoll_failure){ 0 };
	if (!flight->active)		/* another thread has seen its end */
		return 0;
	error = coll_run_test(&flight->run, &done);
	if (pycoll_op_has_raised(flight->op))
		(void)!coll_revoke(flight->group->group);
	if (!error && !done)
		return -EINPROGRESS;
	if (error && error != -EPERM && !done && flight->run) {	/* the engine: this ends it */
		error = coll_run_wait(&flight->run);
		done = 1;
	}
	if (error)
		*failure = pycoll_failure_of(flight->group->group, error);
	if (done)
		flight_end(flight);
	return 0;
}

struct flight_look {
	struct pycoll_flight *flight;
	struct pycoll_failure failure;
};

static int flight_look(void *argument)
{
	struct flight_look *look = argument;

	return pycoll_flight_test(look->flight, &look->failure);
}

/*
 * Fails the group on all ranks, and waits for the run's end, half a second at most. The group may be
 * closed: the library has it while it has a flight.
 */
static void flight_revoke(struct pycoll_flight *flight)
{
	pycoll_context *context = flight->group->context;
	struct flight_look look = { .flight = flight };
	PyObject *type, *value, *trace;
	PyThreadState *thread;

	PyErr_Fetch(&type, &value, &trace);
	if (pycoll_enter(context, &thread)) {
		(void)!coll_revoke(flight->group->group);
		pycoll_leave(context, thread);
		pycoll_wait(context, flight_look, &look, false);
	}
	free(look.failure.failed);
	PyErr_Clear();
	PyErr_Restore(type, value, trace);
}

int pycoll_flight_raise(struct pycoll_flight *flight, struct pycoll_failure *failure)
{
	PyObject *raised = flight->raised;

	if (!raised && !failure->error)
		return 0;
	if (!raised) {
		pycoll_raise(failure, flight->call);
		return -1;
	}
	flight->raised = NULL;
	free(failure->failed);
	PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
	Py_DECREF(raised);
	return -1;
}

int pycoll_flight_wait(struct pycoll_flight *flight)
{
	struct flight_look look = { .flight = flight };
	int answer;

	if (!flight->active)
		return 0;
	answer = pycoll_wait(flight->group->context, flight_look, &look, true);
	return answer ? answer : pycoll_flight_raise(flight, &look.failure);
}

int pycoll_flight_wait_or_cancel(struct pycoll_flight *flight)
{
	int answer = pycoll_flight_wait(flight);

	if (answer && flight->active)
		flight_revoke(flight);
	return answer;
}

int pycoll_flight_poll(struct pycoll_flight *flight)
{
	struct pycoll_failure failure = { 0 };
	pycoll_context *context = flight->group->context;
	PyThreadState *thread;
	int answer;

	if (!flight->active)
		return 1;
	if (!pycoll_enter(context, &thread))
		return -1;
	answer = pycoll_flight_test(flight, &failure);
	pycoll_leave(context, thread);
	if (answer)
		return 0;
	return pycoll_flight_raise(flight, &failure) ? -1 : 1;
}
