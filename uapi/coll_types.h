/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Element types and reductions: the numbers that a program, a schedule and a
 * message header agree on. Part of the installed interface (coll.h includes
 * it), so it is plain C99 and C++ and needs no other header.
 */
#ifndef COLL_TYPES_H
#define COLL_TYPES_H

/* A pair is laid out as the C struct of its two members, padding included. */
enum coll_type {
	COLL_INT8,
	COLL_INT16,
	COLL_INT32,
	COLL_INT64,
	COLL_UINT8,
	COLL_UINT16,
	COLL_UINT32,
	COLL_UINT64,
	COLL_FP16,		/* IEEE 754 binary16 */
	COLL_BF16,		/* the upper half of a float */
	COLL_FLOAT,
	COLL_DOUBLE,
	COLL_COMPLEX_FLOAT,
	COLL_COMPLEX_DOUBLE,
	COLL_INT16_INT32,	/* struct { int16_t value; int32_t index; } */
	COLL_INT32_INT32,
	COLL_INT64_INT32,
	COLL_FLOAT_INT32,
	COLL_DOUBLE_INT32,
	COLL_TYPES,
	/*
	 * Elements whose inside is the application's own. In calls such a type
	 * is COLL_OPAQUE(bytes); in a schedule it is this number and the size
	 * stands in the schedule's header.
	 */
	COLL_OPAQUE_TYPE = 255,
	/* COLL_OPAQUE(2^30 - 1). A C++ enum has room for its largest enumerator only. */
	COLL_OPAQUE_MAX = 0x7fffffff
};

/* The type of opaque elements of n bytes each, 1 <= n < 2^30. */
#ifdef __cplusplus
#define COLL_OPAQUE(n) (static_cast<enum coll_type>(0x40000000 + (n)))
#else
#define COLL_OPAQUE(n) ((enum coll_type)(0x40000000 + (n)))
#endif

enum coll_reduction {
	COLL_SUM,
	COLL_PROD,
	COLL_MIN,
	COLL_MAX,
	COLL_LAND,
	COLL_LOR,
	COLL_LXOR,
	COLL_BAND,
	COLL_BOR,
	COLL_BXOR,
	COLL_MINLOC,		/* pairs only; equal values: the lower index */
	COLL_MAXLOC,
	COLL_REDUCTIONS,
	/* The application's own function. In calls: a number from coll_op_create(). */
	COLL_USER_REDUCTION = 255,
	/* The largest of these numbers: makes room for them, as COLL_OPAQUE_MAX does. */
	COLL_USER_REDUCTION_MAX = 0x7fffffff
};

#endif
