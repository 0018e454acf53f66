// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Several requests: wait for or test all of them, or one of them. */
#include <errno.h>
#include <stdlib.h>

#include "pycoll.h"

/* Their flights, with a reference to each request; frees with requests_put(). */
struct requests {
	pycoll_request **all;
	Py_ssize_t count;
	const char *call;
};

static void requests_put(struct requests *requests)
{
	while (requests->count)
		Py_DECREF((PyObject *)requests->all[--requests->count]);
	free(requests->all);
}

static int requests_add(struct requests *requests, PyObject *sequence, Py_ssize_t i)
{
	PyObject *item = PySequence_GetItem(sequence, i);

	if (!item)
		return -1;
	if (Py_TYPE(item) != pycoll_request_type) {
		Py_DECREF(item);
		PyErr_Format(PyExc_TypeError, "%s: requests[%zd] is no coll.Request",
			     requests->call, i);
		return -1;
	}
	requests->all[requests->count++] = (pycoll_request *)item;
	return 0;
}

static int requests_get(struct requests *requests, PyObject *iterable, const char *call)
{
	PyObject *list = PySequence_List(iterable);
	const Py_ssize_t count = list ? PySequence_Size(list) : 0;
	Py_ssize_t i;
	int error = list ? 0 : -1;

	*requests = (struct requests){ .call = call };
	requests->all = calloc(count + 1, sizeof(*requests->all));
	if (!requests->all && !error) {
		PyErr_NoMemory();
		error = -1;
	}
	for (i = 0; !error && i < count; i++)
		error = requests_add(requests, list, i);
	Py_XDECREF(list);
	if (error)
		requests_put(requests);
	return error;
}

/* Keeps the first exception. */
static void first_error(PyObject **type, PyObject **value, PyObject **trace)
{
	if (*type)
		PyErr_Clear();
	else
		PyErr_Fetch(type, value, trace);
}

/* Waits for each also after an error; but after a signal's exception for no more. */
static PyObject *request_waitall(PyObject *module, PyObject *iterable)
{
	PyObject *type = NULL, *value = NULL, *trace = NULL;
	struct requests requests;
	Py_ssize_t i;

	(void)module;
	if (requests_get(&requests, iterable, "waitall"))
		return NULL;
	for (i = 0; i < requests.count; i++) {
		if (!pycoll_flight_wait(requests.all[i]->flight))
			continue;
		first_error(&type, &value, &trace);
		if (requests.all[i]->flight->active)
			break;
	}
	requests_put(&requests);
	if (!type)
		Py_RETURN_NONE;
	PyErr_Restore(type, value, trace);
	return NULL;
}

static PyObject *request_testall(PyObject *module, PyObject *iterable)
{
	PyObject *type = NULL, *value = NULL, *trace = NULL;
	struct requests requests;
	bool all = true;
	Py_ssize_t i;

	(void)module;
	if (requests_get(&requests, iterable, "testall"))
		return NULL;
	for (i = 0; i < requests.count; i++) {
		const int answer = pycoll_flight_poll(requests.all[i]->flight);

		if (answer < 0)
			first_error(&type, &value, &trace);
		all = all && answer;
	}
	requests_put(&requests);
	if (!type)
		return PyBool_FromLong(all);
	PyErr_Restore(type, value, trace);
	return NULL;
}

struct any_look {
	struct requests *requests;
	struct pycoll_failure failure;
	Py_ssize_t ended;
};

/* None is in flight: another thread has seen the end of the last. */
static int any_look(void *argument)
{
	struct any_look *look = argument;
	bool any = false;
	Py_ssize_t i;

	for (i = 0; i < look->requests->count; i++) {
		struct pycoll_flight *flight = look->requests->all[i]->flight;

		if (!flight->active)
			continue;
		any = true;
		if (!pycoll_flight_test(flight, &look->failure)) {
			look->ended = i;
			return 0;
		}
	}
	return any ? -EINPROGRESS : 0;
}

/* The context of those in flight. NULL: there is none, or several and an exception is set. */
static pycoll_context *any_context(const struct requests *requests)
{
	pycoll_context *context = NULL;
	Py_ssize_t i;

	for (i = 0; i < requests->count; i++) {
		const struct pycoll_flight *flight = requests->all[i]->flight;

		if (!flight->active)
			continue;
		if (context && context != flight->group->context) {
			PyErr_Format(PyExc_ValueError, "%s: the requests are of different contexts",
				     requests->call);
			return NULL;
		}
		context = flight->group->context;
	}
	return context;
}

/* What to return for the request that has ended: its index, or its error. */
static PyObject *any_ended(struct any_look *look)
{
	if (look->ended < 0)
		Py_RETURN_NONE;
	if (pycoll_flight_raise(look->requests->all[look->ended]->flight, &look->failure))
		return NULL;
	return PyLong_FromSsize_t(look->ended);
}

static PyObject *any_of(PyObject *iterable, const char *call, bool wait)
{
	struct requests requests;
	struct any_look look = { .requests = &requests, .ended = -1 };
	pycoll_context *context;
	PyThreadState *thread;
	PyObject *answer = NULL;
	int looked;

	if (requests_get(&requests, iterable, call))
		return NULL;
	context = any_context(&requests);
	if (!context) {
		answer = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
	} else if (wait) {
		if (!pycoll_wait(context, any_look, &look, true))
			answer = any_ended(&look);
	} else if (pycoll_enter(context, &thread)) {
		looked = any_look(&look);
		pycoll_leave(context, thread);
		answer = looked ? Py_NewRef(Py_None) : any_ended(&look);
	}
	requests_put(&requests);
	return answer;
}

static PyObject *request_waitany(PyObject *module, PyObject *iterable)
{
	(void)module;
	return any_of(iterable, "waitany", true);
}

static PyObject *request_testany(PyObject *module, PyObject *iterable)
{
	(void)module;
	return any_of(iterable, "testany", false);
}

PyMethodDef pycoll_request_functions[] = {
	{ "waitall", request_waitall, METH_O,
	  "waitall($module, requests, /)\n--\n\n"
	  "Waits for each request; raises the first error in their order." },
	{ "testall", request_testall, METH_O,
	  "testall($module, requests, /)\n--\n\n"
	  "Polls each request once. True: all have ended." },
	{ "waitany", request_waitany, METH_O,
	  "waitany($module, requests, /)\n--\n\n"
	  "Waits until one of the requests in flight has ended, and returns its index, or raises\n"
	  "its error. None: none is in flight. They are of one context." },
	{ "testany", request_testany, METH_O,
	  "testany($module, requests, /)\n--\n\n"
	  "The index of a request that has just ended; None: there is none." },
	{ NULL, NULL, 0, NULL },
};
