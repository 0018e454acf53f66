// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Contexts. What a destructor drops is freed at once if the library is free, else by a later
 * call: a destructor may run anywhere, also while this thread is in the library.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pycoll.h"

static pycoll_context *contexts;	/* open ones */

/* ---- in and out of the library --------------------------------------------------- */

int pycoll_may_enter(const pycoll_context *self)
{
	if (pycoll_in_reduction()) {
		PyErr_SetString(PyExc_RuntimeError, "a reduction must not call the library");
		return -1;
	}
	if (self->pid != getpid()) {
		PyErr_SetString(PyExc_RuntimeError, "this process is a fork of the one that opened "
				"the context; valid: the process that opened it");
		return -1;
	}
	return 0;
}

struct coll_context *pycoll_enter(pycoll_context *self, PyThreadState **thread)
{
	if (pycoll_may_enter(self))
		return NULL;
	*thread = PyEval_SaveThread();
	pthread_mutex_lock(&self->mutex);
	if (self->context)
		return self->context;
	pycoll_leave(self, *thread);
	PyErr_SetString(PyExc_ValueError, "the context is closed");
	return NULL;
}

void pycoll_leave(pycoll_context *self, PyThreadState *thread)
{
	pthread_mutex_unlock(&self->mutex);
	PyEval_RestoreThread(thread);
}

/* For destructors: does not wait, sets no exception. False: not now. */
static bool try_enter(pycoll_context *self, PyThreadState **thread)
{
	if (pycoll_in_reduction() || self->pid != getpid() || !self->context ||
	    pthread_mutex_trylock(&self->mutex))
		return false;
	*thread = PyEval_SaveThread();
	return true;
}

/* ---- what was dropped -------------------------------------------------------------- */

struct pycoll_garbage {
	struct coll_group *group;	/* or NULL */
	enum coll_reduction op;
	struct pycoll_garbage *next;
};

static void garbage_free(struct coll_context *context, struct coll_group *group,
			 enum coll_reduction op)
{
	if (group)
		coll_group_free(group);
	else
		coll_op_free(context, op);
}

/* Without memory it stays in the library until the context is closed. */
static void garbage_keep(pycoll_context *self, struct coll_group *group, enum coll_reduction op)
{
	struct pycoll_garbage *garbage = self->context ? malloc(sizeof(*garbage)) : NULL;

	if (!garbage)
		return;
	*garbage = (struct pycoll_garbage){ group, op, self->garbage };
	self->garbage = garbage;
}

static void garbage_drop(pycoll_context *self, struct coll_group *group, enum coll_reduction op)
{
	PyThreadState *thread;

	if (!try_enter(self, &thread)) {
		garbage_keep(self, group, op);
		return;
	}
	if (self->context)
		garbage_free(self->context, group, op);
	pycoll_leave(self, thread);
}

void pycoll_drop_group(pycoll_context *self, struct coll_group *group)
{
	garbage_drop(self, group, 0);
}

/* Runs of it may be in flight whose requests are gone: those keep a reference to the Op. */
void pycoll_drop_op(pycoll_context *self, enum coll_reduction op)
{
	garbage_drop(self, NULL, op);
}

static void garbage_reap(pycoll_context *self)
{
	struct pycoll_garbage *list = self->garbage, *garbage;

	self->garbage = NULL;
	while ((garbage = list)) {
		list = garbage->next;
		garbage_drop(self, garbage->group, garbage->op);
		free(garbage);
	}
}

/* Polls it if it is in flight. True: the library has nothing of it any more. */
static bool flight_ended(pycoll_context *self, struct pycoll_flight *flight)
{
	struct pycoll_failure failure = { 0 };
	PyThreadState *thread;

	if (!self->context || !flight->run)
		return true;
	if (!try_enter(self, &thread))
		return false;
	if (self->context && flight->run && flight->active)
		pycoll_flight_test(flight, &failure);
	if (self->context && flight->run && !flight->active)
		(void)!coll_run_free(&flight->run);
	pycoll_leave(self, thread);
	free(failure.failed);
	return !self->context || !flight->run;
}

void pycoll_drop_flight(struct pycoll_flight *flight)
{
	pycoll_context *context = flight->group->context;

	if (flight_ended(context, flight)) {
		pycoll_flight_free(flight);
		return;
	}
	flight->next = context->orphans;
	context->orphans = flight;
}

static void orphans_reap(pycoll_context *self)
{
	struct pycoll_flight *list = self->orphans, *flight;

	self->orphans = NULL;
	while ((flight = list)) {
		list = flight->next;
		pycoll_drop_flight(flight);
	}
}

/* Freeing the last orphan may free the last reference to the context. */
void pycoll_reap(pycoll_context *self)
{
	if (!self->orphans && !self->garbage)
		return;
	Py_INCREF((PyObject *)self);
	if (self->orphans)
		orphans_reap(self);
	if (self->garbage)
		garbage_reap(self);
	Py_DECREF((PyObject *)self);
}

/* ---- opening and closing ------------------------------------------------------------ */

static void context_link(pycoll_context *self)
{
	self->next = contexts;
	self->link = &contexts;
	if (contexts)
		contexts->link = &self->next;
	contexts = self;
}

static void context_unlink(pycoll_context *self)
{
	if (!self->link)
		return;
	*self->link = self->next;
	if (self->next)
		self->next->link = self->link;
	self->link = NULL;
}

static pycoll_context *context_new(void)
{
	pycoll_context *self = PyObject_New(pycoll_context, pycoll_context_type);

	if (!self)
		return NULL;
	memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
	pthread_mutex_init(&self->mutex, NULL);
	self->pid = getpid();
	return self;
}

/*
 * Calls are started and awaited here, so that signals are served meanwhile: of such nothing follows
 * (coll(7), measure), and a survey makes a root wait. To be freed; NULL: no memory.
 */
static char *options_here(const char *options)
{
	const bool asked = getenv("COLL_MEASURE") || (options && strstr(options, "measure="));
	const char *off = asked ? "" : " measure=off";
	const size_t bytes = (options ? strlen(options) : 0) + strlen(off) + 1;
	char *text = malloc(bytes);

	if (text)
		snprintf(text, bytes, "%s%s", options ? options : "", off);
	return text;
}

PyObject *pycoll_open(PyObject *module, PyObject *args)
{
	struct pycoll_failure failure;
	const char *options = NULL;
	PyThreadState *thread;
	pycoll_context *self;
	char *text;
	int error;

	(void)module;
	if (!PyArg_ParseTuple(args, "|z:open", &options))
		return NULL;
	self = context_new();
	if (!self)
		return NULL;
	text = options_here(options);
	if (!text) {
		Py_DECREF((PyObject *)self);
		return PyErr_NoMemory();
	}
	thread = PyEval_SaveThread();
	error = coll_open(text, &self->context);
	if (error)
		failure = pycoll_failure_text(error, coll_context_error(NULL));
	PyEval_RestoreThread(thread);
	free(text);
	if (error) {
		self->context = NULL;
		Py_DECREF((PyObject *)self);
		return pycoll_raise(&failure, "open");
	}
	context_link(self);
	return (PyObject *)self;
}

/* A fork's copy of the mutex may be held by a thread that the fork does not have. */
static void context_close(pycoll_context *self)
{
	const bool here = self->pid == getpid();
	PyThreadState *thread;

	context_unlink(self);
	thread = PyEval_SaveThread();
	if (here)
		pthread_mutex_lock(&self->mutex);
	coll_close(self->context);
	self->context = NULL;
	if (here)
		pthread_mutex_unlock(&self->mutex);
	PyEval_RestoreThread(thread);
}

static PyObject *context_do_close(pycoll_context *self, PyObject *unused)
{
	(void)unused;
	if (pycoll_in_reduction()) {
		PyErr_SetString(PyExc_RuntimeError, "a reduction must not call the library");
		return NULL;
	}
	Py_INCREF((PyObject *)self);
	if (self->context) {
		context_close(self);
		pycoll_reap(self);
	}
	Py_DECREF((PyObject *)self);
	Py_RETURN_NONE;
}

PyObject *pycoll_close_all(PyObject *module, PyObject *unused)
{
	(void)module;
	while (contexts) {
		PyObject *none = context_do_close(contexts, NULL);

		if (!none)
			return NULL;
		Py_DECREF(none);
	}
	(void)unused;
	Py_RETURN_NONE;
}

/* Each group, each request and each Op refers to its context: here there is none any more. */
static void context_dealloc(pycoll_context *self)
{
	PyTypeObject *type = Py_TYPE((PyObject *)self);
	struct pycoll_garbage *garbage;

	if (self->context)
		context_close(self);
	while ((garbage = self->garbage)) {
		self->garbage = garbage->next;
		free(garbage);
	}
	pthread_mutex_destroy(&self->mutex);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

/* ---- methods -------------------------------------------------------------------------- */

static PyObject *context_world(pycoll_context *self, void *unused)
{
	struct coll_context *context;
	struct coll_group *world;
	PyThreadState *thread;

	(void)unused;
	if (self->world && self->context)
		return Py_NewRef(self->world);
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	world = coll_world(context);
	pycoll_leave(self, thread);
	return pycoll_group_new(self, world, true);
}

static PyObject *context_closed(pycoll_context *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(!self->context);
}

static PyObject *context_progress(pycoll_context *self, PyObject *unused)
{
	struct pycoll_failure failure;
	struct coll_context *context;
	PyThreadState *thread;
	int error;

	(void)unused;
	pycoll_reap(self);
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	error = coll_progress(context);
	if (error)
		failure = pycoll_failure_text(error, coll_context_error(context));
	pycoll_leave(self, thread);
	if (error)
		return pycoll_raise(&failure, "progress");
	Py_RETURN_NONE;
}

static PyObject *context_fileno(pycoll_context *self, PyObject *unused)
{
	struct coll_context *context;
	struct pycoll_failure failure;
	PyThreadState *thread;
	int fd;

	(void)unused;
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	fd = coll_fd(context);
	pycoll_leave(self, thread);
	if (fd >= 0)
		return PyLong_FromLong(fd);
	failure = pycoll_failure_text(fd, "there is no descriptor");
	return pycoll_raise(&failure, "fileno");
}

#define COUNTERS(entry) \
	entry(runs) entry(enters) entry(syscalls) entry(sends) entry(recvs) entry(sent_bytes) \
	entry(recv_bytes) entry(copied_bytes) entry(unexpected) entry(stale) entry(skipped) \
	entry(links) entry(allocations) entry(far_sends) entry(far_bytes) entry(chunks) \
	entry(expedited) entry(deferred) entry(bypassed) entry(streams) entry(streamed) \
	entry(refused) entry(connections) entry(sealed) entry(sealed_by_kernel) \
	entry(memory_connections) entry(exposed_bytes) entry(mapped_bytes) entry(published_bytes) entry(board_sends)

#define ONE(name) + 1
_Static_assert(sizeof(struct coll_counters) == sizeof(uint64_t) * (1 COUNTERS(ONE)), "all but the size are listed");
#undef ONE

/* Takes the value. */
static int dict_put(PyObject *dict, const char *key, PyObject *value)
{
	const int error = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return error;
}

static PyObject *counters_dict(const struct coll_counters *counters)
{
	PyObject *dict = PyDict_New();
	bool failed = !dict;

#define PUT(name) \
	failed = failed || dict_put(dict, #name, PyLong_FromUnsignedLongLong(counters->name));
	COUNTERS(PUT)
#undef PUT
	if (failed)
		Py_CLEAR(dict);
	return dict;
}

static PyObject *context_counters(pycoll_context *self, PyObject *unused)
{
	struct coll_counters counters = { .size = sizeof(counters) };
	struct coll_context *context;
	struct pycoll_failure failure;
	PyThreadState *thread;
	int error;

	(void)unused;
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	error = coll_counters(context, &counters);
	if (error)
		failure = pycoll_failure_text(error, coll_context_error(context));
	pycoll_leave(self, thread);
	return error ? pycoll_raise(&failure, "counters") : counters_dict(&counters);
}

static PyObject *wan_points(const struct coll_wan *wan)
{
	PyObject *list = PyList_New(wan->points);
	uint32_t i;

	for (i = 0; list && i < wan->points; i++) {
		PyObject *point = Py_BuildValue("(Kd)", (unsigned long long)wan->point[i].links,
						wan->point[i].rate);

		if (!point || PyList_SetItem(list, i, point))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *wan_dict(const struct coll_wan *wan)
{
	PyObject *points = wan_points(wan);

	return !points ? NULL :
	       Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:I,s:N}", "alpha", wan->alpha, "beta",
			     wan->beta, "wan_alpha", wan->wan_alpha, "wan_beta", wan->wan_beta,
			     "wan_loss", wan->wan_loss, "streams", (unsigned int)wan->streams,
			     "points", points);
}

static PyObject *context_wan(pycoll_context *self, PyObject *unused)
{
	struct coll_wan wan = { .size = sizeof(wan) };
	struct coll_context *context;
	struct pycoll_failure failure;
	PyThreadState *thread;
	int error;

	(void)unused;
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	error = coll_wan(context, &wan);
	if (error)
		failure = pycoll_failure_text(error, coll_context_error(context));
	pycoll_leave(self, thread);
	if (error == -ENODATA)
		Py_RETURN_NONE;
	return error ? pycoll_raise(&failure, "wan") : wan_dict(&wan);
}

/* Inside enter and leave. It may be longer when it is asked for again: then it is cut. */
static int costs_text(struct coll_context *context, char **text)
{
	const int bytes = coll_costs(context, NULL, 0);

	if (bytes < 0)
		return bytes;
	*text = malloc(bytes + 1);
	return *text ? coll_costs(context, *text, bytes + 1) : -ENOMEM;
}

static PyObject *context_costs(pycoll_context *self, PyObject *unused)
{
	struct coll_context *context;
	struct pycoll_failure failure;
	PyThreadState *thread;
	char *text = NULL;
	PyObject *costs;
	int bytes;

	(void)unused;
	context = pycoll_enter(self, &thread);
	if (!context)
		return NULL;
	bytes = costs_text(context, &text);
	if (bytes < 0)
		failure = pycoll_failure_text(bytes, coll_context_error(context));
	pycoll_leave(self, thread);
	costs = bytes < 0 ? pycoll_raise(&failure, "costs") : pycoll_text(text);
	free(text);
	return costs;
}

static PyObject *context_op(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "function", "commutative", NULL };
	PyObject *function;
	int commutative = 1;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:op", (char **)keywords, &function,
					 &commutative))
		return NULL;
	return pycoll_op_new((pycoll_context *)self, function, commutative);
}

static PyObject *context_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(self);
}

static PyObject *context_exit(pycoll_context *self, PyObject *args)
{
	(void)args;
	return context_do_close(self, NULL);
}

static PyMethodDef context_methods[] = {
	{ "close", (PyCFunction)context_do_close, METH_NOARGS,
	  "close($self, /)\n--\n\n"
	  "Ends all requests and leaves the job. Also done at the end of a with block, and of the\n"
	  "program." },
	{ "progress", (PyCFunction)context_progress, METH_NOARGS,
	  "progress($self, /)\n--\n\n"
	  "Lets every request in flight advance, without waiting." },
	{ "fileno", (PyCFunction)context_fileno, METH_NOARGS,
	  "fileno($self, /)\n--\n\n"
	  "A descriptor for select: readable when progress() has something to do. Do not close it." },
	{ "counters", (PyCFunction)context_counters, METH_NOARGS,
	  "counters($self, /)\n--\n\n"
	  "What the engine has done so far: system calls, messages, bytes." },
	{ "wan", (PyCFunction)context_wan, METH_NOARGS,
	  "wan($self, /)\n--\n\n"
	  "What open(wan='auto') measured between clusters; None: nothing." },
	{ "costs", (PyCFunction)context_costs, METH_NOARGS,
	  "costs($self, /)\n--\n\n"
	  "The costs by which algorithms are chosen, as the lines of a file for option costs." },
	{ "op", (PyCFunction)(void (*)(void))context_op, METH_VARARGS | METH_KEYWORDS,
	  "op($self, /, function, commutative=True)\n--\n\n"
	  "A reduction of function(left, right, out), which writes left op right to out. They are\n"
	  "NumPy arrays (memoryviews without NumPy); NumPy's ufuncs fit. left is of the lower\n"
	  "ranks. It must be associative, and must not call the library." },
	{ "__enter__", context_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)context_exit, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef context_getset[] = {
	{ "world", (getter)context_world, NULL, "The group of all ranks of the job.", NULL },
	{ "closed", (getter)context_closed, NULL, "close() was called.", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot context_slots[] = {
	{ Py_tp_dealloc, context_dealloc },
	{ Py_tp_methods, context_methods },
	{ Py_tp_getset, context_getset },
	{ Py_tp_doc, "This process in its job, made by coll.open()." },
	{ 0, NULL },
};

PyType_Spec pycoll_context_spec = {
	.name = "coll.Context",
	.basicsize = sizeof(pycoll_context),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = context_slots,
};
