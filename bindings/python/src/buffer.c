// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Buffers of Python: their memory, and the type of their elements. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pycoll.h"

/* ---- types ----------------------------------------------------------------- */

struct short_int { int16_t value; int32_t index; };
struct long_int { int64_t value; int32_t index; };
struct double_int { double value; int32_t index; };

static const struct {
	const char *name, *dtype;
	size_t bytes;
} types[COLL_TYPES] = {
	[COLL_INT8] = { "INT8", "i1", 1 },
	[COLL_INT16] = { "INT16", "i2", 2 },
	[COLL_INT32] = { "INT32", "i4", 4 },
	[COLL_INT64] = { "INT64", "i8", 8 },
	[COLL_UINT8] = { "UINT8", "u1", 1 },
	[COLL_UINT16] = { "UINT16", "u2", 2 },
	[COLL_UINT32] = { "UINT32", "u4", 4 },
	[COLL_UINT64] = { "UINT64", "u8", 8 },
	[COLL_FP16] = { "FP16", "f2", 2 },
	[COLL_BF16] = { "BF16", "u2", 2 },
	[COLL_FLOAT] = { "FLOAT", "f4", 4 },
	[COLL_DOUBLE] = { "DOUBLE", "f8", 8 },
	[COLL_COMPLEX_FLOAT] = { "COMPLEX_FLOAT", "c8", 8 },
	[COLL_COMPLEX_DOUBLE] = { "COMPLEX_DOUBLE", "c16", 16 },
	[COLL_INT16_INT32] = { "INT16_INT32", "V8", sizeof(struct short_int) },
	[COLL_INT32_INT32] = { "INT32_INT32", "V8", 8 },
	[COLL_INT64_INT32] = { "INT64_INT32", "V16", sizeof(struct long_int) },
	[COLL_FLOAT_INT32] = { "FLOAT_INT32", "V8", 8 },
	[COLL_DOUBLE_INT32] = { "DOUBLE_INT32", "V16", sizeof(struct double_int) },
};

static bool is_opaque(long long type)
{
	return type >= COLL_OPAQUE(1) && type < COLL_OPAQUE_MAX;
}

size_t pycoll_type_bytes(long long type)
{
	if (is_opaque(type))
		return type - COLL_OPAQUE(0);
	return type >= 0 && type < COLL_TYPES ? types[type].bytes : 0;
}

const char *pycoll_type_name(enum coll_type type, char *text)
{
	if (!is_opaque(type))
		return types[type].name;
	snprintf(text, 32, "opaque(%zu)", pycoll_type_bytes(type));
	return text;
}

const char *pycoll_type_dtype(enum coll_type type, char *text)
{
	if (!is_opaque(type))
		return types[type].dtype;
	snprintf(text, 32, "V%zu", pycoll_type_bytes(type));
	return text;
}

/* ---- formats of PEP 3118 ---------------------------------------------------- */

/* The kind of a number: i, u, f, c (complex), b (bool); 0: something else. */
static char kind_of(const char **format)
{
	const char code = *(*format)++;

	if (code == 'Z' && (**format == 'f' || **format == 'd'))
		return (*format)++, 'c';
	return code && strchr("bhilqn", code) ? 'i' :
	       code && strchr("BHILQNc", code) ? 'u' :
	       code && strchr("efd", code) ? 'f' :
	       code == '?' ? 'b' : 0;
}

static int type_of(char kind, size_t bytes)
{
	static const enum coll_type by_bytes[][17] = {
		['i' - 'b'] = { [1] = COLL_INT8, [2] = COLL_INT16, [4] = COLL_INT32,
				[8] = COLL_INT64 },
		['u' - 'b'] = { [1] = COLL_UINT8, [2] = COLL_UINT16, [4] = COLL_UINT32,
				[8] = COLL_UINT64 },
		['f' - 'b'] = { [2] = COLL_FP16, [4] = COLL_FLOAT, [8] = COLL_DOUBLE },
		['c' - 'b'] = { [8] = COLL_COMPLEX_FLOAT, [16] = COLL_COMPLEX_DOUBLE },
		['b' - 'b'] = { [1] = COLL_UINT8 },
	};
	enum coll_type type = kind && bytes < 17 ? by_bytes[kind - 'b'][bytes] : 0;

	return kind && bytes < 17 && pycoll_type_bytes(type) == bytes ? (int)type : -1;
}

/* Whether values of this byte order are this machine's. */
static bool is_native(char order)
{
	return order != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<') && order != '!';
}

/* Bytes of a number by its letter, in its standard size. */
static size_t bytes_of(char code)
{
	return strchr("bB?c", code) ? 1 : strchr("hHe", code) ? 2 : strchr("iIlLf", code) ? 4 : 8;
}

/* A field of a struct: its kind, its bytes; moves behind its name. An order holds until the next. */
static char field_of(const char **format, char *order, size_t *bytes)
{
	char code, kind;

	while (isdigit((unsigned char)**format) || **format == 'x')
		(*format)++;
	if (**format && strchr("@=<>^!", **format))
		*order = *(*format)++;
	code = **format;
	kind = code ? kind_of(format) : 0;
	*bytes = !kind ? 0 : strchr("@^", *order) && strchr("lL", code) ? sizeof(long) :
		 bytes_of(code);
	if (!kind || **format != ':' || !is_native(*order))
		return 0;
	*format = strchr(*format + 1, ':');
	if (!*format)
		return 0;
	(*format)++;
	return kind;
}

/* T{h:value:2xi:index:}: the pair that has this layout; -1: none. */
static int pair_of(const char *format, size_t itemsize)
{
	static const struct {
		char kind;
		size_t bytes;
		enum coll_type type;
	} pairs[] = {
		{ 'i', 2, COLL_INT16_INT32 }, { 'i', 4, COLL_INT32_INT32 },
		{ 'i', 8, COLL_INT64_INT32 }, { 'f', 4, COLL_FLOAT_INT32 },
		{ 'f', 8, COLL_DOUBLE_INT32 },
	};
	size_t bytes, index_bytes, i;
	char order = '@', kind;

	format += 2;
	kind = field_of(&format, &order, &bytes);
	if (!kind || field_of(&format, &order, &index_bytes) != 'i' || index_bytes != 4)
		return -1;
	while (isdigit((unsigned char)*format) || *format == 'x')
		format++;
	for (i = 0; *format == '}' && i < sizeof(pairs) / sizeof(*pairs); i++)
		if (pairs[i].kind == kind && pairs[i].bytes == bytes &&
		    pycoll_type_bytes(pairs[i].type) == itemsize)
			return pairs[i].type;
	return -1;
}

/* Elements that are no numbers of this machine are moved as they are: opaque. */
static int type_of_format(const char *format, size_t itemsize, bool *is_bool)
{
	const char order = *format;
	int type = -1;
	char kind;

	if (!strncmp(format, "T{", 2)) {
		type = pair_of(format, itemsize);
	} else {
		if (order && strchr("@=<>^!|", order))
			format++;
		kind = *format ? kind_of(&format) : 0;
		if (!*format && (is_native(order) || itemsize == 1))
			type = type_of(kind, itemsize);
		*is_bool = type >= 0 && kind == 'b';
	}
	return type >= 0 ? type : (int)COLL_OPAQUE(itemsize);
}

/* Pointers to Python's objects mean nothing elsewhere. 'O' may also be in a field's name. */
static bool has_objects(const char *format)
{
	bool name = false;

	for (; *format; format++) {
		if (*format == ':')
			name = !name;
		else if (*format == 'O' && !name)
			return true;
	}
	return false;
}

/* ---- memory ------------------------------------------------------------------ */

static int refuse_object(PyObject *object, enum pycoll_access access, const char *call,
			 const char *name)
{
	PyObject *type = PyType_GetName(Py_TYPE(object));
	PyObject *error_type, *value, *trace;

	PyErr_Fetch(&error_type, &value, &trace);
	if (type && !PyObject_CheckBuffer(object))
		PyErr_Format(PyExc_TypeError, "%s: %s: %U has no buffer; valid: a NumPy array, or "
			     "another object with the buffer protocol", call, name, type);
	else if (type)
		PyErr_Format(access == PYCOLL_WRITE ? PyExc_ValueError : PyExc_BufferError,
			     "%s: %s: %U gives no buffer: %S", call, name, type,
			     value ? value : Py_None);
	Py_XDECREF(type);
	Py_XDECREF(error_type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

static int buffer_check(const Py_buffer *view, enum pycoll_access access, const char *call,
			const char *name)
{
	if (access == PYCOLL_WRITE && view->readonly)
		pycoll_refuse(PyExc_ValueError, call, name, "it is read-only; valid: a buffer that "
			      "may be written");
	else if (!PyBuffer_IsContiguous(view, 'C'))
		pycoll_refuse(PyExc_ValueError, call, name, "it is not contiguous; valid: rows one "
			      "after the other in memory, as numpy.ascontiguousarray() makes them");
	else if (view->format && has_objects(view->format))
		pycoll_refuse(PyExc_TypeError, call, name, "its elements are Python objects; valid: "
			      "numbers, structures of numbers, bytes");
	else if (view->itemsize < 1 || view->itemsize >= COLL_OPAQUE_MAX - 0x40000000)
		pycoll_refuse(PyExc_TypeError, call, name, "its elements have %zd bytes; valid: 1 "
			      "to 2^30 - 2", view->itemsize);
	else
		return 0;
	return -1;
}

static int buffer_type(struct pycoll_buffer *buffer, long long type, const char *call,
		       const char *name)
{
	const Py_buffer *view = &buffer->view;

	buffer->type = type >= 0 ? (enum coll_type)type :
		       (enum coll_type)type_of_format(view->format ? view->format : "B",
						      view->itemsize, &buffer->is_bool);
	buffer->element = pycoll_type_bytes(buffer->type);
	if (view->len % buffer->element) {
		pycoll_refuse(PyExc_ValueError, call, name, "its %zd bytes are no whole number of "
			      "elements of %zu bytes, which type asks for", view->len,
			      buffer->element);
		return -1;
	}
	buffer->count = view->len / buffer->element;
	return 0;
}

int pycoll_buffer_get(struct pycoll_buffer *buffer, PyObject *object, enum pycoll_access access,
		      long long type, const char *call, const char *name)
{
	if (object == pycoll_in_place) {
		buffer->in_place = true;
		return 0;
	}
	if (PyObject_GetBuffer(object, &buffer->view, PyBUF_FORMAT | PyBUF_STRIDES))
		return refuse_object(object, access, call, name);
	buffer->held = true;
	if (buffer_check(&buffer->view, access, call, name))
		return -1;
	return buffer_type(buffer, type, call, name);
}

void pycoll_buffer_release(struct pycoll_buffer *buffer)
{
	if (buffer->held)
		PyBuffer_Release(&buffer->view);
	buffer->held = false;
}
