// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Groups: ranks that act together. Making one is collective, and waits in the library. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "pycoll.h"

struct coll_group *pycoll_group_enter(pycoll_group *self, PyThreadState **thread)
{
	if (self->closed) {
		PyErr_SetString(PyExc_ValueError, "the group is closed");
		return NULL;
	}
	if (!pycoll_enter(self->context, thread))
		return NULL;
	if (self->group)
		return self->group;
	pycoll_leave(self->context, *thread);
	PyErr_SetString(PyExc_ValueError, "the group is closed");
	return NULL;
}

PyObject *pycoll_group_new(pycoll_context *context, struct coll_group *group, bool world)
{
	pycoll_group *self = PyObject_New(pycoll_group, pycoll_group_type);

	if (!self) {
		if (!world)
			pycoll_drop_group(context, group);
		return NULL;
	}
	self->context = (pycoll_context *)Py_NewRef((PyObject *)context);
	self->group = group;
	self->rank = coll_rank(group);
	self->ranks = coll_ranks(group);
	self->world = world;
	self->closed = false;
	self->flights = 0;
	if (world)
		context->world = (PyObject *)self;
	return (PyObject *)self;
}

static void group_free(pycoll_group *self)
{
	struct coll_group *group = self->group;

	self->closed = true;
	if (self->flights || !group || self->world)
		return;
	self->group = NULL;
	pycoll_drop_group(self->context, group);
}

void pycoll_group_flight_ended(pycoll_group *self)
{
	self->flights--;
	if (self->closed)
		group_free(self);
}

static void group_dealloc(pycoll_group *self)
{
	PyTypeObject *type = Py_TYPE((PyObject *)self);

	if (self->world && self->context->world == (PyObject *)self)
		self->context->world = NULL;
	group_free(self);
	Py_DECREF((PyObject *)self->context);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

/* ---- groups from groups ---------------------------------------------------------------- */

static PyObject *group_made(pycoll_group *self, const char *call, struct pycoll_failure *failure,
			    struct coll_group *part)
{
	if (failure->error)
		return pycoll_raise(failure, call);
	free(failure->failed);
	if (!part)
		Py_RETURN_NONE;
	return pycoll_group_new(self->context, part, false);
}

/* Inside enter and leave. */
static struct pycoll_failure failure_or_none(struct coll_group *group, int error)
{
	return error ? pycoll_failure_of(group, error) : (struct pycoll_failure){ 0 };
}

static PyObject *group_split(pycoll_group *self, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "color", "key", NULL };
	struct coll_group *group, *part = NULL;
	struct pycoll_failure failure;
	PyThreadState *thread;
	PyObject *color;
	int key = 0;
	long number;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|i:split", (char **)keywords, &color,
					 &key))
		return NULL;
	number = color == Py_None ? -1 : PyLong_AsLong(color);
	if (PyErr_Occurred())
		return NULL;
	if (number > INT_MAX || (number < 0 && color != Py_None))
		return pycoll_refuse(PyExc_ValueError, "split", "color", "%ld; valid: 0 to %d, or "
				     "None for no group", number, INT_MAX);
	pycoll_reap(self->context);
	group = pycoll_group_enter(self, &thread);
	if (!group)
		return NULL;
	failure = failure_or_none(group, coll_group_split(group, number, key, &part));
	pycoll_leave(self->context, thread);
	return group_made(self, "split", &failure, part);
}

/* Ranks from a sequence; NULL: an exception is set. */
static int *ranks_from(PyObject *sequence, int *count)
{
	PyObject *list = PySequence_List(sequence);
	const Py_ssize_t size = list ? PyList_Size(list) : 0;
	int *ranks = list && size < INT_MAX ? malloc((size + 1) * sizeof(*ranks)) : NULL;
	Py_ssize_t i;

	if (list && !ranks)
		PyErr_NoMemory();
	for (i = 0; ranks && i < size; i++) {
		const long rank = PyLong_AsLong(PyList_GetItem(list, i));

		ranks[i] = rank < 0 || rank > INT_MAX ? -1 : rank;
		if (PyErr_Occurred()) {
			free(ranks);
			ranks = NULL;
		}
	}
	*count = size;
	Py_XDECREF(list);
	return ranks;
}

static PyObject *group_from_ranks(pycoll_group *self, PyObject *sequence)
{
	struct coll_group *group, *part = NULL;
	struct pycoll_failure failure;
	PyThreadState *thread;
	int count, *ranks = ranks_from(sequence, &count);

	if (!ranks)
		return NULL;
	pycoll_reap(self->context);
	group = pycoll_group_enter(self, &thread);
	if (group) {
		failure = failure_or_none(group, coll_group_from_ranks(group, ranks, count, &part));
		pycoll_leave(self->context, thread);
	}
	free(ranks);
	return group ? group_made(self, "from_ranks", &failure, part) : NULL;
}

static PyObject *group_derive(pycoll_group *self, const char *call,
			      int (*derive)(struct coll_group *, struct coll_group **))
{
	struct coll_group *group, *part = NULL;
	struct pycoll_failure failure;
	PyThreadState *thread;

	pycoll_reap(self->context);
	group = pycoll_group_enter(self, &thread);
	if (!group)
		return NULL;
	failure = failure_or_none(group, derive(group, &part));
	pycoll_leave(self->context, thread);
	return group_made(self, call, &failure, part);
}

static PyObject *group_dup(pycoll_group *self, PyObject *unused)
{
	(void)unused;
	return group_derive(self, "dup", coll_group_dup);
}

static PyObject *group_shrink(pycoll_group *self, PyObject *unused)
{
	(void)unused;
	return group_derive(self, "shrink", coll_shrink);
}

/* ---- failures ------------------------------------------------------------------------------ */

static PyObject *group_agree(pycoll_group *self, PyObject *args)
{
	struct pycoll_failure failure;
	struct coll_group *group;
	PyThreadState *thread;
	PyObject *flag = NULL;
	uint64_t bits = 0;

	if (!PyArg_ParseTuple(args, "|O:agree", &flag))
		return NULL;
	bits = flag ? PyLong_AsUnsignedLongLong(flag) : UINT64_MAX;
	if (PyErr_Occurred())
		return NULL;
	pycoll_reap(self->context);
	group = pycoll_group_enter(self, &thread);
	if (!group)
		return NULL;
	failure = failure_or_none(group, coll_agree(group, &bits));
	pycoll_leave(self->context, thread);
	return failure.error ? pycoll_raise(&failure, "agree") : PyLong_FromUnsignedLongLong(bits);
}

static PyObject *group_revoke(pycoll_group *self, PyObject *unused)
{
	struct pycoll_failure failure;
	struct coll_group *group;
	PyThreadState *thread;

	(void)unused;
	group = pycoll_group_enter(self, &thread);
	if (!group)
		return NULL;
	failure = failure_or_none(group, coll_revoke(group));
	pycoll_leave(self->context, thread);
	if (failure.error)
		return pycoll_raise(&failure, "revoke");
	Py_RETURN_NONE;
}

static PyObject *list_of(const int *numbers, int count)
{
	PyObject *list = PyList_New(count);
	int i;

	for (i = 0; list && i < count; i++)
		if (PyList_SetItem(list, i, PyLong_FromLong(numbers[i])))
			Py_CLEAR(list);
	return list;
}

static PyObject *group_failed_ranks(pycoll_group *self, PyObject *unused)
{
	int *ranks = calloc(self->ranks, sizeof(*ranks)), count = 0;
	struct coll_group *group;
	PyThreadState *thread;
	PyObject *list = NULL;

	(void)unused;
	if (!ranks)
		return PyErr_NoMemory();
	group = pycoll_group_enter(self, &thread);
	if (group) {
		count = coll_failed_ranks(group, ranks, self->ranks);
		pycoll_leave(self->context, thread);
		list = list_of(ranks, count);
	}
	free(ranks);
	return list;
}

static PyObject *group_last_error(pycoll_group *self, void *unused)
{
	struct coll_group *group;
	PyThreadState *thread;
	PyObject *text;
	char *copy;

	(void)unused;
	group = pycoll_group_enter(self, &thread);
	if (!group)
		return NULL;
	copy = strdup(coll_last_error(group));
	pycoll_leave(self->context, thread);
	text = copy ? pycoll_text(copy) : PyErr_NoMemory();
	free(copy);
	return text;
}

/* ---- the rest --------------------------------------------------------------------------------- */

static int set_option(pycoll_group *self, PyObject *key, PyObject *value)
{
	struct pycoll_failure failure;
	PyObject *text = PyObject_Str(value);
	const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
	const char *wanted = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	struct coll_group *group = NULL;
	PyThreadState *thread;

	if (name && wanted)
		group = pycoll_group_enter(self, &thread);
	if (group) {
		failure = failure_or_none(group, coll_group_set(group, name, wanted));
		pycoll_leave(self->context, thread);
	}
	Py_XDECREF(text);
	if (group && failure.error)
		pycoll_raise(&failure, "set");
	return group && !failure.error ? 0 : -1;
}

static PyObject *group_set(pycoll_group *self, PyObject *args, PyObject *options)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	if (PyTuple_Size(args)) {
		PyErr_SetString(PyExc_TypeError, "set: options are keywords: set(deadline='5s')");
		return NULL;
	}
	while (options && PyDict_Next(options, &at, &key, &value))
		if (set_option(self, key, value))
			return NULL;
	Py_RETURN_NONE;
}

static PyObject *group_clusters(pycoll_group *self, void *unused)
{
	int *cluster = calloc(self->ranks, sizeof(*cluster));
	struct coll_group *group;
	PyThreadState *thread;
	PyObject *list = NULL;

	(void)unused;
	if (!cluster)
		return PyErr_NoMemory();
	group = pycoll_group_enter(self, &thread);
	if (group) {
		coll_clusters(group, cluster);
		pycoll_leave(self->context, thread);
		list = list_of(cluster, self->ranks);
	}
	free(cluster);
	return list;
}

static PyObject *group_close(pycoll_group *self, PyObject *unused)
{
	(void)unused;
	if (self->world) {
		PyErr_SetString(PyExc_ValueError, "close: world belongs to the context; valid: "
				"Context.close()");
		return NULL;
	}
	group_free(self);
	Py_RETURN_NONE;
}

static PyObject *group_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(self);
}

/* `with context.world as world:` is allowed, and closes nothing. */
static PyObject *group_exit(pycoll_group *self, PyObject *args)
{
	(void)args;
	if (!self->world)
		group_free(self);
	Py_RETURN_NONE;
}

static PyObject *group_rank(pycoll_group *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(self->rank);
}

static PyObject *group_size(pycoll_group *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(self->ranks);
}

static PyObject *group_closed(pycoll_group *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(self->closed || !self->context->context);
}

static PyObject *group_context(pycoll_group *self, void *unused)
{
	(void)unused;
	return Py_NewRef((PyObject *)self->context);
}

static PyObject *group_repr(pycoll_group *self)
{
	return PyUnicode_FromFormat("<coll.Group: rank %d of %d%s>", self->rank, self->ranks,
				    self->closed || !self->context->context ? ", closed" : "");
}

static PyMethodDef group_methods[] = {
	{ "split", (PyCFunction)(void (*)(void))group_split, METH_VARARGS | METH_KEYWORDS,
	  "split($self, /, color, key=0)\n--\n\n"
	  "One new group per color, its ranks ordered by key, then by old rank. A color of None\n"
	  "gives None. Collective." },
	{ "from_ranks", (PyCFunction)group_from_ranks, METH_O,
	  "from_ranks($self, ranks, /)\n--\n\n"
	  "A new group of these ranks, in this order; None on a rank that is not listed.\n"
	  "Collective: listed ranks pass the same list, others theirs or an empty one." },
	{ "dup", (PyCFunction)group_dup, METH_NOARGS,
	  "dup($self, /)\n--\n\nA new group of the same ranks. Collective." },
	{ "shrink", (PyCFunction)group_shrink, METH_NOARGS,
	  "shrink($self, /)\n--\n\n"
	  "A new group of the ranks that still live, in the old order. Collective over them." },
	{ "agree", (PyCFunction)group_agree, METH_VARARGS,
	  "agree($self, flag=0xffffffffffffffff, /)\n--\n\n"
	  "The bitwise AND of the 64-bit flags of all living ranks, the same on each of them. Works\n"
	  "on a failed group." },
	{ "revoke", (PyCFunction)group_revoke, METH_NOARGS,
	  "revoke($self, /)\n--\n\nFails the group on every rank, with RevokedError." },
	{ "failed_ranks", (PyCFunction)group_failed_ranks, METH_NOARGS,
	  "failed_ranks($self, /)\n--\n\nThe ranks of the group that are known to have failed." },
	{ "set", (PyCFunction)(void (*)(void))group_set, METH_VARARGS | METH_KEYWORDS,
	  "set($self, /, **options)\n--\n\n"
	  "Sets options of this group: set(deadline='5s', allreduce='butterfly'); coll(7). All\n"
	  "ranks set the same." },
	{ "close", (PyCFunction)group_close, METH_NOARGS,
	  "close($self, /)\n--\n\nFrees the group, after its last request has ended. Local." },
	{ "__enter__", group_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)group_exit, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef group_getset[] = {
	{ "rank", (getter)group_rank, NULL, "This process in the group, 0 to size - 1.", NULL },
	{ "size", (getter)group_size, NULL, "How many ranks the group has.", NULL },
	{ "clusters", (getter)group_clusters, NULL, "Each rank's cluster.", NULL },
	{ "closed", (getter)group_closed, NULL, "It, or its context, was closed.", NULL },
	{ "context", (getter)group_context, NULL, "The context that it belongs to.", NULL },
	{ "last_error", (getter)group_last_error, NULL, "Why the last call failed, in words.", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

/* These, the collectives and the messages, which have files of their own. */
static PyMethodDef all_methods[80];

int pycoll_group_prepare(void)
{
	const PyMethodDef *const tables[] = { group_methods, pycoll_collectives,
						pycoll_messages };
	const size_t places = sizeof(all_methods) / sizeof(*all_methods);
	size_t count = 0, table;

	for (table = 0; table < sizeof(tables) / sizeof(*tables); table++) {
		const PyMethodDef *method;

		for (method = tables[table]; method->ml_name && count < places; method++)
			all_methods[count++] = *method;
	}
	if (count < places)
		return 0;
	PyErr_SetString(PyExc_SystemError, "a group has more methods than places");
	return -1;
}

static PyType_Slot group_slots[] = {
	{ Py_tp_dealloc, group_dealloc },
	{ Py_tp_methods, all_methods },
	{ Py_tp_getset, group_getset },
	{ Py_tp_repr, group_repr },
	{ Py_tp_doc, "Ranks that act together (MPI: a communicator)." },
	{ 0, NULL },
};


PyType_Spec pycoll_group_spec = {
	.name = "coll.Group",
	.basicsize = sizeof(pycoll_group),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = group_slots,
};
