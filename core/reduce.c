// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "reduce_loop.h"

typedef u8 COLL_UNALIGNED any_u8;
typedef u16 COLL_UNALIGNED any_u16;
typedef u32 COLL_UNALIGNED any_u32;
typedef u64 COLL_UNALIGNED any_u64;
typedef s8 COLL_UNALIGNED any_s8;
typedef s16 COLL_UNALIGNED any_s16;
typedef s32 COLL_UNALIGNED any_s32;
typedef s64 COLL_UNALIGNED any_s64;

/* Paddings are named, so that they travel with the pair that wins. */
typedef COLL_UNALIGNED_STRUCT {
	s16 value;
	u16 padding;
	s32 index;
} pair16;

typedef COLL_UNALIGNED_STRUCT {
	s32 value;
	s32 index;
} pair32;

typedef COLL_UNALIGNED_STRUCT {
	s64 value;
	s32 index;
	u32 padding;
} pair64;

/* 1u: a product of two u16 would be one of int, and overflow. */
#define BITS_LOOPS(bits)                                                \
	COLL_REDUCE_LOOP(sum_##bits, any_u##bits, a + b)                \
	COLL_REDUCE_LOOP(prod_##bits, any_u##bits, 1u * a * b)          \
	COLL_REDUCE_LOOP(land_##bits, any_u##bits, (a != 0) & (b != 0)) \
	COLL_REDUCE_LOOP(lor_##bits, any_u##bits, (a | b) != 0)         \
	COLL_REDUCE_LOOP(lxor_##bits, any_u##bits, (a != 0) ^ (b != 0)) \
	COLL_REDUCE_LOOP(band_##bits, any_u##bits, a & b)               \
	COLL_REDUCE_LOOP(bor_##bits, any_u##bits, a | b)                \
	COLL_REDUCE_LOOP(bxor_##bits, any_u##bits, a ^ b)               \
	COLL_REDUCE_LOOP(min_u##bits, any_u##bits, b < a ? b : a)       \
	COLL_REDUCE_LOOP(max_u##bits, any_u##bits, b > a ? b : a)       \
	COLL_REDUCE_LOOP(min_s##bits, any_s##bits, b < a ? b : a)       \
	COLL_REDUCE_LOOP(max_s##bits, any_s##bits, b > a ? b : a)

#define PAIR_LOOPS(pair)                                                                         \
	COLL_REDUCE_LOOP(minloc_##pair, pair,                                                    \
			 b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a) \
	COLL_REDUCE_LOOP(maxloc_##pair, pair,                                                    \
			 b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a)

BITS_LOOPS(8)
BITS_LOOPS(16)
BITS_LOOPS(32)
BITS_LOOPS(64)
PAIR_LOOPS(pair16)
PAIR_LOOPS(pair32)
PAIR_LOOPS(pair64)

/* sign: s or u. Two's complement: but for order, signed is as unsigned. */
#define INTEGER_ROW(sign, bits)                                                                    \
	{                                                                                          \
		[COLL_SUM] = sum_##bits, [COLL_PROD] = prod_##bits, [COLL_MIN] = min_##sign##bits, \
		[COLL_MAX] = max_##sign##bits, [COLL_LAND] = land_##bits, [COLL_LOR] = lor_##bits, \
		[COLL_LXOR] = lxor_##bits, [COLL_BAND] = band_##bits, [COLL_BOR] = bor_##bits,     \
		[COLL_BXOR] = bxor_##bits,                                                         \
	}
#define PAIR_ROW(pair)                                                       \
	{                                                                    \
		[COLL_MINLOC] = minloc_##pair, [COLL_MAXLOC] = maxloc_##pair \
	}

static coll_reduce_loop *const integer_loops[COLL_TYPES][COLL_REDUCTIONS] = {
	[COLL_INT8] = INTEGER_ROW(s, 8),       [COLL_INT16] = INTEGER_ROW(s, 16),
	[COLL_INT32] = INTEGER_ROW(s, 32),     [COLL_INT64] = INTEGER_ROW(s, 64),
	[COLL_UINT8] = INTEGER_ROW(u, 8),      [COLL_UINT16] = INTEGER_ROW(u, 16),
	[COLL_UINT32] = INTEGER_ROW(u, 32),    [COLL_UINT64] = INTEGER_ROW(u, 64),
	[COLL_INT16_INT32] = PAIR_ROW(pair16), [COLL_INT32_INT32] = PAIR_ROW(pair32),
	[COLL_INT64_INT32] = PAIR_ROW(pair64),
};

static const u8 type_bytes[COLL_TYPES] = {
	[COLL_INT8] = 1,	  [COLL_INT16] = 2,	      [COLL_INT32] = 4,
	[COLL_INT64] = 8,	  [COLL_UINT8] = 1,	      [COLL_UINT16] = 2,
	[COLL_UINT32] = 4,	  [COLL_UINT64] = 8,	      [COLL_FP16] = 2,
	[COLL_BF16] = 2,	  [COLL_FLOAT] = 4,	      [COLL_DOUBLE] = 8,
	[COLL_COMPLEX_FLOAT] = 8, [COLL_COMPLEX_DOUBLE] = 16, [COLL_INT16_INT32] = 8,
	[COLL_INT32_INT32] = 8,	  [COLL_INT64_INT32] = 16,    [COLL_FLOAT_INT32] = 8,
	[COLL_DOUBLE_INT32] = 16,
};

u32 coll_type_bytes(u32 type)
{
	return type < COLL_TYPES ? type_bytes[type] : 0;
}

static coll_reduce_loop *reduce_loop(u32 type, u32 reduction)
{
	if (type >= COLL_TYPES || reduction >= COLL_REDUCTIONS)
		return NULL;
	if (integer_loops[type][reduction])
		return integer_loops[type][reduction];
	return coll_reduce_float_loop(type, reduction);
}

bool coll_reduction_fits(u32 type, u32 reduction)
{
	if (reduction == COLL_USER_REDUCTION)
		return type < COLL_TYPES || type == COLL_OPAQUE_TYPE;
	return reduce_loop(type, reduction);
}

bool coll_reduction_floats(u32 type, u32 reduction)
{
	return coll_reduce_float_loop(type, reduction);
}

void coll_reduce_local(u32 type, u32 reduction, void *result, const void *left, const void *right,
		 u64 bytes)
{
	reduce_loop(type, reduction)(result, left, right, bytes);
}
