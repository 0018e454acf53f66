// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Reductions that compute with floating point. Every loop gives the same bits
 * whether the compiler vectorises it or not: no reassociation is allowed, a
 * multiplication and an addition must not be fused (-ffp-contract=off), and
 * a sum or product that is NaN is *the* NaN, because which operand's payload
 * the hardware passes on depends on the order in which the compiler names them.
 */
#include "reduce_loop.h"

typedef u16 COLL_UNALIGNED any_u16;
typedef float COLL_UNALIGNED any_float;
typedef double COLL_UNALIGNED any_double;

typedef COLL_UNALIGNED_STRUCT {
	float real, imaginary;
} complex_float;

typedef COLL_UNALIGNED_STRUCT {
	double real, imaginary;
} complex_double;

typedef COLL_UNALIGNED_STRUCT {
	float value;
	s32 index;
} pair_float;

typedef COLL_UNALIGNED_STRUCT {
	double value;
	s32 index;
	u32 padding;
} pair_double;

static inline u32 float_bits(float value)
{
	union {
		float value;
		u32 bits;
	} u = { .value = value };

	return u.bits;
}

static inline float bits_float(u32 bits)
{
	union {
		u32 bits;
		float value;
	} u = { .bits = bits };

	return u.value;
}

static inline float one_nan_float(float value)
{
	return value == value ? value : __builtin_nanf("");
}

static inline double one_nan_double(double value)
{
	return value == value ? value : __builtin_nan("");
}

/*
 * The 16-bit formats. Without branches, so that the loops vectorise; no
 * subnormal float occurs on the way from or to FP16, so an application that
 * flushes those to zero gets the same FP16 results.
 */
static inline u32 reduce_float_pick(bool condition, u32 yes, u32 no)
{
	u32 mask = -(u32)condition;

	return (yes & mask) | (no & ~mask);
}

static inline float fp16_value(u16 half)
{
	s32 magnitude = half & 0x7fff;
	u32 sign = (half & 0x8000u) << 16;
	u32 subnormal = float_bits((float)magnitude * 0x1p-24f);
	u32 normal = (magnitude << 13) + (112u << 23); /* biases: 127 - 15 */

	normal += reduce_float_pick(magnitude >= 0x7c00, 112u << 23, 0); /* infinity, NaN */
	return bits_float(sign | reduce_float_pick(magnitude < 0x0400, subnormal, normal));
}

static inline u16 fp16_round(float value)
{
	u32 bits = float_bits(value), sign = bits >> 16 & 0x8000;
	s32 magnitude = bits & 0x7fffffff;
	/* The unit in the last place of 0.5f is that of FP16's subnormals. */
	u32 subnormal = float_bits(bits_float(magnitude) + 0.5f) - float_bits(0.5f);
	u32 normal = magnitude - (112u << 23);

	normal = (normal + 0xfff + (normal >> 13 & 1)) >> 13;
	normal = reduce_float_pick(magnitude < 0x38800000, subnormal, normal); /* 2^-14 */
	normal = reduce_float_pick(magnitude < 0x477ff000, normal, 0x7c00);	  /* 65520 */
	return reduce_float_pick(magnitude > 0x7f800000, 0x7e00, sign | normal);
}

static inline float bf16_value(u16 half)
{
	return bits_float((u32)half << 16);
}

static inline u16 bf16_round(float value)
{
	u32 bits = float_bits(value);
	u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return reduce_float_pick(value == value, rounded, 0x7fc0);
}

/* Whether a minimum or maximum is b: it is ahead of a, or a is NaN. */
#define B_LESS(a, b) ((b) < (a) || (a) != (a))
#define B_MORE(a, b) ((b) > (a) || (a) != (a))

/* Likewise for pairs; equal values, or two NaN: the lower index. */
#define B_LESS_PAIR(a, b)                                                              \
	((b).value < (a).value || ((b).value == (a).value && (b).index < (a).index) || \
	 B_REPLACES_NAN(a, b))
#define B_MORE_PAIR(a, b)                                                              \
	((b).value > (a).value || ((b).value == (a).value && (b).index < (a).index) || \
	 B_REPLACES_NAN(a, b))
#define B_REPLACES_NAN(a, b) \
	((a).value != (a).value && ((b).value == (b).value || (b).index < (a).index))

#define REAL_LOOPS(type)                                                 \
	COLL_REDUCE_LOOP(sum_##type, any_##type, one_nan_##type(a + b))  \
	COLL_REDUCE_LOOP(prod_##type, any_##type, one_nan_##type(a * b)) \
	COLL_REDUCE_LOOP(min_##type, any_##type, B_LESS(a, b) ? b : a)   \
	COLL_REDUCE_LOOP(max_##type, any_##type, B_MORE(a, b) ? b : a)

#define HALF_LOOPS(type)                                                                        \
	COLL_REDUCE_LOOP(sum_##type, any_u16, type##_round(type##_value(a) + type##_value(b)))  \
	COLL_REDUCE_LOOP(prod_##type, any_u16, type##_round(type##_value(a) * type##_value(b))) \
	COLL_REDUCE_LOOP(min_##type, any_u16, B_LESS(type##_value(a), type##_value(b)) ? b : a) \
	COLL_REDUCE_LOOP(max_##type, any_u16, B_MORE(type##_value(a), type##_value(b)) ? b : a)

/* GCC 12 fuses products and sums of a vectorized complex product also where it must not (-ffp-contract=off). */
#if defined(__FMA__) && !defined(__clang__)
#define NOT_VECTORIZED __attribute__((optimize("no-tree-vectorize")))
#else
#define NOT_VECTORIZED
#endif

/* The plain formula: what C's operator adds for infinities needs libgcc. */
#define COMPLEX_LOOPS(type)                                                                   \
	NOT_VECTORIZED                                                                        \
	COLL_REDUCE_LOOP(prod_complex_##type, complex_##type,                                 \
			 ((complex_##type){                                                   \
				 one_nan_##type(a.real * b.real - a.imaginary * b.imaginary), \
				 one_nan_##type(a.real * b.imaginary + a.imaginary * b.real), \
			 }))

#define PAIR_LOOPS(pair)                                                 \
	COLL_REDUCE_LOOP(minloc_##pair, pair, B_LESS_PAIR(a, b) ? b : a) \
	COLL_REDUCE_LOOP(maxloc_##pair, pair, B_MORE_PAIR(a, b) ? b : a)

REAL_LOOPS(float)
REAL_LOOPS(double)
HALF_LOOPS(fp16)
HALF_LOOPS(bf16)
COMPLEX_LOOPS(float)
COMPLEX_LOOPS(double)
PAIR_LOOPS(pair_float)
PAIR_LOOPS(pair_double)

#define REAL_ROW(type)                                                                       \
	{                                                                                    \
		[COLL_SUM] = sum_##type, [COLL_PROD] = prod_##type, [COLL_MIN] = min_##type, \
		[COLL_MAX] = max_##type,                                                     \
	}
/* A complex sum is one of twice as many reals. */
#define COMPLEX_ROW(type)                                                  \
	{                                                                  \
		[COLL_SUM] = sum_##type, [COLL_PROD] = prod_complex_##type \
	}
#define PAIR_ROW(pair)                                                       \
	{                                                                    \
		[COLL_MINLOC] = minloc_##pair, [COLL_MAXLOC] = maxloc_##pair \
	}

static coll_reduce_loop *const float_loops[COLL_TYPES][COLL_REDUCTIONS] = {
	[COLL_FP16] = REAL_ROW(fp16),
	[COLL_BF16] = REAL_ROW(bf16),
	[COLL_FLOAT] = REAL_ROW(float),
	[COLL_DOUBLE] = REAL_ROW(double),
	[COLL_COMPLEX_FLOAT] = COMPLEX_ROW(float),
	[COLL_COMPLEX_DOUBLE] = COMPLEX_ROW(double),
	[COLL_FLOAT_INT32] = PAIR_ROW(pair_float),
	[COLL_DOUBLE_INT32] = PAIR_ROW(pair_double),
};

coll_reduce_loop *coll_reduce_float_loop(u32 type, u32 reduction)
{
	if (type >= COLL_TYPES || reduction >= COLL_REDUCTIONS)
		return NULL;
	return float_loops[type][reduction];
}
