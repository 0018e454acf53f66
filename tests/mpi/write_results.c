// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * write_results PREFIX: calls every collective, blocking and nonblocking, on data whose sums
 * are rounded. The results of each rank go to PREFIX.exact.RANK and PREFIX.rounded.RANK, to
 * compare a run with the shim with a run without it.
 */
#include "test_case.h"

static FILE *exact, *rounded;
static uint64_t calls;

/* What the MPIs do not do, or get wrong themselves: sweep has our own reference for it. */
static const char *const not_right[][2] = {
	{ "MPI_INTEGER", ", land" }, { "MPI_INTEGER", ", lor" }, { "MPI_INTEGER", ", lxor" },
	/* Both take unsigned for signed here, if not in each collective and type. */
	{ "MPI_U", ", min" }, { "MPI_U", ", max" },
#if defined(OPEN_MPI) && OPEN_MPI
	/* 4.1: sums of small integers saturate. */
	{ "CHAR", ", sum" }, { "MPI_SHORT", ", sum" }, { "MPI_UINT16_T", ", sum" },
#else
	/* 4.0: writes beyond its memory. */
	{ "maps with gaps", "reduce_scatter" },
#endif
};

static bool mpi_is_right(const struct test_case *test_case)
{
	const char *name = test_case_name(test_case);
	size_t i;

	for (i = 0; i < sizeof(not_right) / sizeof(*not_right); i++)
		if (strstr(name, not_right[i][0]) && strstr(name, not_right[i][1]))
			return false;
	return true;
}

static void play(struct test_case test_case)
{
	test_case.rounded = true;
	if (!mpi_is_right(&test_case))
		return;
	test_case_begin(&test_case);
	calls++;
	if (test_case.form != BLOCKING)
		must(MPI_Wait(&test_case.request, MPI_STATUS_IGNORE), "MPI_Wait");
	test_case_write(&test_case, exact, rounded);
	test_case_free(&test_case);
}

static void moves(struct test_case test_case)
{
	static const int counts[] = { 1, 7, 900 };
	int rank, i;

	MPI_Comm_rank(test_case.comm, &rank);
	for (test_case.what = BARRIER; test_case.what < REDUCE; test_case.what++)
		for (i = 0; i < 3; i++) {
			test_case.in_layout = (rank + i) % LAYOUTS;
			test_case.out_layout = (2 * rank + i) % LAYOUTS;
			test_case.count = counts[i];
			test_case.root = i;
			test_case.seed++;
			play(test_case);
		}
}

static void reduces(struct test_case test_case)
{
	static const int counts[] = { 3, 200 };
	int i;

	for (test_case.what = REDUCE; test_case.what < WHATS; test_case.what++)
		for (i = 0; i < reductions(); i++) {
			reduction_choose(&test_case, i);
			test_case.count = counts[i % 2];
			test_case.root = i;
			test_case.seed++;
			play(test_case);
		}
}

static FILE *open_file(const char *prefix, const char *what, int rank)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s.%s.%d", prefix, what, rank);
	file = fopen(path, "w");
	if (!file)
		fail("cannot write %s", path);
	return file;
}

int main(int argc, char **argv)
{
	struct test_case test_case = { .comm = MPI_COMM_WORLD, .seed = 5 };
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 2)
		fail("alike PREFIX");
	exact = open_file(argv[1], "exact", rank);
	rounded = open_file(argv[1], "rounded", rank);
	test_cases_start();
	for (test_case.form = BLOCKING; test_case.form <= NONBLOCKING; test_case.form++) {
		moves(test_case);
		reduces(test_case);
	}
	must_have_counted(calls, 0, "alike");
	test_cases_end();
	if (fclose(exact) || fclose(rounded))
		fail("cannot write all");
	if (!rank)
		printf("%llu calls\n", (unsigned long long)calls);
	MPI_Finalize();
	return 0;
}
