// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stddef.h>

#include "data.h"

struct layout layouts[LAYOUTS];

MPI_Datatype type_commit(MPI_Datatype type)
{
	must(MPI_Type_commit(&type), "MPI_Type_commit");
	return type;
}

MPI_Datatype type_resize(MPI_Datatype type, int lb, int extent)
{
	MPI_Datatype result;

	must(MPI_Type_create_resized(type, lb, extent, &result), "MPI_Type_create_resized");
	must(MPI_Type_free(&type), "MPI_Type_free");
	return type_commit(result);
}

void layouts_make(void)
{
	int one[2] = { 1, 1 }, backwards[2] = { 1, 0 };
	MPI_Aint apart[2] = { -8, 16 }, close[2] = { 8, 16 };
	MPI_Datatype longs[2] = { MPI_LONG, MPI_LONG }, type;

	layouts[0] = (struct layout){ MPI_LONG, 2, { 0, 8 }, 16, 0, 16 };
	MPI_Type_contiguous(2, MPI_LONG, &type);
	layouts[1] = (struct layout){ type_commit(type), 1, { 0, 8 }, 16, 0, 16 };
	MPI_Type_vector(2, 1, 2, MPI_LONG, &type);
	layouts[2] = (struct layout){ type_resize(type, 0, 32), 1, { 0, 16 }, 32, 0, 32 };
	MPI_Type_indexed(2, one, backwards, MPI_LONG, &type);
	layouts[3] = (struct layout){ type_commit(type), 1, { 8, 0 }, 16, 0, 16 };
	MPI_Type_create_hindexed(2, one, apart, MPI_LONG, &type);
	layouts[4] = (struct layout){ type_resize(type, -8, 40), 1, { -8, 16 }, 40, -8, 32 };
	MPI_Type_create_struct(2, one, close, longs, &type);
	layouts[5] = (struct layout){ type_resize(type, 8, 16), 1, { 8, 16 }, 16, 8, 24 };
	MPI_Type_vector(2, 1, 1, MPI_LONG, &type);	/* in a row, though a vector */
	layouts[6] = (struct layout){ type_commit(type), 1, { 0, 8 }, 16, 0, 16 };
}

long unit_value(uint32_t seed, int from, int to, int i, int j)
{
	uint64_t v = seed * 0x9e3779b97f4a7c15ull + (uint64_t)from * 1000003 + (uint64_t)to * 7919;

	v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9ull + i * 2 + j;
	return (long)(v ^ v >> 31);
}

static uint8_t *at(uint8_t *memory, const struct layout *layout, int unit, int j)
{
	return memory + MARGIN + (ptrdiff_t)unit * layout->extent + layout->at[j];
}

uint8_t *memory_new(size_t bytes)
{
	uint8_t *memory = malloc(bytes + 2 * MARGIN);

	if (!memory)
		fail("out of memory");
	memset(memory, GAP, bytes + 2 * MARGIN);
	return memory;
}

void put_units(uint8_t *memory, const struct layout *layout, int first, int count, uint32_t seed,
	       int from, int to)
{
	int i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < 2; j++) {
			long value = unit_value(seed, from, to, i, j);

			memcpy(at(memory, layout, first + i, j), &value, sizeof(value));
		}
}

void fail_wrong(const struct test_case *test_case, const char *what, int block, int i)
{
	fail("%s: %s, block %d, element %d", test_case_name(test_case), what, block, i);
}

void check_units(const struct test_case *test_case, const struct layout *layout, int first,
		 int count, int from, int to)
{
	int i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < 2; j++) {
			long value = unit_value(test_case->seed, from, to, i, j);
			uint8_t *place = at(test_case->out, layout, first + i, j);

			if (memcmp(place, &value, sizeof(value)))
				fail_wrong(test_case, "wrong data", from, i);
			memset(place, GAP, sizeof(value));
		}
}

void check_gaps(const struct test_case *test_case)
{
	size_t i;

	for (i = 0; i < test_case->out_bytes + 2 * MARGIN; i++)
		if (test_case->out[i] != GAP)
			fail("%s: byte %zu beyond the data was written", test_case_name(test_case),
			     i);
}

int block_units(const struct test_case *test_case, int from, int to)
{
	return test_case->count ? (test_case->count + 3 * from + to) % (test_case->count + 2) : 0;
}

void layouts_free(void)
{
	int i;

	for (i = 1; i < LAYOUTS; i++)
		MPI_Type_free(&layouts[i].type);
}
