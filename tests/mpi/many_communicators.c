// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Hundreds of communicators at once, each with a collective, and few file descriptors. */
#include <sys/resource.h>

#include "test_case.h"

enum { COMMUNICATORS = 600, DESCRIPTORS = 256 };

int main(int argc, char **argv)
{
	const struct rlimit files = { DESCRIPTORS, DESCRIPTORS };
	static MPI_Comm copy[COMMUNICATORS];
	int rank, ranks, i, in, out;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (i = 0; i < COMMUNICATORS; i++) {
		must(MPI_Comm_dup(MPI_COMM_WORLD, &copy[i]), "MPI_Comm_dup");
		in = rank + i;
		must(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, copy[i]), "MPI_Allreduce");
		if (out != ranks * i + ranks * (ranks - 1) / 2)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (i = 0; i < COMMUNICATORS; i++)
		MPI_Comm_free(&copy[i]);
	must_have_counted(COMMUNICATORS, 0, "many communicators");
	MPI_Finalize();
	return 0;
}
