// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "reference.h"

enum kind { INTEGER, REAL, COMPLEX, PAIR, OPAQUE };

/* `number`: bytes of the integer, the real, a complex's part or a pair's value. */
static const struct {
	const char *name;
	enum kind kind;
	bool is_signed, is_float;
	size_t bytes, number;
} types[COLL_TYPES] = {
	[COLL_INT8] = { "int8", INTEGER, true, false, 1, 1 },
	[COLL_INT16] = { "int16", INTEGER, true, false, 2, 2 },
	[COLL_INT32] = { "int32", INTEGER, true, false, 4, 4 },
	[COLL_INT64] = { "int64", INTEGER, true, false, 8, 8 },
	[COLL_UINT8] = { "uint8", INTEGER, false, false, 1, 1 },
	[COLL_UINT16] = { "uint16", INTEGER, false, false, 2, 2 },
	[COLL_UINT32] = { "uint32", INTEGER, false, false, 4, 4 },
	[COLL_UINT64] = { "uint64", INTEGER, false, false, 8, 8 },
	[COLL_FP16] = { "fp16", REAL, true, true, 2, 2 },
	[COLL_BF16] = { "bf16", REAL, true, true, 2, 2 },
	[COLL_FLOAT] = { "float", REAL, true, true, 4, 4 },
	[COLL_DOUBLE] = { "double", REAL, true, true, 8, 8 },
	[COLL_COMPLEX_FLOAT] = { "complex float", COMPLEX, true, true, 8, 4 },
	[COLL_COMPLEX_DOUBLE] = { "complex double", COMPLEX, true, true, 16, 8 },
	[COLL_INT16_INT32] = { "int16+int32", PAIR, true, false, 8, 2 },
	[COLL_INT32_INT32] = { "int32+int32", PAIR, true, false, 8, 4 },
	[COLL_INT64_INT32] = { "int64+int32", PAIR, true, false, 16, 8 },
	[COLL_FLOAT_INT32] = { "float+int32", PAIR, true, true, 8, 4 },
	[COLL_DOUBLE_INT32] = { "double+int32", PAIR, true, true, 16, 8 },
};

static enum kind kind_of(int type)
{
	return type < COLL_TYPES ? types[type].kind : OPAQUE;
}

/* Where a pair's index is. */
static size_t index_offset(int type)
{
	return types[type].number < 4 ? 4 : types[type].number;
}

size_t reference_bytes(int type)
{
	return type < COLL_TYPES ? types[type].bytes : (size_t)(type - COLL_OPAQUE(0));
}

const char *reference_type_name(int type)
{
	static char text[32];

	if (type < COLL_TYPES)
		return types[type].name;
	snprintf(text, sizeof(text), "opaque(%zu)", reference_bytes(type));
	return text;
}

const char *reference_op_name(int op)
{
	static const char *const names[] = { "sum", "prod", "min", "max", "land", "lor", "lxor",
					     "band", "bor", "bxor", "minloc", "maxloc" };

	return op == REFERENCE_COMMUTING ? "a function that commutes" :
	       op == REFERENCE_ORDERED	 ? "a function that does not commute" :
					   names[op];
}

int reference_fits(int type, int op)
{
	if (op >= REFERENCE_COMMUTING)
		return 1;
	switch (kind_of(type)) {
	case INTEGER:
		return op <= COLL_BXOR;
	case REAL:
		return op <= COLL_MAX;
	case COMPLEX:
		return op <= COLL_PROD;
	case PAIR:
		return op == COLL_MINLOC || op == COLL_MAXLOC;
	default:
		return 0;
	}
}

/* ---- numbers ------------------------------------------------------------ */

static int64_t load_integer(const void *at, size_t bytes, bool is_signed)
{
	uint64_t value = 0;
	int unused = 64 - 8 * bytes;

	memcpy(&value, at, bytes);
	return is_signed ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

static void store_integer(void *at, size_t bytes, int64_t value)
{
	memcpy(at, &value, bytes);
}

/* Small integers, which every format holds exactly. */
static double load_real(int type, const void *at)
{
	_Float16 half;
	float single;
	double full;
	uint32_t bits;
	uint16_t upper;

	switch (type) {
	case COLL_FP16:
		memcpy(&half, at, 2);
		return half;
	case COLL_BF16:
		memcpy(&upper, at, 2);
		bits = (uint32_t)upper << 16;
		memcpy(&single, &bits, 4);
		return single;
	default:
		if (types[type].number == 8) {
			memcpy(&full, at, 8);
			return full;
		}
		memcpy(&single, at, 4);
		return single;
	}
}

static void store_real(int type, void *at, double value)
{
	_Float16 half = value;
	float single = value;
	uint32_t bits;
	uint16_t upper;

	switch (type) {
	case COLL_FP16:
		memcpy(at, &half, 2);
		break;
	case COLL_BF16:
		memcpy(&bits, &single, 4);
		upper = bits >> 16;
		memcpy(at, &upper, 2);
		break;
	default:
		if (types[type].number == 8)
			memcpy(at, &value, 8);
		else
			memcpy(at, &single, 4);
	}
}

/* ---- input -------------------------------------------------------------- */

static uint64_t reference_hash(uint64_t rank, uint64_t block, uint64_t index)
{
	uint64_t x = (rank << 48 ^ block << 32 ^ index) + 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Products of many must stay small. */
static int reference_small(uint64_t random, int op)
{
	return op == COLL_PROD ? 1 + (random % 5 == 0) : (int)(random % 8) - 3;
}

void reference_element(int type, int op, int rank, int block, size_t index, void *element)
{
	const size_t bytes = reference_bytes(type);
	const uint64_t random = reference_hash(rank, block, index);
	const int value = reference_small(random, op);
	uint8_t *at = element;
	size_t i;

	memset(element, 0, bytes);
	switch (kind_of(type)) {
	case INTEGER:
		store_integer(at, bytes, random);
		break;
	case REAL:
		store_real(type, at, value);
		break;
	case COMPLEX:
		store_real(type, at, value);
		store_real(type, at + types[type].number, (int)(random >> 32 & 1));
		break;
	case PAIR:
		if (types[type].is_float)
			store_real(type, at, value);
		else
			store_integer(at, types[type].number, value);
		store_integer(at + index_offset(type), 4, random >> 40);
		break;
	case OPAQUE:
		for (i = 0; i < bytes; i++)
			at[i] = reference_hash(random, i, 1);
		break;
	}
}

/* ---- reductions --------------------------------------------------------- */

static int64_t reduce_integer(int op, bool is_signed, int64_t a, int64_t b)
{
	const bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;

	switch (op) {
	case COLL_SUM:
		return (uint64_t)a + (uint64_t)b;
	case COLL_PROD:
		return (uint64_t)a * (uint64_t)b;
	case COLL_MIN:
		return less ? a : b;
	case COLL_MAX:
		return less ? b : a;
	case COLL_LAND:
		return a && b;
	case COLL_LOR:
		return a || b;
	case COLL_LXOR:
		return !a != !b;
	case COLL_BAND:
		return a & b;
	case COLL_BOR:
		return a | b;
	default:
		return a ^ b;
	}
}

static double reduce_real(int op, double a, double b)
{
	return op == COLL_SUM  ? a + b :
	       op == COLL_PROD ? a * b :
	       op == COLL_MIN  ? (a < b ? a : b) :
				 (a > b ? a : b);
}

static void reduce_complex(int type, int op, uint8_t *left, const uint8_t *right)
{
	const size_t part = types[type].number;
	const double a = load_real(type, left), b = load_real(type, left + part);
	const double c = load_real(type, right), d = load_real(type, right + part);

	store_real(type, left, op == COLL_SUM ? a + c : a * c - b * d);
	store_real(type, left + part, op == COLL_SUM ? b + d : a * d + b * c);
}

static void reduce_pair(int type, int op, uint8_t *left, const uint8_t *right)
{
	const size_t bytes = types[type].number, offset = index_offset(type);
	const bool real = types[type].is_float;
	const double a = real ? load_real(type, left) : load_integer(left, bytes, true);
	const double b = real ? load_real(type, right) : load_integer(right, bytes, true);
	const int64_t i = load_integer(left + offset, 4, true);
	const int64_t j = load_integer(right + offset, 4, true);

	if (op == COLL_MINLOC ? b < a : b > a)
		memcpy(left, right, types[type].bytes);
	else if (a == b && j < i)
		store_integer(left + offset, 4, j);
}

static void reduce_one(int type, int op, uint8_t *left, const uint8_t *right)
{
	const size_t bytes = reference_bytes(type);

	switch (kind_of(type)) {
	case INTEGER:
		store_integer(left, bytes,
			      reduce_integer(op, types[type].is_signed,
					     load_integer(left, bytes, types[type].is_signed),
					     load_integer(right, bytes, types[type].is_signed)));
		break;
	case REAL:
		store_real(type, left,
			   reduce_real(op, load_real(type, left), load_real(type, right)));
		break;
	case COMPLEX:
		reduce_complex(type, op, left, right);
		break;
	case PAIR:
		reduce_pair(type, op, left, right);
		break;
	case OPAQUE:
		break;
	}
}

void reference_reduce(int type, int op, void *left, const void *right, size_t count)
{
	const size_t bytes = reference_bytes(type);
	size_t i;

	if (op == REFERENCE_COMMUTING)
		reference_commuting(left, left, right, count, type, NULL);
	else if (op == REFERENCE_ORDERED)
		reference_ordered(left, left, right, count, type, NULL);
	else
		for (i = 0; i < count; i++)
			reduce_one(type, op, (uint8_t *)left + i * bytes,
				   (const uint8_t *)right + i * bytes);
}

void reference_commuting(void *out, const void *left, const void *right, size_t count,
			 enum coll_type type, void *argument)
{
	const uint8_t *a = left, *b = right;
	size_t i;

	(void)argument;
	for (i = 0; i < count * reference_bytes(type); i++)
		((uint8_t *)out)[i] = a[i] + b[i];
}

/* Per element, since algorithms may cut the data anywhere between two. */
void reference_ordered(void *out, const void *left, const void *right, size_t count,
		       enum coll_type type, void *argument)
{
	const size_t bytes = reference_bytes(type);
	const uint8_t *a = left, *b = right;
	uint8_t *result = out;
	size_t i;

	(void)argument;
	for (; count--; a += bytes, b += bytes, result += bytes) {
		for (i = 0; i + 2 <= bytes; i += 2) {
			const uint8_t factor = a[i] * b[i], sum = a[i + 1] * b[i] + b[i + 1];

			result[i] = factor;
			result[i + 1] = sum;
		}
		if (i < bytes)		/* of an odd byte, the lowest rank's stays */
			result[i] = a[i];
	}
}

static void clear_negative_zero(int type, uint8_t *number)
{
	if (load_real(type, number) == 0)
		store_real(type, number, 0);
}

void reference_normalize(int type, void *data, size_t count)
{
	const enum kind kind = kind_of(type);
	uint8_t *at = data;

	if (kind != PAIR && kind != COMPLEX)
		return;
	for (; count--; at += types[type].bytes) {
		const size_t number = types[type].number;

		if (kind == COMPLEX) {
			clear_negative_zero(type, at);
			clear_negative_zero(type, at + number);
		} else {
			const size_t offset = index_offset(type), end = offset + 4;

			memset(at + number, 0, offset - number);
			memset(at + end, 0, types[type].bytes - end);
		}
	}
}
