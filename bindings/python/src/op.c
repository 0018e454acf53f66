// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Reductions written in Python. The library calls them without the GIL, from the thread that
 * waits or from one of its own. They get copies of the operands, so that nothing they keep
 * refers to memory of the library.
 */
#include <string.h>

#include "pycoll.h"

static _Thread_local int in_reduction;

bool pycoll_in_reduction(void)
{
	return in_reduction;
}

/* A NumPy array over the memory of `object`, or a memoryview where there is no NumPy. */
static PyObject *array_over(PyObject *object, enum coll_type type)
{
	PyObject *module = PyImport_ImportModule("coll.arrays"), *array = NULL;
	char text[32];

	if (module)
		array = PyObject_CallMethod(module, "array_over", "Os", object,
					    pycoll_type_dtype(type, text));
	Py_XDECREF(module);
	return array;
}

static int function_call(PyObject *function, PyObject *left, PyObject *right, PyObject *out,
			 enum coll_type type)
{
	PyObject *a = array_over(left, type), *b = a ? array_over(right, type) : NULL;
	PyObject *c = b ? array_over(out, type) : NULL;
	PyObject *answer = c ? PyObject_CallFunctionObjArgs(function, a, b, c, NULL) : NULL;

	Py_XDECREF(a);
	Py_XDECREF(b);
	Py_XDECREF(c);
	Py_XDECREF(answer);
	return answer ? 0 : -1;
}

static int reduce_copies(PyObject *function, void *out, const void *left, const void *right,
			 size_t bytes, enum coll_type type)
{
	PyObject *a = PyBytes_FromStringAndSize(left, bytes);
	PyObject *b = a ? PyBytes_FromStringAndSize(right, bytes) : NULL;
	PyObject *c = b ? PyByteArray_FromStringAndSize(left, bytes) : NULL;
	int failed = c ? function_call(function, a, b, c, type) : -1;

	if (!failed)
		memcpy(out, PyByteArray_AsString(c), bytes);
	Py_XDECREF(a);
	Py_XDECREF(b);
	Py_XDECREF(c);
	return failed;
}

/*
 * The first exception is kept: the waits for the runs with this Op raise it. The library does not say
 * for which of them it has called.
 */
static void keep_exception(pycoll_op *op)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	if (trace && value)
		PyException_SetTraceback(value, trace);
	if (value && !op->raised) {
		__atomic_store_n(&op->raised, value, __ATOMIC_RELEASE);
		value = NULL;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
}

static void op_function(void *out, const void *left, const void *right, size_t count,
			enum coll_type type, void *argument)
{
	const size_t bytes = count * pycoll_type_bytes(type);
	PyGILState_STATE state = PyGILState_Ensure();
	pycoll_op *self = argument;

	in_reduction++;
	if (!self->raised && reduce_copies(self->function, out, left, right, bytes, type))
		keep_exception(self);
	in_reduction--;
	PyGILState_Release(state);
}

bool pycoll_op_has_raised(PyObject *op)
{
	return op && __atomic_load_n(&((pycoll_op *)op)->raised, __ATOMIC_ACQUIRE);
}

/* What a run has raised after its end is of no call. */
void pycoll_op_begin(PyObject *object)
{
	pycoll_op *op = (pycoll_op *)object;
	PyObject *late;

	if (!op || op->flights++)
		return;
	late = __atomic_exchange_n(&op->raised, NULL, __ATOMIC_ACQ_REL);
	Py_XDECREF(late);
}

PyObject *pycoll_op_end(PyObject *object)
{
	pycoll_op *op = (pycoll_op *)object;

	if (!op)
		return NULL;
	return --op->flights ? Py_XNewRef(op->raised) :
			       __atomic_exchange_n(&op->raised, NULL, __ATOMIC_ACQ_REL);
}

PyObject *pycoll_op_new(pycoll_context *context, PyObject *function, int commutative)
{
	struct coll_context *library;
	PyThreadState *thread;
	struct pycoll_failure failure;
	pycoll_op *self;
	int error;

	if (!PyCallable_Check(function))
		return pycoll_refuse(PyExc_TypeError, "op", "function", "it cannot be called; "
				     "valid: function(left, right, out)");
	self = PyObject_New(pycoll_op, pycoll_op_type);
	if (!self)
		return NULL;
	self->made = false;
	self->flights = 0;
	self->raised = NULL;
	self->context = (pycoll_context *)Py_NewRef((PyObject *)context);
	self->function = Py_NewRef(function);
	library = pycoll_enter(context, &thread);
	if (!library) {
		Py_DECREF((PyObject *)self);
		return NULL;
	}
	error = coll_op_create(library, op_function, self, commutative, &self->number);
	if (error)
		failure = pycoll_failure_text(error, coll_context_error(library));
	pycoll_leave(context, thread);
	self->made = !error;
	if (!error)
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return pycoll_raise(&failure, "op");
}

int pycoll_op_get(PyObject *object, pycoll_context *context, const char *call,
		  enum coll_reduction *op, PyObject **kept)
{
	long number = COLL_SUM;

	if (object && Py_TYPE(object) == pycoll_op_type) {
		*op = ((pycoll_op *)object)->number;
		if (((pycoll_op *)object)->context != context) {
			pycoll_refuse(PyExc_ValueError, call, "op", "it was made by another context");
			return -1;
		}
		*kept = Py_NewRef(object);
		return 0;
	}
	if (object && PyLong_Check(object))
		number = PyLong_AsLong(object);
	else if (object && object != Py_None)
		number = -1;
	if (PyErr_Occurred() || number < 0 || number >= COLL_REDUCTIONS) {
		PyErr_Clear();
		pycoll_refuse(PyExc_ValueError, call, "op", "it is no reduction; valid: coll.SUM to "
			      "coll.MAXLOC, or what Context.op() returns");
		return -1;
	}
	*op = number;
	return 0;
}

/* ---- the type ----------------------------------------------------------------- */

static void op_dealloc(pycoll_op *self)
{
	PyTypeObject *type = Py_TYPE((PyObject *)self);

	if (self->made)
		pycoll_drop_op(self->context, self->number);
	Py_XDECREF(self->raised);
	Py_DECREF(self->function);
	Py_DECREF((PyObject *)self->context);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static PyType_Slot op_slots[] = {
	{ Py_tp_dealloc, op_dealloc },
	{ Py_tp_doc, "A reduction written in Python, made by Context.op()." },
	{ 0, NULL },
};

PyType_Spec pycoll_op_spec = {
	.name = "coll.Op",
	.basicsize = sizeof(pycoll_op),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = op_slots,
};
