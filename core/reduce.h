/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * result[i] = left[i] (reduction) right[i]. `result` may be `left` or `right`
 * exactly; else the three do not overlap. `left` is the operand of the lower
 * ranks.
 *
 * Results depend on the operands alone, never on alignment or count, so equal
 * inputs give equal bits on every rank. Integers wrap. A float MIN or MAX with
 * one NaN operand gives the other operand; SUM and PROD of FP16 and BF16 are
 * computed in float and rounded to nearest even after each step.
 */
#ifndef COLL_REDUCE_H
#define COLL_REDUCE_H

#include "port.h"
#include "uapi/coll_types.h"

/* Bytes of one element; 0 for an unknown type or COLL_OPAQUE_TYPE. */
u32 coll_type_bytes(u32 type);

/*
 * Whether the reduction is defined for the type: logical and bitwise ones for
 * integers; minloc and maxloc for pairs; no order on complex numbers. A user
 * reduction fits any type, and an opaque type takes nothing else.
 */
bool coll_reduction_fits(u32 type, u32 reduction);

/* Whether it computes with floating point (in the kernel: needs the FPU). */
bool coll_reduction_floats(u32 type, u32 reduction);

/*
 * The pair must fit and must not be a user reduction; `bytes` is a whole number
 * of elements.
 */
void coll_reduce_local(u32 type, u32 reduction, void *result, const void *left, const void *right,
		 u64 bytes);

#endif
