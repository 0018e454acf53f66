/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What the collectives should compute, the slow and obvious way: one rank makes
 * the input of all ranks and folds it. Shares no code with core/reduce.c.
 */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "libcoll/coll.h"

/* Numbers of our own for user functions, until coll_op_create() gives theirs. */
enum { REFERENCE_COMMUTING = 1000, REFERENCE_ORDERED };

/* Bytes of an element of a type as the calls know it. */
size_t reference_bytes(int type);

/* "int32", "opaque(3)"; valid until the next call. */
const char *reference_type_name(int type);
const char *reference_op_name(int op);

/* Whether the type has the reduction, by coll_types.h. */
int reference_fits(int type, int op);

/*
 * Element `index` of what `rank` gives to block `block`. Integers use all their
 * bits; floating point numbers are small integers, of which any order of
 * reduction gives the same bits.
 */
void reference_element(int type, int op, int rank, int block, size_t index, void *element);

/* left = left (op) right, element by element; `left` is that of lower ranks. */
void reference_reduce(int type, int op, void *left, const void *right, size_t count);

/*
 * Makes equal what may differ in equal results: padding inside of pairs, the
 * sign of a complex number's zero.
 */
void reference_normalize(int type, void *data, size_t count);

/* Two functions for coll_op_create(). Bytes add up: associative, commutes. */
coll_function reference_commuting;
/* Pairs of bytes are maps x -> ax + b: composing them keeps their order. */
coll_function reference_ordered;

#endif
