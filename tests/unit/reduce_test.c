// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every type and reduction against a plain reference that works on one element
 * at a time, with values, not bits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/names.h"
#include "core/reduce.h"
#include "tests/lib/schedules.h"

enum { COUNT = 67, ELEMENT_MAX = 16, SPACE = COUNT * ELEMENT_MAX + 64 };

/* ---- the reference ----------------------------------------------------- */

static bool is_integer(u32 type)
{
	return type <= COLL_UINT64;
}

static bool is_signed(u32 type)
{
	return type <= COLL_INT64;
}

static bool is_complex(u32 type)
{
	return type == COLL_COMPLEX_FLOAT || type == COLL_COMPLEX_DOUBLE;
}

static bool is_pair(u32 type)
{
	return type >= COLL_INT16_INT32;
}

static bool defined(u32 type, u32 reduction)
{
	if (is_pair(type))
		return reduction == COLL_MINLOC || reduction == COLL_MAXLOC;
	if (is_complex(type))
		return reduction == COLL_SUM || reduction == COLL_PROD;
	if (is_integer(type))
		return reduction <= COLL_BXOR;
	return reduction <= COLL_MAX;
}

/* An integer of 1, 2, 4 or 8 bytes, extended to 64. */
static u64 load_integer(const void *from, u32 bytes, bool negative)
{
	u64 value = 0;

	memcpy(&value, from, bytes);
	if (negative && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~(u64)0 << 8 * bytes;
	return value;
}

static double fp16_reference(u16 half)
{
	int exponent = half >> 10 & 31, fraction = half & 1023;
	double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY) :
			   exponent	  ? ldexp(1024 + fraction, exponent - 25) :
					    ldexp(fraction, -24);

	return half & 0x8000 ? -magnitude : magnitude;
}

static u16 fp16_nearest(double value)
{
	u16 sign = signbit(value) ? 0x8000 : 0;
	double magnitude = fabs(value), units;
	int exponent;

	if (isnan(value))
		return 0x7e00;
	if (magnitude >= 65520)
		return sign | 0x7c00;
	exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
	units = nearbyint(ldexp(magnitude, 10 - exponent));	/* to even */
	if (magnitude < 0x1p-14)
		return sign | (u16)units;
	return sign | (u16)(((exponent + 15) << 10) + ((int)units - 1024));
}

static double bf16_reference(u16 half)
{
	u32 bits = (u32)half << 16;
	float value;

	memcpy(&value, &bits, 4);
	return value;
}

static u16 bf16_nearest(double value)
{
	u16 sign = signbit(value) ? 0x8000 : 0;
	double magnitude = fabs(value), units;
	int exponent;

	if (isnan(value))
		return 0x7fc0;
	if (magnitude >= ldexp(511, 119))	/* half a unit above the largest */
		return sign | 0x7f80;
	exponent = magnitude < 0x1p-126 ? -126 : ilogb(magnitude);
	units = nearbyint(ldexp(magnitude, 7 - exponent));
	if (magnitude < 0x1p-126)
		return sign | (u16)units;
	return sign | (u16)(((exponent + 127) << 7) + ((int)units - 128));
}

static double load_real(const void *from, u32 type)
{
	double wide;
	float narrow;
	u16 half;

	switch (type) {
	case COLL_FP16:
		memcpy(&half, from, 2);
		return fp16_reference(half);
	case COLL_BF16:
		memcpy(&half, from, 2);
		return bf16_reference(half);
	case COLL_DOUBLE:
		memcpy(&wide, from, 8);
		return wide;
	default:
		memcpy(&narrow, from, 4);
		return narrow;
	}
}

/* Sums and products of NaN are one NaN. */
static void store_real(void *to, u32 type, double value)
{
	double wide = isnan(value) ? NAN : value;
	float narrow = isnan(value) ? NAN : (float)value;
	u16 half = type == COLL_FP16 ? fp16_nearest(narrow) : bf16_nearest(narrow);

	if (type == COLL_DOUBLE)
		memcpy(to, &wide, 8);
	else if (type == COLL_FLOAT)
		memcpy(to, &narrow, 4);
	else
		memcpy(to, &half, 2);
}

static void reduce_integer(u32 type, u32 reduction, void *to, const void *left, const void *right)
{
	u32 bytes = coll_type_bytes(type);
	u64 a = load_integer(left, bytes, is_signed(type));
	u64 b = load_integer(right, bytes, is_signed(type));
	bool less = is_signed(type) ? (s64)a < (s64)b : a < b;
	const u64 result[] = {
		[COLL_SUM] = a + b,	   [COLL_PROD] = a * b,	     [COLL_MIN] = less ? a : b,
		[COLL_MAX] = less ? b : a, [COLL_LAND] = a && b,     [COLL_LOR] = a || b,
		[COLL_LXOR] = !a != !b,	   [COLL_BAND] = a & b,	     [COLL_BOR] = a | b,
		[COLL_BXOR] = a ^ b,
	};

	memcpy(to, &result[reduction], bytes);
}

/* Not in double: a float's sum is rounded once, to float. */
static double add_or_multiply(u32 type, bool multiply, double a, double b)
{
	if (type == COLL_DOUBLE)
		return multiply ? a * b : a + b;
	return multiply ? (float)a * (float)b : (float)a + (float)b;
}

static void reduce_real(u32 type, u32 reduction, void *to, const void *left, const void *right)
{
	double a = load_real(left, type), b = load_real(right, type);
	bool take_right = isnan(a) || (reduction == COLL_MIN ? b < a : b > a);

	if (reduction == COLL_SUM || reduction == COLL_PROD)
		store_real(to, type, add_or_multiply(type, reduction == COLL_PROD, a, b));
	else
		memcpy(to, take_right ? right : left, coll_type_bytes(type));
}

static void reduce_complex(u32 type, u32 reduction, void *to, const void *left, const void *right)
{
	u32 real = type == COLL_COMPLEX_FLOAT ? COLL_FLOAT : COLL_DOUBLE;
	u32 bytes = coll_type_bytes(real);
	double a = load_real(left, real), b = load_real((const char *)left + bytes, real);
	double c = load_real(right, real), d = load_real((const char *)right + bytes, real);
	double x = a + c, y = b + d;

	if (reduction == COLL_SUM) {
		x = add_or_multiply(real, false, a, c);
		y = add_or_multiply(real, false, b, d);
	} else {
		x = add_or_multiply(real, false, add_or_multiply(real, true, a, c),
				    -add_or_multiply(real, true, b, d));
		y = add_or_multiply(real, false, add_or_multiply(real, true, a, d),
				    add_or_multiply(real, true, b, c));
	}
	store_real(to, real, x);
	store_real((char *)to + bytes, real, y);
}

/* -1, 0, 1: the left value is to be preferred, neither, the right one. */
static int compare_values(u32 type, u32 reduction, const void *left, const void *right)
{
	int order;

	if (type == COLL_FLOAT_INT32 || type == COLL_DOUBLE_INT32) {
		u32 real = type == COLL_FLOAT_INT32 ? COLL_FLOAT : COLL_DOUBLE;
		double a = load_real(left, real), b = load_real(right, real);

		if (isnan(a) || isnan(b))
			return isnan(a) - isnan(b);
		order = (a > b) - (a < b);
	} else {
		u32 bytes = type == COLL_INT16_INT32 ? 2 : type == COLL_INT32_INT32 ? 4 : 8;
		s64 a = load_integer(left, bytes, true), b = load_integer(right, bytes, true);

		order = (a > b) - (a < b);
	}
	return reduction == COLL_MINLOC ? order : -order;
}

static void reduce_pair(u32 type, u32 reduction, void *to, const void *left, const void *right)
{
	u32 bytes = coll_type_bytes(type), at = bytes == 16 ? 8 : 4;
	int order = compare_values(type, reduction, left, right);

	if (!order)
		order = (s64)load_integer((const char *)right + at, 4, true) <
			(s64)load_integer((const char *)left + at, 4, true);
	memcpy(to, order > 0 ? right : left, bytes);
}

static void reduce_reference(u32 type, u32 reduction, void *to, const void *left,
			     const void *right)
{
	if (is_integer(type))
		reduce_integer(type, reduction, to, left, right);
	else if (is_pair(type))
		reduce_pair(type, reduction, to, left, right);
	else if (is_complex(type))
		reduce_complex(type, reduction, to, left, right);
	else
		reduce_real(type, reduction, to, left, right);
}

/* ---- operands ---------------------------------------------------------- */

static void put_special(void *to, u32 real, u64 which)
{
	const double values[] = { 0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, -NAN, 65504.0,
				  0x1p-24, 0x1p-14, 0x1p-140, 0x1p-1060, 3e38, 1.5, -2.0 };
	double wide = values[which % 16];
	float narrow = (float)wide;
	u16 half = real == COLL_FP16 ? fp16_nearest(wide) : bf16_nearest(narrow);

	if (real == COLL_DOUBLE)
		memcpy(to, &wide, 8);
	else if (real == COLL_FLOAT)
		memcpy(to, &narrow, 4);
	else
		memcpy(to, &half, 2);
}

static u32 real_of(u32 type)
{
	switch (type) {
	case COLL_COMPLEX_FLOAT:
	case COLL_FLOAT_INT32:
		return COLL_FLOAT;
	case COLL_COMPLEX_DOUBLE:
	case COLL_DOUBLE_INT32:
		return COLL_DOUBLE;
	default:
		return type;
	}
}

/* Random bits; every other floating value a special one; small ones for ties. */
static void fill(unsigned char *to, u32 type, u64 *seed)
{
	u32 bytes = coll_type_bytes(type), i, k;

	for (i = 0; i < COUNT; i++) {
		unsigned char *element = to + i * bytes;

		for (k = 0; k < bytes; k++)
			element[k] = random_next(seed);
		if (random_next(seed) & 1)
			continue;
		memset(element, 0, bytes);
		if (coll_reduction_floats(type, COLL_SUM) ||
		    coll_reduction_floats(type, COLL_MINLOC))
			put_special(element, real_of(type), random_next(seed));
		else
			element[0] = random_next(seed) & 3;
		if (bytes > 4 && !is_integer(type))
			element[bytes / 2] = random_next(seed) & 3;
	}
}

/* ---- tests ------------------------------------------------------------- */

enum aliasing { APART, ON_LEFT, ON_RIGHT, ALL_ONE, ALIASINGS };

static void compare_one(u32 type, u32 reduction, u32 count, enum aliasing aliasing, u64 *seed)
{
	static unsigned char memory[3][SPACE], left_was[SPACE], right_was[SPACE];
	u32 bytes = coll_type_bytes(type), i;
	unsigned char *left = memory[0] + random_next(seed) % 17, *right, *result, expected[16];

	right = aliasing == ALL_ONE ? left : memory[1] + random_next(seed) % 17;
	result = aliasing == APART    ? memory[2] + random_next(seed) % 17 :
		 aliasing == ON_RIGHT ? right :
					left;
	fill(left, type, seed);
	if (right != left)
		fill(right, type, seed);
	memcpy(left_was, left, count * bytes);
	memcpy(right_was, right, count * bytes);
	result[count * bytes] = 0x5a;
	coll_reduce_local(type, reduction, result, left, right, count * bytes);
	assert_int_equal(result[count * bytes], 0x5a);
	for (i = 0; i < count; i++) {
		reduce_reference(type, reduction, expected, left_was + i * bytes,
				 right_was + i * bytes);
		if (memcmp(expected, result + i * bytes, bytes))
			fail_msg("%s of %s: element %u of %u, aliasing %d",
				 coll_reduction_name(reduction), coll_type_name(type), i, count,
				 aliasing);
	}
}

static void every_reduction_equals_the_reference(void **state)
{
	u32 type, reduction, aliasing, round, compared = 0;
	u64 seed = 1;

	(void)state;
	for (type = 0; type < COLL_TYPES; type++)
		for (reduction = 0; reduction < COLL_REDUCTIONS; reduction++)
			for (aliasing = 0; aliasing < ALIASINGS; aliasing++)
				for (round = 0; defined(type, reduction) && round < 40; round++) {
					compare_one(type, reduction, random_next(&seed) % COUNT,
						    aliasing, &seed);
					compared++;
				}
	assert_int_equal(compared, (8 * 10 + 4 * 4 + 2 * 2 + 5 * 2) * ALIASINGS * 40);
}

static void defined_pairs_of_type_and_operation_are_accepted(void **state)
{
	u32 type, reduction;

	(void)state;
	for (type = 0; type < COLL_TYPES; type++) {
		assert_int_not_equal(coll_type_bytes(type), 0);
		assert_true(coll_reduction_fits(type, COLL_USER_REDUCTION));
		for (reduction = 0; reduction < COLL_REDUCTIONS; reduction++) {
			assert_int_equal(coll_reduction_fits(type, reduction),
					 defined(type, reduction));
			assert_int_equal(coll_reduction_floats(type, reduction),
					 defined(type, reduction) && !is_integer(type) &&
						 !(is_pair(type) && type <= COLL_INT64_INT32));
		}
		assert_false(coll_reduction_fits(type, COLL_REDUCTIONS));
	}
	assert_true(coll_reduction_fits(COLL_OPAQUE_TYPE, COLL_USER_REDUCTION));
	assert_false(coll_reduction_fits(COLL_OPAQUE_TYPE, COLL_SUM));
	assert_false(coll_reduction_fits(COLL_TYPES, COLL_SUM));
	assert_int_equal(coll_type_bytes(COLL_TYPES), 0);
	assert_int_equal(coll_type_bytes(COLL_OPAQUE_TYPE), 0);
}

/* Times one, every 16-bit value is itself; NaN is the NaN. */
static void every_half_survives(void **state)
{
	static u16 values[1 << 16], ones[1 << 16];
	const u32 types[] = { COLL_FP16, COLL_BF16 };
	const u16 one[] = { 0x3c00, 0x3f80 }, infinity[] = { 0x7c00, 0x7f80 },
		  nan[] = { 0x7e00, 0x7fc0 };
	u32 t, i;

	(void)state;
	for (t = 0; t < 2; t++) {
		for (i = 0; i < 1 << 16; i++) {
			values[i] = i;
			ones[i] = one[t];
		}
		coll_reduce_local(types[t], COLL_PROD, values, values, ones, sizeof(values));
		for (i = 0; i < 1 << 16; i++)
			assert_int_equal(values[i], (i & 0x7fff) > infinity[t] ? nan[t] : i);
	}
}

/* Products and sums of every 16-bit value with some others: every rounding. */
static void halves_round_to_nearest_even(void **state)
{
	static u16 values[1 << 16], others[1 << 16], results[1 << 16];
	const u32 types[] = { COLL_FP16, COLL_BF16 };
	u32 t, reduction, round, i;
	u64 seed = 7;

	(void)state;
	for (t = 0; t < 2; t++)
		for (reduction = COLL_SUM; reduction <= COLL_PROD; reduction++)
			for (round = 0; round < 8; round++) {
				for (i = 0; i < 1 << 16; i++) {
					values[i] = i;
					others[i] = random_next(&seed);
				}
				coll_reduce_local(types[t], reduction, results, values, others,
					    sizeof(values));
				for (i = 0; i < 1 << 16; i++) {
					u16 expected;

					reduce_real(types[t], reduction, &expected, &values[i],
						    &others[i]);
					assert_int_equal(results[i], expected);
				}
			}
}

static void integers_wrap(void **state)
{
	u16 a = 0xffff, b = 0xffff, c;
	s32 most = INT32_MAX, one = 1, sum;

	(void)state;
	coll_reduce_local(COLL_UINT16, COLL_PROD, &c, &a, &b, 2);
	assert_int_equal(c, 1);
	coll_reduce_local(COLL_INT32, COLL_SUM, &sum, &most, &one, 4);
	assert_int_equal(sum, INT32_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reduction_equals_the_reference),
		cmocka_unit_test(defined_pairs_of_type_and_operation_are_accepted),
		cmocka_unit_test(every_half_survives),
		cmocka_unit_test(halves_round_to_nearest_even),
		cmocka_unit_test(integers_wrap),
	};

	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
