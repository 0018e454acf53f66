// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One call of a collective: its arguments are read and checked, the library is called, and the
 * run is waited for or becomes a request. The library trusts its caller for the sizes of
 * buffers, so all of them are compared here.
 */
#include <stdlib.h>
#include <string.h>

#include "pycoll.h"

bool pycoll_given(PyObject *object)
{
	return object && object != Py_None;
}

/* ---- buffers -------------------------------------------------------------------- */

static const char *buffer_name(const struct pycoll_call *call, const struct pycoll_buffer *buffer)
{
	return buffer == &call->flight->send ? "sendbuf" : "recvbuf";
}

static int call_missing(const struct pycoll_call *call, const char *name)
{
	pycoll_refuse(PyExc_TypeError, call->kind->name, name, "it is missing; valid: a buffer");
	return -1;
}

int pycoll_call_send(struct pycoll_call *call)
{
	if (!pycoll_given(call->sendbuf))
		return call_missing(call, "sendbuf");
	return pycoll_buffer_get(&call->flight->send, call->sendbuf, PYCOLL_READ,
				 call->type_wanted, call->kind->name, "sendbuf");
}

int pycoll_call_recv(struct pycoll_call *call, enum pycoll_access access)
{
	if (!pycoll_given(call->recvbuf))
		return call_missing(call, "recvbuf");
	if (call->recvbuf != pycoll_in_place && !call->flight->result)
		call->flight->result = Py_NewRef(call->recvbuf);
	return pycoll_buffer_get(&call->flight->recv, call->recvbuf, access, call->type_wanted,
				 call->kind->name, "recvbuf");
}

int pycoll_call_result(struct pycoll_call *call, const char *shape)
{
	struct pycoll_flight *flight = call->flight;
	PyObject *module;

	if (pycoll_given(call->recvbuf))
		return pycoll_call_recv(call, PYCOLL_WRITE);
	if (flight->send.in_place || !flight->send.held)
		return call_missing(call, "recvbuf");
	module = PyImport_ImportModule("coll.arrays");
	if (module)
		flight->result = PyObject_CallMethod(module, "result", "Osi", call->sendbuf, shape,
						     call->self->ranks);
	Py_XDECREF(module);
	call->recvbuf = flight->result;
	return flight->result ? pycoll_call_recv(call, PYCOLL_WRITE) : -1;
}

int pycoll_call_expect(struct pycoll_call *call, const struct pycoll_buffer *buffer, size_t count,
		       const char *why)
{
	if (!buffer->held || buffer->count == count)
		return 0;
	pycoll_refuse(PyExc_ValueError, call->kind->name, buffer_name(call, buffer), "it has %zu "
		      "elements; valid: %zu, %s", buffer->count, count, why);
	return -1;
}

int pycoll_call_blocks(struct pycoll_call *call, const struct pycoll_buffer *buffer, size_t *block)
{
	const size_t ranks = call->self->ranks;

	*block = buffer->count / ranks;
	if (*block * ranks == buffer->count)
		return 0;
	pycoll_refuse(PyExc_ValueError, call->kind->name, buffer_name(call, buffer), "it has %zu "
		      "elements; valid: a multiple of the %zu ranks", buffer->count, ranks);
	return -1;
}

int pycoll_not_in_place(const struct pycoll_call *call, const struct pycoll_buffer *buffer,
			const char *name)
{
	if (!buffer->in_place)
		return 0;
	pycoll_refuse(PyExc_ValueError, call->kind->name, name, "it is IN_PLACE; valid: a buffer");
	return -1;
}

/* ---- counts ------------------------------------------------------------------------ */

static int refuse_entry(const struct pycoll_call *call, const char *name, Py_ssize_t i)
{
	PyErr_Clear();
	pycoll_refuse(PyExc_ValueError, call->kind->name, name, "entry %zd is no count of "
		      "elements; valid: 0 or more", i);
	return -1;
}

/* An entry for each rank. */
static int numbers_get(const struct pycoll_call *call, PyObject *object, const char *name,
		       size_t **numbers)
{
	const Py_ssize_t ranks = call->self->ranks;
	PyObject *list = PySequence_List(object);
	Py_ssize_t i;
	int error = 0;

	if (!list)
		return -1;
	if (PyList_Size(list) != ranks) {
		pycoll_refuse(PyExc_ValueError, call->kind->name, name, "it has %zd entries; valid: "
			      "%zd, one for each rank", PyList_Size(list), ranks);
		Py_DECREF(list);
		return -1;
	}
	*numbers = malloc((ranks + 1) * sizeof(**numbers));
	if (!*numbers) {
		PyErr_NoMemory();
		error = -1;
	}
	for (i = 0; !error && i < ranks; i++) {
		PyObject *index = PyNumber_Index(PyList_GetItem(list, i));

		(*numbers)[i] = index ? PyLong_AsSize_t(index) : 0;
		Py_XDECREF(index);
		if (PyErr_Occurred())
			error = refuse_entry(call, name, i);
	}
	Py_DECREF(list);
	return error;
}

int pycoll_call_counts(struct pycoll_call *call, PyObject *object, const char *name,
		       size_t **counts)
{
	if (pycoll_given(object))
		return numbers_get(call, object, name, counts);
	pycoll_refuse(PyExc_TypeError, call->kind->name, name, "it is missing; valid: the elements "
		      "of each of the %d ranks", call->self->ranks);
	return -1;
}

/* The blocks one after the other. */
static int displs_follow(struct pycoll_call *call, const size_t *counts, size_t **displs)
{
	const int ranks = call->self->ranks;
	size_t at = 0;
	int i;

	*displs = malloc((ranks + 1) * sizeof(**displs));
	if (!*displs) {
		PyErr_NoMemory();
		return -1;
	}
	for (i = 0; i < ranks; i++) {
		(*displs)[i] = at;
		if (__builtin_add_overflow(at, counts[i], &at))
			at = SIZE_MAX;
	}
	return 0;
}

int pycoll_call_displs(struct pycoll_call *call, PyObject *object, const char *name,
		       const size_t *counts, const struct pycoll_buffer *buffer, size_t **displs)
{
	int error = pycoll_given(object) ? numbers_get(call, object, name, displs) :
					   displs_follow(call, counts, displs);
	int i;

	for (i = 0; !error && i < call->self->ranks; i++) {
		const size_t at = (*displs)[i];

		if (!counts[i] || (at <= buffer->count && counts[i] <= buffer->count - at))
			continue;
		pycoll_refuse(PyExc_ValueError, call->kind->name, buffer_name(call, buffer), "it has "
			      "%zu elements, but the block of rank %d is elements %zu to %zu; valid: "
			      "counts and displacements within it", buffer->count, i, at,
			      at + counts[i] - 1);
		error = -1;
	}
	return error;
}

/* ---- types --------------------------------------------------------------------------- */

static int call_type_wanted(struct pycoll_call *call)
{
	call->type_wanted = -1;
	if (!pycoll_given(call->type_object))
		return 0;
	call->type_wanted = PyLong_AsLongLong(call->type_object);
	if (call->type_wanted == -1 && PyErr_Occurred())
		return -1;
	if (pycoll_type_bytes(call->type_wanted))
		return 0;
	pycoll_refuse(PyExc_ValueError, call->kind->name, "type", "%lld is no type; valid: "
		      "coll.INT8 to coll.DOUBLE_INT32, coll.opaque(bytes)", call->type_wanted);
	return -1;
}

static int call_types(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;
	char one[32], other[32];

	call->type = send->held ? send->type : recv->type;
	if (!send->held || !recv->held || send->type == recv->type)
		return 0;
	pycoll_refuse(PyExc_TypeError, call->kind->name, "recvbuf", "its elements are %s, those of "
		      "sendbuf %s; valid: the same type", pycoll_type_name(recv->type, one),
		      pycoll_type_name(send->type, other));
	return -1;
}

static int call_op(struct pycoll_call *call)
{
	struct pycoll_flight *flight = call->flight;
	const bool is_bool = flight->send.is_bool || flight->recv.is_bool;
	char text[32];

	if (pycoll_op_get(call->op_object, call->self->context, call->kind->name, &call->op,
			  &flight->op))
		return -1;
	if (!flight->op && call->type >= COLL_OPAQUE(1)) {
		pycoll_refuse(PyExc_TypeError, call->kind->name, flight->send.held ? "sendbuf" :
			      "recvbuf", "elements of type %s cannot be reduced; valid: numbers of "
			      "this machine, another type=, or an op of Context.op()",
			      pycoll_type_name(call->type, text));
		return -1;
	}
	if (!flight->op && is_bool && call->op == COLL_SUM) {
		pycoll_refuse(PyExc_TypeError, call->kind->name, "op", "booleans have no SUM; "
			      "valid: LOR, LAND, LXOR, MIN, MAX, or a sum of integers");
		return -1;
	}
	return 0;
}

/* ---- the call -------------------------------------------------------------------------- */

static int call_prepare(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	const bool reduces = call->kind->parse(call, args, kwargs) == 1;
	int error = PyErr_Occurred() ? -1 : call_type_wanted(call);

	if (!error)
		error = call->kind->check(call);
	if (!error)
		error = call_types(call);
	if (!error && reduces)
		error = call_op(call);
	return error;
}

static int call_issue(struct pycoll_call *call)
{
	struct pycoll_flight *flight = call->flight;
	struct pycoll_failure failure = { 0 };
	PyThreadState *thread;
	int error;

	call->group = pycoll_group_enter(call->self, &thread);
	if (!call->group)
		return -1;
	error = call->kind->issue(call, &flight->run);
	if (error)
		failure = pycoll_failure_of(call->group, error);
	flight->persistent = call->persistent;
	flight->active = !error && !call->persistent;
	pycoll_leave(call->self->context, thread);
	if (!error)
		return 0;
	pycoll_raise(&failure, call->kind->name);
	return -1;
}

static int call_start(struct pycoll_call *call)
{
	PyObject *op = call->persistent ? NULL : call->flight->op;
	int error;

	pycoll_op_begin(op);
	error = call_issue(call);
	if (error)
		Py_XDECREF(pycoll_op_end(op));
	return error;
}

/* Takes the flight. */
static PyObject *call_finish(struct pycoll_flight *flight, enum pycoll_form form)
{
	PyObject *result = NULL;

	if (form != PYCOLL_BLOCKING)
		return pycoll_request_new(flight);
	if (!pycoll_flight_wait_or_cancel(flight))
		result = pycoll_flight_result(flight);
	pycoll_drop_flight(flight);
	return result;
}

static void call_free_counts(struct pycoll_call *call)
{
	free(call->counts);
	free(call->displs);
	free(call->recv_counts);
	free(call->recv_displs);
}

PyObject *pycoll_call(pycoll_group *self, PyObject *args, PyObject *kwargs,
		      const struct pycoll_kind *kind, enum pycoll_form form)
{
	struct pycoll_call call = { .kind = kind, .self = self,
				    .persistent = form == PYCOLL_PERSISTENT };
	int error;

	pycoll_reap(self->context);
	call.flight = pycoll_flight_new(self, kind->name);
	if (!call.flight)
		return NULL;
	error = call_prepare(&call, args, kwargs);
	if (!error)
		error = call_start(&call);
	call_free_counts(&call);
	if (!error)
		return call_finish(call.flight, form);
	pycoll_flight_free(call.flight);
	return NULL;
}
