/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One collective call: made, started, awaited and checked against our own reference. */
#ifndef TESTS_MPI_TEST_CASE_H
#define TESTS_MPI_TEST_CASE_H

#include "mpitest.h"

enum what {
	BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL,
	ALLTOALLV, ALLTOALLW, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN,
	EXSCAN, WHATS,
};
extern const char *const what_names[WHATS];

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

/* How the units of moved data (two longs each) lie in memory. */
enum { LAYOUTS = 7, RANKS_MAX = 64 };

/* The same on all ranks of the communicator, but for the layouts. */
struct test_case {
	enum what what;
	enum form form;
	MPI_Comm comm;
	int root;
	int count;			/* units, or elements of a reduction */
	bool in_place;
	int in_layout, out_layout;	/* this rank's */
	int type, op;			/* of a reduction: numbers, see below */
	bool rounded; /* its floating point values need more bits than there are */
	uint32_t seed;

	int rank, ranks;
	int counts[2][RANKS_MAX], displs[2][RANKS_MAX];
	MPI_Datatype types[2][RANKS_MAX];
	uint8_t *in, *out;
	size_t in_bytes, out_bytes;
	MPI_Request request;
};

void test_cases_start(void);
void test_cases_end(void);
int reductions(void);			/* pairs of type and op there are */
void reduction_choose(struct test_case *test_case, int number);

/* Calls it; nonblocking and persistent ones are then under way. */
void test_case_begin(struct test_case *test_case);
/* After its request is done: checks, fails with what is wrong, frees. */
void test_case_check(struct test_case *test_case);
/* A persistent one once more, after test_case_check(..) said there is more to do. */
void test_case_again(struct test_case *test_case);
void test_case_free(struct test_case *test_case);
/*
 * Instead of checking: writes what MPI defines of the result. `exact` gets what must be
 * the same bytes however ranks are added up, `rounded` a line a number: how far from
 * another order's sum it may be, and the number.
 */
void test_case_write(const struct test_case *test_case, FILE *exact, FILE *rounded);
/* For messages. */
const char *test_case_name(const struct test_case *test_case);

#endif
