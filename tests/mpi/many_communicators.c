// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * many_communicators: hundreds at once, each with a collective, and few file descriptors.
 * many_communicators memory N: the Nth allocation of the first collective on one fails on rank 1 (needs
 *	tests/chaos/fault.so); says "none" where there is none.
 * many_communicators memory N reduction: the same of a reduction of elements with gaps by a function.
 */
#include <sys/resource.h>

#include "test_case.h"

enum { COMMUNICATORS = 600, DESCRIPTORS = 256 };

static int rank, ranks;

static void many(void)
{
	static MPI_Comm copy[COMMUNICATORS];
	int i, in, out;

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
}

static void add_spread(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < *count; i++)
		((int *)inout)[2 * i] += ((int *)in)[2 * i];
}

static void reduce_spread(MPI_Datatype spread, MPI_Op op)
{
	int in[8] = { 1, 0, 2, 0, 3, 0, 4, 0 }, out[8] = { 0 };
	MPI_Request request;

	must(MPI_Iallreduce(in, out, 4, spread, op, MPI_COMM_WORLD, &request), "MPI_Iallreduce");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (out[6] != 4 * ranks)
		fail("a sum is wrong");
}

/* The shim does not see the communicator made: its ranks meet in the barrier. */
static void without_memory(int n, bool reduction)
{
	void (*arm)(int, uint64_t, uint64_t, int) =
		(void (*)(int, uint64_t, uint64_t, int))dlsym(RTLD_DEFAULT, "fault_arm");
	uint64_t (*disarm)(void) = (uint64_t(*)(void))dlsym(RTLD_DEFAULT, "fault_disarm");
	MPI_Request request;
	MPI_Datatype spread;
	MPI_Comm copy;
	MPI_Op op;

	if (!arm || !disarm)
		fail("fault.so is not preloaded");
	must(MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request), "MPI_Comm_idup");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread), "a type with gaps");
	must(MPI_Type_commit(&spread), "MPI_Type_commit");
	must(MPI_Op_create(add_spread, 1, &op), "MPI_Op_create");
	if (rank == 1)
		arm(0, n, 0, 0);
	if (reduction)
		reduce_spread(spread, op);
	else
		must(MPI_Barrier(copy), "MPI_Barrier");
	if (rank == 1 && !disarm()) {
		printf("none\n");
		fflush(stdout);
	}
	MPI_Op_free(&op);
	MPI_Type_free(&spread);
	MPI_Comm_free(&copy);
}

int main(int argc, char **argv)
{
	const struct rlimit files = { DESCRIPTORS, DESCRIPTORS };

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 2)
		without_memory(atoi(argv[2]), argc > 3);
	else
		many();
	MPI_Finalize();
	return 0;
}
