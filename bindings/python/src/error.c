// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Exceptions: of the library by coll.errors, of arguments by Python's own classes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pycoll.h"

struct pycoll_failure pycoll_failure_text(int error, const char *text)
{
	struct pycoll_failure failure = { .error = error, .rank = -1 };

	snprintf(failure.text, sizeof(failure.text), "%s", text);
	return failure;
}

struct pycoll_failure pycoll_failure_of(const struct coll_group *group, int error)
{
	struct pycoll_failure failure = pycoll_failure_text(error, coll_last_error(group));
	const int count = coll_failed_ranks((struct coll_group *)group, NULL, 0);

	failure.rank = coll_error_rank(group);
	failure.failed = count > 0 ? malloc(count * sizeof(*failure.failed)) : NULL;
	if (failure.failed)
		failure.failed_count =
			coll_failed_ranks((struct coll_group *)group, failure.failed, count);
	if (failure.failed_count > count)
		failure.failed_count = count;
	return failure;
}

static PyObject *failed_list(const struct pycoll_failure *failure)
{
	PyObject *list = PyList_New(failure->failed_count);
	int i;

	for (i = 0; list && i < failure->failed_count; i++)
		if (PyList_SetItem(list, i, PyLong_FromLong(failure->failed[i])))
			Py_CLEAR(list);
	return list;
}

PyObject *pycoll_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, strlen(text), "replace");
}

/* coll.errors.error_of() chooses the class. */
static PyObject *error_make(const struct pycoll_failure *failure, const char *call)
{
	PyObject *module = PyImport_ImportModule("coll.errors"), *list = NULL, *error = NULL;
	PyObject *text = module ? pycoll_text(failure->text) : NULL;

	if (text)
		list = failed_list(failure);
	if (list)
		error = PyObject_CallMethod(module, "error_of", "issOiO", -failure->error, call,
					    coll_strerror(failure->error), text, failure->rank, list);
	Py_XDECREF(list);
	Py_XDECREF(text);
	Py_XDECREF(module);
	return error;
}

PyObject *pycoll_raise(struct pycoll_failure *failure, const char *call)
{
	PyObject *error = error_make(failure, call);

	free(failure->failed);
	failure->failed = NULL;
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	return NULL;
}

PyObject *pycoll_refuse(PyObject *type, const char *call, const char *name, const char *format,
			...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (name)
		PyErr_Format(type, "%s: %s: %s", call, name, text);
	else
		PyErr_Format(type, "%s: %s", call, text);
	return NULL;
}
