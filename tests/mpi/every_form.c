// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every collective in every form, against a reference: every layout of moved data, every type
 * with every operation, in place and not, every root, several counts, communicators of
 * several kinds.
 */
#include "test_case.h"

static uint64_t calls;

static void play(struct test_case test_case)
{
	int again = 0;

	/* Each of these makes connections of its own: one in four will do. */
	if (test_case.form == PERSISTENT && test_case.seed % 4)
		return;
	test_case_begin(&test_case);
	calls++;
	if (test_case.form != BLOCKING)
		must(MPI_Wait(&test_case.request, MPI_STATUS_IGNORE), "MPI_Wait");
	test_case_check(&test_case);
	for (; test_case.form == PERSISTENT && again < 2; again++) {
		test_case_again(&test_case);
		must(MPI_Wait(&test_case.request, MPI_STATUS_IGNORE), "MPI_Wait");
		test_case_check(&test_case);
	}
	test_case_free(&test_case);
}

static void moves(MPI_Comm comm, enum form form)
{
	static const int counts[] = { 0, 1, 7, 1500 };
	struct test_case test_case = { .form = form, .comm = comm };
	int rank, ranks, i, layout;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	for (test_case.what = BARRIER; test_case.what < REDUCE; test_case.what++)
		for (layout = 0; layout < LAYOUTS; layout++)
			for (i = 0; i < 4; i++) {
				/* Ranks differ in how they see the same data. */
				test_case.in_layout = (layout + rank) % LAYOUTS;
				test_case.out_layout = (layout + 2 * rank + i) % LAYOUTS;
				test_case.count = counts[i];
				test_case.root = layout + i;
				test_case.seed++;
				test_case.in_place = false;
				play(test_case);
				test_case.in_place = test_case.what > BCAST;
				/* MPI swaps blocks in place only if they have one layout. */
				if (test_case.what == ALLTOALLW || test_case.what == ALLTOALLV)
					test_case.in_layout = test_case.out_layout;
				if (test_case.in_place && (i & 1))
					play(test_case);
			}
}

static void reduces(MPI_Comm comm, enum form form)
{
	static const int counts[] = { 1, 0, 17, 700 };
	struct test_case test_case = { .form = form, .comm = comm, .seed = 100000 };
	int i;

	for (test_case.what = REDUCE; test_case.what < WHATS; test_case.what++)
		for (i = 0; i < reductions(); i++) {
			reduction_choose(&test_case, i);
			test_case.count = counts[i % 4];
			test_case.root = i;
			test_case.in_place = i / 4 % 2;
			test_case.seed++;
			play(test_case);
		}
}

static void sweep(MPI_Comm comm, enum form form)
{
	moves(comm, form);
	reduces(comm, form);
	must_have_counted(calls, 0, "sweep");
	calls = 0;
}

int main(int argc, char **argv)
{
	MPI_Comm half, self;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	test_cases_start();
	must_have_counted(0, 0, "before the first call");
	sweep(MPI_COMM_WORLD, BLOCKING);
	sweep(MPI_COMM_WORLD, NONBLOCKING);
	MPI_Comm_split(MPI_COMM_WORLD, rank * 2 < ranks, -rank, &half);
	sweep(half, BLOCKING);
	sweep(half, PERSISTENT);
	MPI_Comm_free(&half);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	sweep(self, BLOCKING);
	sweep(self, NONBLOCKING);
	MPI_Comm_free(&self);
	test_cases_end();
	if (!rank)
		printf("swept\n");
	MPI_Finalize();
	return 0;
}
