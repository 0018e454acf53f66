// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * An MPI program that measures collectives as the common benchmarks of MPI do: a loop for each
 * collective and size, in which each rank adds up the time of its own calls, with a barrier after
 * each call that is not timed; first a tenth of the calls to warm up; the same buffers for all. For
 * every cell it prints, in microseconds, over the ranks:
 *
 *	<collective> <bytes> <mean> <min> <max>
 *
 * Bytes are those of a vector, or of a block (allgather, gather, scatter, alltoall). An iallreduce is
 * followed by as much computing as it takes alone, and then awaited; the time is that of all.
 * allreduce_int and the like reduce integers, the others floats.
 *
 *	loops SECONDS CALLS CALLS_OF_64K COLLECTIVE[,..] BYTES[,..]
 *
 * SECONDS: of a cell at most, as the warming up predicts. peer.c measures the last rank from an agreed
 * start, which is the better measure; this is what people run.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 64 << 20, LONG = 65536 };

static int rank, ranks;
static char *in, *out;
static volatile double computed;
static double alone;		/* seconds of an iallreduce without computing */

/* ---- collectives -------------------------------------------------------- */

static void call_barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void call_bcast(int bytes)
{
	MPI_Bcast(in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void call_reduce(int bytes)
{
	MPI_Reduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void call_reduce_int(int bytes)
{
	MPI_Reduce(in, out, bytes / 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void call_allreduce(int bytes)
{
	MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_allreduce_int(int bytes)
{
	MPI_Allreduce(in, out, bytes / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void scatter_reduced(int bytes, MPI_Datatype type)
{
	int counts[ranks], i;

	for (i = 0; i < ranks; i++)
		counts[i] = bytes / 4 / ranks + (i < bytes / 4 % ranks);
	MPI_Reduce_scatter(in, out, counts, type, MPI_SUM, MPI_COMM_WORLD);
}

static void call_reduce_scatter(int bytes)
{
	scatter_reduced(bytes, MPI_FLOAT);
}

static void call_reduce_scatter_int(int bytes)
{
	scatter_reduced(bytes, MPI_INT);
}

static void call_allgather(int bytes)
{
	MPI_Allgather(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void call_gather(int bytes)
{
	MPI_Gather(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void call_scatter(int bytes)
{
	MPI_Scatter(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void call_alltoall(int bytes)
{
	MPI_Alltoall(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void call_iallreduce(int bytes)
{
	MPI_Request request;
	double until;

	MPI_Iallreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
	for (until = MPI_Wtime() + alone; MPI_Wtime() < until;)
		computed = computed * 0.5 + 1;
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct collective {
	const char *name;
	void (*call)(int bytes);
	int blocks;		/* the size is a block's */
} collectives[] = {
	{ "barrier", call_barrier, 0 },
	{ "bcast", call_bcast, 0 },
	{ "reduce", call_reduce, 0 },
	{ "reduce_int", call_reduce_int, 0 },
	{ "allreduce", call_allreduce, 0 },
	{ "allreduce_int", call_allreduce_int, 0 },
	{ "reduce_scatter", call_reduce_scatter, 0 },
	{ "reduce_scatter_int", call_reduce_scatter_int, 0 },
	{ "allgather", call_allgather, 1 },
	{ "gather", call_gather, 1 },
	{ "scatter", call_scatter, 1 },
	{ "alltoall", call_alltoall, 1 },
	{ "iallreduce", call_iallreduce, 0 },
};

/* ---- measuring ---------------------------------------------------------- */

/* Mean seconds of this rank's call. */
static double loop(const struct collective *of, int bytes, int calls)
{
	double spent = 0, began;
	int i;

	for (i = 0; i < calls; i++) {
		began = MPI_Wtime();
		of->call(bytes);
		spent += MPI_Wtime() - began;
		if (of->call != call_barrier)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return spent / calls;
}

/* As many calls as fit into the time by these, from rank 0. */
static int fitting(int calls, double seconds, double elapsed, int made)
{
	const double fit = seconds / (elapsed / made);

	if (fit < calls)
		calls = fit < 10 ? 10 : fit;
	MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return calls;
}

static void measure(const struct collective *of, int bytes, int calls, double seconds)
{
	const int warm = calls < 10 ? 1 : calls / 10;
	double began, mine, least, most, sum;
	int few;

	if ((long)bytes * (of->blocks ? ranks : 1) > BYTES_MAX)
		return;
	MPI_Barrier(MPI_COMM_WORLD);
	alone = 0;
	began = MPI_Wtime();
	loop(of, bytes, 2);
	few = fitting(warm, seconds / 10, MPI_Wtime() - began, 2);
	began = MPI_Wtime();
	mine = loop(of, bytes, few);
	calls = fitting(calls, seconds, MPI_Wtime() - began, few);
	if (of->call == call_iallreduce)
		MPI_Allreduce(&mine, &alone, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	mine = 1e6 * loop(of, bytes, calls);
	MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank)
		return;
	printf("%s %d %.2f %.2f %.2f\n", of->name, bytes, sum / ranks, least, most);
	fflush(stdout);
}

static const struct collective *collective_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		if (!strcmp(collectives[i].name, name))
			return &collectives[i];
	fprintf(stderr, "loops: no collective \"%s\"\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	char *name, *size, *save_name, *save_size, sizes[256];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 6 || !(atof(argv[1]) > 0) || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: loops SECONDS CALLS CALLS_OF_64K COLLECTIVE[,..] BYTES[,..]\n");
		exit(2);
	}
	in = calloc(1, BYTES_MAX);
	out = calloc(1, BYTES_MAX);
	if (!in || !out) {
		fprintf(stderr, "rank %d: no memory\n", rank);
		exit(1);
	}
	for (name = strtok_r(argv[4], ",", &save_name); name;
	     name = strtok_r(NULL, ",", &save_name)) {
		const struct collective *of = collective_named(name);

		snprintf(sizes, sizeof(sizes), "%s", of->call == call_barrier ? "0" : argv[5]);
		for (size = strtok_r(sizes, ",", &save_size); size;
		     size = strtok_r(NULL, ",", &save_size))
			measure(of, atoi(size), atoi(argv[atoi(size) < LONG ? 2 : 3]),
				atof(argv[1]));
	}
	MPI_Finalize();
	return 0;
}
