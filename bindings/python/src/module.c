// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The module coll._coll. */
#include "pycoll.h"

PyTypeObject *pycoll_context_type, *pycoll_group_type, *pycoll_request_type, *pycoll_op_type;
PyObject *pycoll_in_place;

static PyObject *module_version(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(coll_version());
}

static PyMethodDef module_functions[] = {
	{ "open", pycoll_open, METH_VARARGS, NULL },
	{ "close_all", pycoll_close_all, METH_NOARGS, NULL },
	{ "version", module_version, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
	*type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *type ? PyModule_AddType(module, *type) : -1;
}

/* One object that stands for itself: its class has a name to print. */
static int add_in_place(PyObject *module)
{
	PyObject *errors = PyImport_ImportModule("coll.errors");

	pycoll_in_place = errors ? PyObject_GetAttrString(errors, "IN_PLACE") : NULL;
	Py_XDECREF(errors);
	return pycoll_in_place ? PyModule_AddObjectRef(module, "IN_PLACE", pycoll_in_place) : -1;
}

static int add_all(PyObject *module)
{
	return pycoll_group_prepare() ||
	       add_type(module, &pycoll_context_spec, &pycoll_context_type) ||
	       add_type(module, &pycoll_group_spec, &pycoll_group_type) ||
	       add_type(module, &pycoll_request_spec, &pycoll_request_type) ||
	       add_type(module, &pycoll_op_spec, &pycoll_op_type) ||
	       PyModule_AddFunctions(module, pycoll_request_functions) || add_in_place(module) ?
		       -1 : 0;
}

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "coll._coll",
	.m_size = -1,
	.m_methods = module_functions,
};

PyMODINIT_FUNC PyInit__coll(void);
PyMODINIT_FUNC PyInit__coll(void)
{
	PyObject *module = PyModule_Create(&module_def);

	if (module && add_all(module))
		Py_CLEAR(module);
	return module;
}
