/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One loop per type and reduction. Private to core/reduce*.c.
 *
 * Places are byte offsets, so elements lie at any address: `type` is one that
 * may be read and written unaligned. The loops have no `restrict`: the result
 * may be an operand, and each element is read before it is written.
 */
#ifndef COLL_REDUCE_LOOP_H
#define COLL_REDUCE_LOOP_H

#include "reduce.h"

typedef void coll_reduce_loop(void *result, const void *left, const void *right, u64 bytes);

#define COLL_UNALIGNED __attribute__((aligned(1), may_alias))
/* Of a struct that names its padding. */
#define COLL_UNALIGNED_STRUCT struct __attribute__((packed, may_alias))

/* `value` is an expression of the elements a (left) and b (right). */
#define COLL_REDUCE_LOOP(name, type, value)                                            \
	static void name(void *result, const void *left, const void *right, u64 bytes) \
	{                                                                              \
		const type *l = left, *r = right;                                      \
		type *to = result;                                                     \
		u64 count = bytes / sizeof(type), i;                                   \
                                                                                       \
		for (i = 0; i < count; i++) {                                          \
			const type a = l[i], b = r[i];                                 \
                                                                                       \
			to[i] = (value);                                               \
		}                                                                      \
	}

/*
 * The loop, or NULL if the reduction is not defined for the type. Either may be
 * any number. In reduce_float.c: what computes with floating point, so that the
 * kernel can compile that file alone for the FPU; asking does not need it.
 */
coll_reduce_loop *coll_reduce_float_loop(u32 type, u32 reduction);

#endif
