// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * libcoll's sums and products have one NaN (core/reduce_float.c). An MPI's have the payload of the
 * operand that its compiler puts first, which differs between the elements of a vector and between ranks.
 * Where a reduction of floating point numbers is handed over, the NaNs of the result become libcoll's:
 * then all its bits are. Compiled with -O3.
 */
#include "shim.h"

enum { BLOCK = 512 };

/* `bits`: an integer of that width, so that the compiler looks at several at once. */
#define ONE_NAN(type, bits, nan)                                   \
	static void one_nan_##type(type *values, size_t count)     \
	{                                                          \
		size_t from, i;                                    \
		bits any;                                          \
                                                                   \
		for (from = 0; from < count; from += BLOCK) {      \
			type *block = values + from;               \
			const size_t n = count - from < BLOCK ?    \
						 count - from :    \
						 BLOCK;            \
                                                                   \
			for (i = any = 0; i < n; i++)              \
				any |= block[i] != block[i];       \
			for (i = 0; any && i < n; i++)             \
				if (block[i] != block[i])          \
					block[i] = nan;            \
		}                                                  \
	}
ONE_NAN(float, int32_t, __builtin_nanf(""))
ONE_NAN(double, int64_t, __builtin_nan(""))

void nan_settle(void *values, size_t count, enum coll_type type)
{
	if (type == COLL_FLOAT)
		one_nan_float(values, count);
	else
		one_nan_double(values, count);
}
