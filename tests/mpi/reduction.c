// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <complex.h>
#include <stddef.h>

#include "data.h"

/* A value of any kind: the largest type of each. */
struct value {
	int64_t i;
	long double f, g;
	uint32_t a, b;
};

struct element elements[64];
static int elements_count;

static MPI_Op op_maps, op_sum;

struct operation operations[] = {
	{ "sum", MPI_OP_NULL }, { "prod", MPI_OP_NULL }, { "min", MPI_OP_NULL },
	{ "max", MPI_OP_NULL }, { "land", MPI_OP_NULL }, { "lor", MPI_OP_NULL },
	{ "lxor", MPI_OP_NULL }, { "band", MPI_OP_NULL }, { "bor", MPI_OP_NULL },
	{ "bxor", MPI_OP_NULL }, { "minloc", MPI_OP_NULL }, { "maxloc", MPI_OP_NULL },
	{ "own sum", MPI_OP_NULL }, { "own maps", MPI_OP_NULL },
};
enum { SUM, PROD, MIN, MAX, LAND, LOR, LXOR, BAND, BOR, BXOR, MINLOC, MAXLOC, OWN_SUM, OWN_MAPS,
       OPERATIONS };

/* Every pair of type and operation that MPI defines. */
static struct { int element, operation; } pairs[512];
static int pairs_count;

int reductions(void)
{
	return pairs_count;
}

void reduction_choose(struct test_case *test_case, int number)
{
	test_case->type = pairs[number].element;
	test_case->op = pairs[number].operation;
}

static void own_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
	double *from = in, *to = inout;
	int i;

	if (*type != MPI_DOUBLE)
		fail("own sum was called for another type");
	for (i = 0; i < *count; i++)
		to[i] += from[i];
}

/* x -> ax + b, first the lower ranks' map: associative, does not commute. */
static void compose(uint32_t *a, uint32_t *b, uint32_t then_a, uint32_t then_b)
{
	*b = then_a * *b + then_b;
	*a = then_a * *a;
}

static void own_maps(void *in, void *inout, int *count, MPI_Datatype *type)
{
	MPI_Aint lb, extent;
	uint8_t *low = in, *high = inout;
	int i, second;

	MPI_Type_get_extent(*type, &lb, &extent);
	second = extent == 8 ? 4 : 8;
	for (i = 0; i < *count; i++, low += extent, high += extent) {
		uint32_t a, b, then_a, then_b;

		memcpy(&a, low, 4);
		memcpy(&b, low + second, 4);
		memcpy(&then_a, high, 4);
		memcpy(&then_b, high + second, 4);
		compose(&a, &b, then_a, then_b);
		memcpy(high, &a, 4);
		memcpy(high + second, &b, 4);
	}
}

static bool defined(const struct element *element, int op)
{
	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
		return op <= BXOR;
	case REAL:
		return op <= MAX || (op == OWN_SUM && element->type == MPI_DOUBLE);
	case COMPLEX:
		return op <= PROD;
	case PAIR:
		return op == MINLOC || op == MAXLOC;
	case BOOLEAN:
		return op >= LAND && op <= LXOR;
	case MAPS:
		return op == OWN_MAPS;
	}
	return false;
}

static void add_element(const char *name, MPI_Datatype type, enum kind kind, int size, int extent,
			int second)
{
	elements[elements_count++] = (struct element){ name, type, kind, size, extent, second };
}

static void make_elements(void)
{
	int ones[2] = { 1, 1 };
	MPI_Aint places[2] = { 0, 8 };
	MPI_Datatype words[2] = { MPI_UINT32_T, MPI_UINT32_T }, type;

#define PLAIN(type, c, kind) add_element(#type, type, kind, sizeof(c), sizeof(c), 0)
	PLAIN(MPI_SIGNED_CHAR, signed char, SIGNED);
	PLAIN(MPI_SHORT, short, SIGNED);
	PLAIN(MPI_INT, int, SIGNED);
	PLAIN(MPI_LONG, long, SIGNED);
	PLAIN(MPI_LONG_LONG, long long, SIGNED);
	PLAIN(MPI_INT32_T, int32_t, SIGNED);
	PLAIN(MPI_AINT, MPI_Aint, SIGNED);
	PLAIN(MPI_UNSIGNED_CHAR, unsigned char, UNSIGNED);
	PLAIN(MPI_UINT16_T, uint16_t, UNSIGNED);
	PLAIN(MPI_UNSIGNED, unsigned int, UNSIGNED);
	PLAIN(MPI_UNSIGNED_LONG, unsigned long, UNSIGNED);
	PLAIN(MPI_FLOAT, float, REAL);
	PLAIN(MPI_DOUBLE, double, REAL);
	PLAIN(MPI_LONG_DOUBLE, long double, REAL);
	PLAIN(MPI_INTEGER, int, SIGNED);
	PLAIN(MPI_DOUBLE_PRECISION, double, REAL);
	PLAIN(MPI_C_BOOL, bool, BOOLEAN);
	add_element("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, COMPLEX, 4, 8, 4);
	add_element("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, COMPLEX, 8, 16, 8);
	add_element("MPI_2INT", MPI_2INT, PAIR, 4, 8, 4);
	add_element("MPI_SHORT_INT", MPI_SHORT_INT, PAIR, 2, 8, 4);
	add_element("MPI_LONG_INT", MPI_LONG_INT, PAIR, 8, 16, 8);
	add_element("MPI_FLOAT_INT", MPI_FLOAT_INT, PAIR, -4, 8, 4);
	add_element("MPI_DOUBLE_INT", MPI_DOUBLE_INT, PAIR, -8, 16, 8);
	MPI_Type_contiguous(2, MPI_UINT32_T, &type);
	add_element("maps", type_commit(type), MAPS, 4, 8, 4);
	MPI_Type_create_struct(2, ones, places, words, &type);
	add_element("maps with gaps", type_resize(type, 0, 16), MAPS, 4, 16, 8);
}

static void make_operations(void)
{
	MPI_Op own[] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR,
			 MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC };
	int i, j;

	for (i = 0; i <= MAXLOC; i++)
		operations[i].op = own[i];
	must(MPI_Op_create(own_sum, 1, &op_sum), "MPI_Op_create");
	must(MPI_Op_create(own_maps, 0, &op_maps), "MPI_Op_create");
	operations[OWN_SUM].op = op_sum;
	operations[OWN_MAPS].op = op_maps;
	for (i = 0; i < elements_count; i++)
		for (j = 0; j < OPERATIONS; j++)
			if (defined(&elements[i], j)) {
				pairs[pairs_count].element = i;
				pairs[pairs_count++].operation = j;
			}
}

static struct value value_of(const struct test_case *test_case, int rank, int i)
{
	const struct element *element = &elements[test_case->type];
	uint64_t bits = unit_value(test_case->seed, rank, 0, i, 0);
	struct value value = { .i = bits, .f = (int)(bits % 5) - 2, .g = (int)(bits / 5 % 5) - 2,
			       .a = bits, .b = bits >> 32 };

	if (test_case->rounded) {
		value.f = (int64_t)bits / 0x1p63L;
		value.g = (int64_t)(bits * 0x9e3779b97f4a7c15ull) / 0x1p63L;
	}
	if (element->kind == PAIR) {
		value.i = (int)(bits % 7) - 3;	/* so that some are equal */
		value.f = value.i;
		value.a = (rank * 5 + i) % 11;
	} else if (element->kind == BOOLEAN) {
		value.i = bits & 1;
	}
	return value;
}

static uint64_t truncated(uint64_t bits, int size)
{
	return size == 8 ? bits : bits & ((1ull << 8 * size) - 1);
}

static int64_t widened(uint64_t bits, int size)
{
	return (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size);
}

static void fold_integer(const struct element *element, int op, int64_t *to, int64_t from)
{
	uint64_t a = truncated(*to, element->size), b = truncated(from, element->size);
	bool less = element->kind == SIGNED ?
		    widened(b, element->size) < widened(a, element->size) : b < a;

	switch (op) {
	case SUM: *to = a + b; break;
	case PROD: *to = a * b; break;
	case MIN: *to = less ? b : a; break;
	case MAX: *to = less ? a : b; break;
	case LAND: *to = a && b; break;
	case LOR: *to = a || b; break;
	case LXOR: *to = !a != !b; break;
	case BAND: *to = a & b; break;
	case BOR: *to = a | b; break;
	case BXOR: *to = a ^ b; break;
	}
}

static void fold_real(int op, long double *to, long double from)
{
	switch (op) {
	case SUM:
	case OWN_SUM: *to += from; break;
	case PROD: *to *= from; break;
	case MIN: *to = from < *to ? from : *to; break;
	case MAX: *to = from > *to ? from : *to; break;
	}
}

static void fold_pair(int op, struct value *to, const struct value *from)
{
	bool wins = op == MINLOC ? from->i < to->i : from->i > to->i;

	if (wins || (from->i == to->i && from->a < to->a))
		*to = *from;
}

static void fold(const struct element *element, int op, struct value *to, const struct value *from)
{
	long double f = to->f;

	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
	case BOOLEAN:
		fold_integer(element, op, &to->i, from->i);
		break;
	case REAL:
		fold_real(op, &to->f, from->f);
		break;
	case COMPLEX:
		to->f = op == SUM ? f + from->f : f * from->f - to->g * from->g;
		to->g = op == SUM ? to->g + from->g : f * from->g + to->g * from->f;
		break;
	case PAIR:
		fold_pair(op, to, from);
		break;
	case MAPS:
		compose(&to->a, &to->b, from->a, from->b);
		break;
	}
}

static void write_real(uint8_t *place, long double value, int size)
{
	float f = value;
	double d = value;

	if (size == 4)
		memcpy(place, &f, 4);
	else if (size == 8)
		memcpy(place, &d, 8);
	else
		memcpy(place, &value, 10);	/* the rest is padding */
}

static void write_value(const struct element *element, const struct value *value, uint8_t *place)
{
	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
	case BOOLEAN:
		memcpy(place, &value->i, element->size);
		break;
	case REAL:
		write_real(place, value->f, element->size);
		break;
	case COMPLEX:
		write_real(place, value->f, element->size);
		write_real(place + element->second, value->g, element->size);
		break;
	case PAIR:
		if (element->size < 0)
			write_real(place, value->f, -element->size);
		else
			memcpy(place, &value->i, element->size);
		memcpy(place + element->second, &value->a, 4);
		break;
	case MAPS:
		memcpy(place, &value->a, 4);
		memcpy(place + element->second, &value->b, 4);
		break;
	}
}

/* Which bytes of an element are its value's, in turn compared and wiped. */
static bool value_equal(const struct element *element, const uint8_t *a, const uint8_t *b)
{
	int first = abs(element->size);

	if (element->kind == REAL && element->size == 16)
		first = 10;
	if (element->kind == COMPLEX) {		/* the sign of a zero is not specified */
		double x[2], y[2];
		float f[2], g[2];

		memcpy(first == 4 ? (void *)f : x, a, 2 * first);
		memcpy(first == 4 ? (void *)g : y, b, 2 * first);
		return first == 4 ? f[0] == g[0] && f[1] == g[1] : x[0] == y[0] && x[1] == y[1];
	}
	if (element->kind == REAL && !memcmp(a + first - 1, "\0", 1) &&
	    !memcmp(b + first - 1, "\x80", 1))
		return true;		/* -0 */
	if (element->kind == REAL) {
		float f = 0, g = 0;
		double x = 0, y = 0;
		long double l = 0, m = 0;

		memcpy(first == 4 ? (void *)&f : first == 8 ? (void *)&x : (void *)&l, a, first);
		memcpy(first == 4 ? (void *)&g : first == 8 ? (void *)&y : (void *)&m, b, first);
		return f == g && x == y && l == m;
	}
	return !memcmp(a, b, first) &&
	       (!element->second || !memcmp(a + element->second, b + element->second, 4));
}

void put_elements(const struct test_case *test_case, uint8_t *memory, int first, int count,
		  int rank)
{
	const struct element *element = &elements[test_case->type];
	int i;

	for (i = 0; i < count; i++) {
		struct value value = value_of(test_case, rank, first + i);

		write_value(element, &value, memory + MARGIN + (size_t)i * element->extent);
	}
}

void check_elements(const struct test_case *test_case, int first, int count, int last)
{
	const struct element *element = &elements[test_case->type];
	int i, rank;

	for (i = 0; i < count; i++) {
		struct value value = value_of(test_case, 0, first + i);
		uint8_t want[32] = { 0 },
			*got = test_case->out + MARGIN + (size_t)i * element->extent;

		for (rank = 1; rank <= last; rank++) {
			struct value next = value_of(test_case, rank, first + i);

			fold(element, test_case->op, &value, &next);
		}
		write_value(element, &value, want);
		if (!value_equal(element, want, got))
			fail_wrong(test_case, "wrong result", last, i);
		if (element->kind == MAPS && element->extent == 16 && got[4] != GAP)
			fail_wrong(test_case, "a gap was written", last, i);
	}
}

static long double read_real(const uint8_t *place, int size)
{
	long double value = 0;
	float f;
	double d;

	if (size == 4)
		value = memcpy(&f, place, 4) ? f : 0;
	else if (size == 8)
		value = memcpy(&d, place, 8) ? d : 0;
	else
		memcpy(&value, place, 10);
	return value;
}

/* Values are below 1, which bounds how much the order of the additions matters. */
static void write_rounded(const struct test_case *test_case, const uint8_t *place, int size,
			  FILE *to)
{
	const double epsilon = size == 4 ? 0x1p-23 : size == 8 ? 0x1p-52 : 0x1p-63;

	fprintf(to, "%g %.20Lg\n", test_case->ranks * test_case->ranks * epsilon,
		read_real(place, size));
}

void write_element(const struct test_case *test_case, const uint8_t *place, FILE *exact,
		   FILE *rounded)
{
	const struct element *element = &elements[test_case->type];

	if (element->kind == REAL || element->kind == COMPLEX) {
		write_rounded(test_case, place, element->size, rounded);
		if (element->kind == COMPLEX)
			write_rounded(test_case, place + element->second, element->size, rounded);
		return;
	}
	fwrite(place, abs(element->size), 1, exact);
	if (element->second)
		fwrite(place + element->second, 4, 1, exact);
}

void reductions_make(void)
{
	make_elements();
	make_operations();
}

void reductions_free(void)
{
	int i;

	for (i = 0; i < elements_count; i++)
		if (elements[i].kind == MAPS)
			MPI_Type_free(&elements[i].type);
	MPI_Op_free(&op_maps);
	MPI_Op_free(&op_sum);
}
