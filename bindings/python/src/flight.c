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

void pycoll_flight_free(struct pycoll_flight *flight)
{
	pycoll_group *group = flight->group;

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

int pycoll_flight_test(struct pycoll_flight *flight, struct pycoll_failure *failure)
{
	int done = 0, error = coll_run_test(&flight->run, &done);

	if (!error && !done)
		return -EINPROGRESS;
	if (error && error != -EPERM && !done && flight->run) {	/* the engine: this ends it */
		error = coll_run_wait(&flight->run);
		done = 1;
	}
	flight->active = !done;
	*failure = error ? pycoll_failure_of(flight->group->group, error) :
			   (struct pycoll_failure){ 0 };
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

/* Fails the group on all ranks, and waits for the run's end, half a second at most. */
static void flight_revoke(struct pycoll_flight *flight)
{
	struct flight_look look = { .flight = flight };
	PyObject *type, *value, *trace;
	PyThreadState *thread;
	struct coll_group *group;

	PyErr_Fetch(&type, &value, &trace);
	group = pycoll_group_enter(flight->group, &thread);
	if (group) {
		(void)!coll_revoke(group);
		pycoll_leave(flight->group->context, thread);
	}
	if (group && flight->active)
		pycoll_wait(flight->group->context, flight_look, &look, false);
	free(look.failure.failed);
	PyErr_Clear();
	PyErr_Restore(type, value, trace);
}

int pycoll_raise_pending(struct pycoll_flight *flight)
{
	pycoll_context *context = flight->group->context;
	PyObject *raised;

	flight_revoke(flight);
	raised = context->raised;
	context->raised = NULL;
	if (raised)
		PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
	Py_XDECREF(raised);
	return -1;
}

int pycoll_flight_wait(struct pycoll_flight *flight)
{
	struct flight_look look = { .flight = flight };
	int answer;

	if (!flight->active)
		return 0;
	answer = pycoll_wait(flight->group->context, flight_look, &look, true);
	if (flight->group->context->raised) {
		free(look.failure.failed);
		return pycoll_raise_pending(flight);
	}
	if (!answer && look.failure.error) {
		pycoll_raise(&look.failure, flight->call);
		return -1;
	}
	return answer;
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
	if (context->raised)
		return pycoll_raise_pending(flight);
	if (!answer && failure.error)
		pycoll_raise(&failure, flight->call);
	return answer ? 0 : failure.error ? -1 : 1;
}
