// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * MPI's types. The predefined ones are in a table that is made at the start; what is
 * known of a derived one is cached as its attribute.
 */
#include <errno.h>
#include <stdlib.h>

#include "shim.h"

/* Its bits: an MPI's handles are pointers or numbers. */
#define BITS(handle) ((uint64_t)(uintptr_t)(handle))

enum { SLOTS = 256 };

struct named {
	MPI_Datatype handle;
	bool used;
	struct type type;
};

static struct named named[SLOTS];
static int keyval = MPI_KEYVAL_INVALID;

static uint32_t slot_of(MPI_Datatype handle)
{
	return (BITS(handle) * 0x9e3779b97f4a7c15ull) >> 56;
}

static const struct type *find_named(MPI_Datatype handle)
{
	uint32_t i;

	for (i = slot_of(handle); named[i].used; i = (i + 1) % SLOTS)
		if (named[i].handle == handle)
			return &named[i].type;
	return NULL;
}

static int type_measure(MPI_Datatype handle, struct type *type)
{
	if (real.Type_size_x(handle, &type->size) ||
	    real.Type_get_extent_x(handle, &type->lb, &type->extent) ||
	    real.Type_get_true_extent_x(handle, &type->true_lb, &type->true_extent))
		return -EINVAL;
	return 0;
}

/* ---- predefined types --------------------------------------------------- */

/* Reductions that the MPI has on types that libcoll does not have. */
enum {
	REALS = 1 << COLL_SUM | 1 << COLL_PROD | 1 << COLL_MIN | 1 << COLL_MAX,
	COMPLEXES = 1 << COLL_SUM | 1 << COLL_PROD,
	LOGICALLY = 1 << COLL_LAND | 1 << COLL_LOR | 1 << COLL_LXOR,
	BITWISE = 1 << COLL_BAND | 1 << COLL_BOR | 1 << COLL_BXOR,
	PAIRS = 1 << COLL_MINLOC | 1 << COLL_MAXLOC,
};

enum kind { SIGNED, UNSIGNED, FLOATING, COMPLEX, OTHER };

/* By kind and size: the size of "long" differs between machines. */
static int coll_type_of(enum kind kind, MPI_Count size)
{
	switch (kind) {
	case SIGNED:
		return size == 1 ? COLL_INT8 : size == 2 ? COLL_INT16 :
		       size == 4 ? COLL_INT32 : size == 8 ? COLL_INT64 : -1;
	case UNSIGNED:
		return size == 1 ? COLL_UINT8 : size == 2 ? COLL_UINT16 :
		       size == 4 ? COLL_UINT32 : size == 8 ? COLL_UINT64 : -1;
	case FLOATING:
		return size == 4 ? COLL_FLOAT : size == 8 ? COLL_DOUBLE : -1;
	case COMPLEX:
		return size == 8 ? COLL_COMPLEX_FLOAT : size == 16 ? COLL_COMPLEX_DOUBLE : -1;
	case OTHER:
		break;
	}
	return -1;
}

static void add_with(MPI_Datatype handle, int coll, uint32_t reductions)
{
	struct type type = { .coll = coll, .reductions = reductions };
	uint32_t i;

	if (handle == MPI_DATATYPE_NULL || find_named(handle) || type_measure(handle, &type))
		return;		/* missing (Fortran), or another name of a known type */
	type.dense = type.size == type.extent && !type.true_lb;
	type.solid = true;	/* padding may travel with a pair */
	for (i = slot_of(handle); named[i].used; i = (i + 1) % SLOTS)
		;
	named[i] = (struct named){ handle, true, type };
}

static void type_add(MPI_Datatype handle, int coll)
{
	add_with(handle, coll, 0);
}

static void add_kind(MPI_Datatype handle, enum kind kind)
{
	MPI_Count size = 0;

	if (handle != MPI_DATATYPE_NULL && !real.Type_size_x(handle, &size))
		type_add(handle, coll_type_of(kind, size));
}

/* Of Fortran's INTEGER, which compilers have 8 bytes for where they are asked to (-fdefault-integer-8). */
static void add_integers(MPI_Datatype handle)
{
	MPI_Count size = 0;

	if (handle != MPI_DATATYPE_NULL && !real.Type_size_x(handle, &size))
		add_with(handle, size == 8 ? COLL_INT32_INT32 : -1, PAIRS);
}

static void add_c(void)
{
	add_kind(MPI_SIGNED_CHAR, SIGNED);
	add_kind(MPI_SHORT, SIGNED);
	add_kind(MPI_INT, SIGNED);
	add_kind(MPI_LONG, SIGNED);
	add_kind(MPI_LONG_LONG, SIGNED);
	add_kind(MPI_INT8_T, SIGNED);
	add_kind(MPI_INT16_T, SIGNED);
	add_kind(MPI_INT32_T, SIGNED);
	add_kind(MPI_INT64_T, SIGNED);
	add_kind(MPI_AINT, SIGNED);
	add_kind(MPI_OFFSET, SIGNED);
	add_kind(MPI_COUNT, SIGNED);
	add_kind(MPI_UNSIGNED_CHAR, UNSIGNED);
	add_kind(MPI_UNSIGNED_SHORT, UNSIGNED);
	add_kind(MPI_UNSIGNED, UNSIGNED);
	add_kind(MPI_UNSIGNED_LONG, UNSIGNED);
	add_kind(MPI_UNSIGNED_LONG_LONG, UNSIGNED);
	add_kind(MPI_UINT8_T, UNSIGNED);
	add_kind(MPI_UINT16_T, UNSIGNED);
	add_kind(MPI_UINT32_T, UNSIGNED);
	add_kind(MPI_UINT64_T, UNSIGNED);
	add_kind(MPI_FLOAT, FLOATING);
	add_kind(MPI_DOUBLE, FLOATING);
	add_kind(MPI_C_COMPLEX, COMPLEX);
	add_kind(MPI_C_DOUBLE_COMPLEX, COMPLEX);
	type_add(MPI_SHORT_INT, COLL_INT16_INT32);
	type_add(MPI_2INT, COLL_INT32_INT32);
	type_add(MPI_FLOAT_INT, COLL_FLOAT_INT32);
	type_add(MPI_DOUBLE_INT, COLL_DOUBLE_INT32);
	type_add(MPI_LONG_INT, sizeof(long) == 8 ? COLL_INT64_INT32 : COLL_INT32_INT32);
	add_with(MPI_BYTE, -1, BITWISE);
	add_with(MPI_C_BOOL, -1, LOGICALLY);
	add_with(MPI_LONG_DOUBLE, -1, REALS);
	add_with(MPI_C_LONG_DOUBLE_COMPLEX, -1, COMPLEXES);
	add_with(MPI_LONG_DOUBLE_INT, -1, PAIRS);
	add_with(MPI_CXX_BOOL, -1, LOGICALLY);
	add_with(MPI_CXX_FLOAT_COMPLEX, -1, COMPLEXES);
	add_with(MPI_CXX_DOUBLE_COMPLEX, -1, COMPLEXES);
	add_with(MPI_CXX_LONG_DOUBLE_COMPLEX, -1, COMPLEXES);
	type_add(MPI_PACKED, -1);
	type_add(MPI_CHAR, -1);
	type_add(MPI_WCHAR, -1);
}

static void add_fortran(void)
{
	add_kind(MPI_INTEGER, SIGNED);
	add_kind(MPI_INTEGER1, SIGNED);
	add_kind(MPI_INTEGER2, SIGNED);
	add_kind(MPI_INTEGER4, SIGNED);
	add_kind(MPI_INTEGER8, SIGNED);
	add_kind(MPI_REAL, FLOATING);
	add_kind(MPI_REAL4, FLOATING);
	add_kind(MPI_REAL8, FLOATING);
	add_kind(MPI_DOUBLE_PRECISION, FLOATING);
	add_kind(MPI_COMPLEX, COMPLEX);
	add_kind(MPI_COMPLEX8, COMPLEX);
	add_kind(MPI_COMPLEX16, COMPLEX);
	add_kind(MPI_DOUBLE_COMPLEX, COMPLEX);
	add_integers(MPI_2INTEGER);
	add_with(MPI_LOGICAL, -1, LOGICALLY);
	add_with(MPI_REAL16, -1, REALS);
	add_with(MPI_COMPLEX32, -1, COMPLEXES);
	add_with(MPI_2REAL, -1, PAIRS);
	add_with(MPI_2DOUBLE_PRECISION, -1, PAIRS);
	type_add(MPI_CHARACTER, -1);
}

/* ---- derived types ------------------------------------------------------ */

struct contents {
	int combiner, ints, aints, types;
	bool large;		/* counts are MPI_Count: it was made by a function ..._c */
	int *i;
	MPI_Aint *a;
	MPI_Datatype *d;
};

/* How it was made. MPI_Type_get_envelope() alone is an error if counts are large, and that may end the job. */
static bool envelope_get(MPI_Datatype handle, struct contents *c)
{
#if HAVE_LARGE
	MPI_Count ints, aints, counts, types;

	if (real.Type_get_envelope_c(handle, &ints, &aints, &counts, &types, &c->combiner))
		return false;
	c->ints = ints;
	c->aints = aints;
	c->types = types;
	c->large = counts > 0;
	return true;
#else
	return !real.Type_get_envelope(handle, &c->ints, &c->aints, &c->types, &c->combiner);
#endif
}

/* Of large counts nothing is looked at. */
static bool contents_get(MPI_Datatype handle, struct contents *c)
{
	if (!envelope_get(handle, c) || c->large)
		return false;
	c->i = calloc(c->ints + 1, sizeof(*c->i));
	c->a = calloc(c->aints + 1, sizeof(*c->a));
	c->d = calloc(c->types + 1, sizeof(*c->d));
	return c->i && c->a && c->d && c->combiner != MPI_COMBINER_NAMED &&
	       !real.Type_get_contents(handle, c->ints, c->aints, c->types, c->i, c->a, c->d);
}

static bool type_predefined(MPI_Datatype handle)
{
	struct contents c = { 0 };

	return find_named(handle) || (envelope_get(handle, &c) &&
	       (c.combiner == MPI_COMBINER_NAMED || c.combiner == MPI_COMBINER_F90_REAL ||
		c.combiner == MPI_COMBINER_F90_COMPLEX || c.combiner == MPI_COMBINER_F90_INTEGER));
}

static void contents_free(struct contents *c, bool got)
{
	int i;

	for (i = 0; got && i < c->types; i++)
		if (!type_predefined(c->d[i]))
			real.Type_free(&c->d[i]);
	free(c->i);
	free(c->a);
	free(c->d);
}

static bool in_a_row(MPI_Datatype handle, bool many);

/* Whether block b begins where the one before ends. */
static bool struct_in_a_row(const struct contents *c)
{
	struct type type;
	MPI_Aint end = 0;
	bool first = true;
	int b;

	for (b = 0; b < c->i[0]; b++) {
		if (!c->i[1 + b])
			continue;
		if (!in_a_row(c->d[b], true) || type_measure(c->d[b], &type))
			return false;
		if (!first && c->a[b] + type.true_lb != end)
			return false;
		end = c->a[b] + type.true_lb + c->i[1 + b] * type.size;
		first = false;
	}
	return true;
}

/* Blocks of c->i[1 + b] elements; their displacements are in bytes or in elements. */
static bool blocks_in_a_row(const struct contents *c, bool bytes, const struct type *inner)
{
	const int n = c->i[0];
	MPI_Aint end = 0, at;
	bool first = true;
	int b;

	for (b = 0; b < n; b++) {
		if (!c->i[1 + b])
			continue;
		at = bytes ? c->a[b] : c->i[1 + n + b] * (MPI_Aint)inner->extent;
		if (!first && at != end)
			return false;
		end = at + c->i[1 + b] * (MPI_Aint)inner->extent;
		first = false;
	}
	return true;
}

static bool combination_in_a_row(const struct contents *c)
{
	struct type inner;

	if (c->combiner == MPI_COMBINER_STRUCT)
		return struct_in_a_row(c);
	if (c->types != 1 || type_measure(c->d[0], &inner))
		return false;
	if (c->combiner == MPI_COMBINER_DUP || c->combiner == MPI_COMBINER_RESIZED)
		return in_a_row(c->d[0], false);
	if (c->combiner == MPI_COMBINER_CONTIGUOUS)
		return in_a_row(c->d[0], c->i[0] > 1);
	if (!in_a_row(c->d[0], true))
		return false;
	switch (c->combiner) {
	case MPI_COMBINER_VECTOR:
		return c->i[0] <= 1 || c->i[1] == c->i[2];
	case MPI_COMBINER_HVECTOR:
		return c->i[0] <= 1 || c->i[1] * inner.extent == c->a[0];
	case MPI_COMBINER_INDEXED:
		return blocks_in_a_row(c, false, &inner);
	case MPI_COMBINER_HINDEXED:
		return blocks_in_a_row(c, true, &inner);
	}
	return false;		/* others are packed, which is always right */
}

/* Whether an element (`many`: any number of them) lies in memory as MPI would pack it. */
static bool in_a_row(MPI_Datatype handle, bool many)
{
	struct contents c = { 0 };
	struct type type;
	bool got, result;

	if (type_measure(handle, &type) || type.size != type.true_extent ||
	    (many && type.extent != type.size))
		return false;
	if (type_predefined(handle))
		return true;
	got = contents_get(handle, &c);
	result = got && combination_in_a_row(&c);
	contents_free(&c, got);
	return result;
}

static int type_forget(MPI_Datatype handle, int key, void *value, void *extra)
{
	(void)handle, (void)key, (void)extra;
	free(value);
	return MPI_SUCCESS;
}

static const struct type *type_learn(MPI_Datatype handle)
{
	struct type *type = calloc(1, sizeof(*type));

	if (!type)
		shim_end_job("no memory for a type of a call, in which the other ranks would wait");
	if (type_measure(handle, type)) {
		free(type);
		return NULL;
	}
	type->coll = -1;
	type->derived = true;
	type->dense = in_a_row(handle, true);
	type->solid = type->size == type->extent && type->size == type->true_extent;
	if (real.Type_set_attr(handle, keyval, type)) {
		free(type);
		return NULL;
	}
	return type;
}

const struct type *type_find(MPI_Datatype handle)
{
	const struct type *type = find_named(handle);
	int found = 0;

	if (type || handle == MPI_DATATYPE_NULL)
		return type;
	if (real.Type_get_attr(handle, keyval, &type, &found))
		return NULL;
	return found ? type : type_learn(handle);
}

size_t type_bytes(MPI_Count count, MPI_Datatype handle)
{
	const struct type *info = count ? type_find(handle) : NULL;

	return info ? info->size * count : 0;
}

int type_start(void)
{
	add_c();
	add_fortran();
	return real.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_forget, &keyval, NULL);
}

void type_end(void)
{
	real.Type_free_keyval(&keyval);
}
