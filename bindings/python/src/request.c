// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Requests: collectives under way. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pycoll.h"

PyObject *pycoll_request_new(struct pycoll_flight *flight)
{
	pycoll_request *self = PyObject_New(pycoll_request, pycoll_request_type);

	if (!self) {
		pycoll_drop_flight(flight);
		return NULL;
	}
	self->flight = flight;
	return (PyObject *)self;
}

static PyObject *request_wait(pycoll_request *self, PyObject *unused)
{
	(void)unused;
	return pycoll_flight_wait(self->flight) ? NULL : pycoll_flight_result(self->flight);
}

static PyObject *request_test(pycoll_request *self, PyObject *unused)
{
	const int answer = pycoll_flight_poll(self->flight);

	(void)unused;
	return answer < 0 ? NULL : PyBool_FromLong(answer);
}

/* Inside enter and leave: while this thread waited for them another may have started or closed it. */
static struct pycoll_failure flight_start(struct pycoll_flight *flight)
{
	int error;

	if (!flight->run)
		return pycoll_failure_text(-EINVAL, "the request was closed");
	error = coll_run_start(flight->run);
	if (error)
		return pycoll_failure_of(flight->group->group, error);
	flight->active = true;
	return (struct pycoll_failure){ 0 };
}

static PyObject *request_start(pycoll_request *self, PyObject *unused)
{
	struct pycoll_flight *flight = self->flight;
	pycoll_context *context = flight->group->context;
	struct pycoll_failure failure;
	PyThreadState *thread;

	(void)unused;
	pycoll_reap(context);
	if (!flight->persistent)
		return pycoll_refuse(PyExc_ValueError, flight->call, "start", "the request is not "
				     "persistent; valid: one of Group.%s_init()", flight->call);
	if (flight->active)
		return pycoll_refuse(PyExc_ValueError, flight->call, "start", "the request is in "
				     "flight; valid: after wait()");
	pycoll_op_begin(flight->op);
	if (!pycoll_enter(context, &thread)) {
		Py_XDECREF(pycoll_op_end(flight->op));
		return NULL;
	}
	failure = flight_start(flight);
	pycoll_leave(context, thread);
	if (!failure.error)
		return Py_NewRef((PyObject *)self);
	Py_XDECREF(pycoll_op_end(flight->op));
	return pycoll_raise(&failure, flight->call);
}

static PyObject *request_cancel(pycoll_request *self, PyObject *unused)
{
	struct pycoll_flight *flight = self->flight;
	struct pycoll_failure failure = { 0 };
	PyThreadState *thread;
	int error = 0;

	(void)unused;
	if (!flight->active)
		Py_RETURN_NONE;
	if (!pycoll_enter(flight->group->context, &thread))
		return NULL;
	if (flight->run && flight->active)	/* another thread's wait may have ended it */
		error = coll_run_cancel(flight->run);
	if (error)
		failure = pycoll_failure_of(flight->group->group, error);
	pycoll_leave(flight->group->context, thread);
	if (error)
		return pycoll_raise(&failure, flight->call);
	Py_RETURN_NONE;
}

static PyObject *request_deadline(pycoll_request *self, PyObject *seconds)
{
	struct pycoll_flight *flight = self->flight;
	const double wanted = PyFloat_AsDouble(seconds);
	struct pycoll_failure failure = { 0 };
	PyThreadState *thread;
	int error = 0;

	if (wanted == -1 && PyErr_Occurred())
		return NULL;
	if (!(wanted >= 0) || isinf(wanted))
		return pycoll_refuse(PyExc_ValueError, flight->call, "deadline", "%g is no time; "
				     "valid: seconds, 0 for the group's", wanted);
	if (!pycoll_enter(flight->group->context, &thread))
		return NULL;
	if (flight->run)
		error = coll_run_deadline(flight->run, wanted > 1e9 ? UINT64_MAX : wanted * 1e9);
	if (error)
		failure = pycoll_failure_of(flight->group->group, error);
	pycoll_leave(flight->group->context, thread);
	if (error)
		return pycoll_raise(&failure, flight->call);
	Py_RETURN_NONE;
}

static PyObject *request_explain(pycoll_request *self, PyObject *unused)
{
	struct pycoll_flight *flight = self->flight;
	PyThreadState *thread;
	PyObject *text;
	char *copy;

	(void)unused;
	if (!pycoll_enter(flight->group->context, &thread))
		return NULL;
	copy = strdup(flight->run ? coll_run_explain(flight->run) : "");
	pycoll_leave(flight->group->context, thread);
	text = copy ? pycoll_text(copy) : PyErr_NoMemory();
	free(copy);
	return text;
}

static PyObject *request_close(pycoll_request *self, PyObject *unused)
{
	struct pycoll_flight *flight = self->flight;
	pycoll_context *context = flight->group->context;
	PyThreadState *thread;
	int error = 0;

	(void)unused;
	if (flight->active && context->context)
		return pycoll_refuse(PyExc_ValueError, flight->call, "close", "the request is in "
				     "flight; valid: after wait()");
	if (flight->run && context->context) {
		if (!pycoll_enter(context, &thread))
			return NULL;
		error = coll_run_free(&flight->run);
		pycoll_leave(context, thread);
	}
	if (error)
		return PyErr_Format(PyExc_RuntimeError, "close: %s", coll_strerror(error));
	pycoll_buffer_release(&flight->send);
	pycoll_buffer_release(&flight->recv);
	Py_RETURN_NONE;
}

static PyObject *request_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(self);
}

/* An exception in the block may have left it in flight: then it is dropped later. */
static PyObject *request_exit(pycoll_request *self, PyObject *args)
{
	(void)args;
	if (self->flight->active)
		Py_RETURN_NONE;
	return request_close(self, NULL);
}

static PyObject *get_active(pycoll_request *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(self->flight->active && self->flight->group->context->context);
}

static PyObject *get_persistent(pycoll_request *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(self->flight->persistent);
}

static PyObject *get_result(pycoll_request *self, void *unused)
{
	(void)unused;
	return pycoll_flight_result(self->flight);
}

static void request_dealloc(pycoll_request *self)
{
	PyTypeObject *type = Py_TYPE((PyObject *)self);
	struct pycoll_flight *flight = self->flight;
	PyObject *error_type, *value, *trace;

	PyErr_Fetch(&error_type, &value, &trace);
	if (flight->active && flight->group->context->context &&
	    PyErr_WarnFormat(PyExc_ResourceWarning, 1, "%s: the request was dropped in flight; "
			     "its buffers live on until it has ended", flight->call))
		PyErr_WriteUnraisable(NULL);
	pycoll_drop_flight(flight);
	PyErr_Restore(error_type, value, trace);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static PyMethodDef request_methods[] = {
	{ "wait", (PyCFunction)request_wait, METH_NOARGS,
	  "wait($self, /)\n--\n\n"
	  "Waits until the request has ended, at most until its deadline, and returns its receive\n"
	  "buffer (of recv() a Received). Other threads run meanwhile; Ctrl-C leaves it in flight." },
	{ "test", (PyCFunction)request_test, METH_NOARGS,
	  "test($self, /)\n--\n\n"
	  "Polls once. True: the request has ended." },
	{ "start", (PyCFunction)request_start, METH_NOARGS,
	  "start($self, /)\n--\n\n"
	  "Starts a persistent request, and returns it." },
	{ "cancel", (PyCFunction)request_cancel, METH_NOARGS,
	  "cancel($self, /)\n--\n\n"
	  "Ends the request, and fails its group on all ranks: RevokedError." },
	{ "set_deadline", (PyCFunction)request_deadline, METH_O,
	  "set_deadline($self, seconds, /)\n--\n\n"
	  "From the start of the request; 0: the group's. Also while it is in flight." },
	{ "explain", (PyCFunction)request_explain, METH_NOARGS,
	  "explain($self, /)\n--\n\n"
	  "One line: which algorithm, and why it was chosen. Empty after a nonblocking one ended." },
	{ "close", (PyCFunction)request_close, METH_NOARGS,
	  "close($self, /)\n--\n\n"
	  "Frees a request that is not in flight, and lets its buffers go." },
	{ "__enter__", request_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)request_exit, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef request_getset[] = {
	{ "active", (getter)get_active, NULL, "It was started, and its end was not seen yet.", NULL },
	{ "persistent", (getter)get_persistent, NULL, "It may be started again.", NULL },
	{ "result", (getter)get_result, NULL, "What wait() returns: the receive buffer, a Received, or None.", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot request_slots[] = {
	{ Py_tp_dealloc, request_dealloc },
	{ Py_tp_methods, request_methods },
	{ Py_tp_getset, request_getset },
	{ Py_tp_doc, "A collective under way (MPI: a request). It keeps its buffers alive." },
	{ 0, NULL },
};

PyType_Spec pycoll_request_spec = {
	.name = "coll.Request",
	.basicsize = sizeof(pycoll_request),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = request_slots,
};
