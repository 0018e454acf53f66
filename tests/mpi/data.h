/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Contents of buffers in all layouts, types and operations, and the checks of them. */
#ifndef TESTS_MPI_DATA_H
#define TESTS_MPI_DATA_H

#include "test_case.h"

enum {
	GAP = 0xa5,	/* the byte that fills gaps and must not change */
	MARGIN = 64,	/* bytes before a buffer, for layouts that reach below it */
};

/* ---- layout.c: moved data ---------------------------------------------------- */

/* A unit is two longs, `at` bytes from its start; the next unit follows after `extent`. */
struct layout {
	MPI_Datatype type;
	int elements;		/* of the type in a unit */
	int at[2], extent;
	int low, high;		/* bounds of the bytes that a unit touches */
};

extern struct layout layouts[LAYOUTS];

void layouts_make(void);
void layouts_free(void);
MPI_Datatype type_commit(MPI_Datatype type);
MPI_Datatype type_resize(MPI_Datatype type, int lb, int extent);
/* The j-th long of unit i from `from` to `to`. */
long unit_value(uint32_t seed, int from, int to, int i, int j);
uint8_t *memory_new(size_t bytes);
/* Units that rank `to` gets from `from` in a v collective; some get none. */
int block_units(const struct test_case *test_case, int from, int to);
void put_units(uint8_t *memory, const struct layout *layout, int first, int count, uint32_t seed,
	       int from, int to);
/* Checks a block and fills it with GAP. check_gaps() then finds all other changes. */
void check_units(const struct test_case *test_case, const struct layout *layout, int first,
		 int count, int from, int to);
void check_gaps(const struct test_case *test_case);
void fail_wrong(const struct test_case *test_case, const char *what, int block, int i);

/* ---- reduction.c: types and operations ----------------------------------------- */

enum kind { SIGNED, UNSIGNED, REAL, COMPLEX, PAIR, BOOLEAN, MAPS };

struct element {
	const char *name;
	MPI_Datatype type;
	enum kind kind;
	int size;		/* of the value; of a pair's value or a complex number's part */
	int extent, second;	/* offset of a pair's index or a map's b */
};

struct operation {
	const char *name;
	MPI_Op op;
};

extern struct element elements[64];
extern struct operation operations[];

void reductions_make(void);
void reductions_free(void);
void put_elements(const struct test_case *test_case, uint8_t *memory, int first, int count,
		  int rank);
/* Expects the reduction over ranks 0 to `last` of elements from `first` on. */
void check_elements(const struct test_case *test_case, int first, int count, int last);
/* As test_case_write(), one element. */
void write_element(const struct test_case *test_case, const uint8_t *place, FILE *exact,
		   FILE *rounded);

#endif
