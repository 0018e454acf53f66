// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One loop, three libraries: built with -DPEER_MPI against an MPI, without
 * against libcoll. For every collective and size it prints
 *
 *	<collective> <bytes> <median> <p99> <min> <mean>
 *
 * in microseconds. A sample is the time from an agreed start until the last rank has
 * returned. Failures end the program.
 *
 * Why not each rank's own time after a barrier: a rank that leaves the barrier late, because
 * it waited for a core, finds the data there and seems fast. That measures the barrier
 * (Hunold and Carpen-Amarie, "Reproducible MPI benchmarking is still not as easy as you
 * think", IEEE TPDS 2016).
 *
 *	peer SECONDS COLLECTIVE[,..] BYTES[,..]
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;

#ifdef PEER_MPI
#include <mpi.h>

static void peer_open(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void peer_close(void)
{
	MPI_Finalize();
}

static void peer_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void peer_bcast(void *data, int count)
{
	MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void peer_allreduce(void *in, void *out, int count)
{
	MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void peer_alltoall(void *in, void *out, int count)
{
	MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

/* The largest of each sample, at rank 0. */
static void peer_slowest(double *mine, double *slowest, int count)
{
	MPI_Reduce(mine, slowest, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

static void peer_tell(double *value)
{
	MPI_Bcast(value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
#else
#include "libcoll/coll.h"

static struct coll_context *context;
static struct coll_group *world;

static void must(int error)
{
	if (error) {
		fprintf(stderr, "rank %d: %s\n", rank,
			world ? coll_last_error(world) : coll_context_error(NULL));
		exit(1);
	}
}

static void peer_open(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	must(coll_open(NULL, &context));
	world = coll_world(context);
	rank = coll_rank(world);
	ranks = coll_ranks(world);
}

static void peer_close(void)
{
	coll_close(context);
}

static void peer_barrier(void)
{
	must(coll_barrier(world));
}

static void peer_bcast(void *data, int count)
{
	must(coll_bcast(data, count, COLL_FLOAT, 0, world));
}

static void peer_allreduce(void *in, void *out, int count)
{
	must(coll_allreduce(in, out, count, COLL_FLOAT, COLL_SUM, world));
}

static void peer_alltoall(void *in, void *out, int count)
{
	must(coll_alltoall(in, out, count, COLL_FLOAT, world));
}

static void peer_slowest(double *mine, double *slowest, int count)
{
	must(coll_reduce(mine, slowest, count, COLL_DOUBLE, COLL_MAX, 0, world));
}

static void peer_tell(double *value)
{
	must(coll_bcast(value, 1, COLL_DOUBLE, 0, world));
}
#endif

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

enum { SAMPLES_MAX = 20000, WARMUP = 20, WINDOW_US = 300 };

static float *in, *out;

static void call(const char *collective, int count)
{
	if (!strcmp(collective, "barrier"))
		peer_barrier();
	else if (!strcmp(collective, "bcast"))
		peer_bcast(in, count);
	else if (!strcmp(collective, "allreduce"))
		peer_allreduce(in, out, count);
	else if (!strcmp(collective, "alltoall"))
		peer_alltoall(in, out, count);
}

/* The time of a call with a wrong result has no meaning. */
static void verify(const char *collective, int count)
{
	int i, wrong = 0;

	for (i = 0; i < count * ranks; i++) {
		in[i] = rank + 1;
		out[i] = -1;
	}
	call(collective, count);
	for (i = 0; i < count; i++) {
		if (!strcmp(collective, "allreduce"))
			wrong += out[i] != ranks * (ranks + 1) / 2;
		else if (!strcmp(collective, "bcast"))
			wrong += in[i] != 1;
		else if (!strcmp(collective, "alltoall"))
			wrong += out[i + count * (ranks - 1)] != ranks;
	}
	if (wrong) {
		fprintf(stderr, "rank %d: %s of %d floats is wrong\n", rank, collective, count);
		exit(1);
	}
}

/*
 * Rank 0 sets the start, WINDOW_US from now, or 0 after the last sample; all ranks are on
 * one node and share its clock. A waiting rank yields its core: others may need it to be in
 * time.
 */
static double wait_for_start(int enough)
{
	double start = rank || enough ? 0 : now_us() + WINDOW_US;

	peer_tell(&start);
	while (now_us() < start)
		sched_yield();
	return start;
}

static void measure(const char *collective, int bytes, double seconds)
{
	static double mine[SAMPLES_MAX], slowest[SAMPLES_MAX];
	int count = bytes / sizeof(float), samples = 0, i;
	double end, start, sum = 0;

	verify(collective, count);
	for (i = 0; i < WARMUP; i++)
		call(collective, count);
	end = now_us() + seconds * 1e6;
	for (;;) {
		peer_barrier();
		start = wait_for_start(now_us() > end || samples == SAMPLES_MAX);
		if (!start)
			break;
		call(collective, count);
		mine[samples++] = now_us() - start;
	}
	peer_slowest(mine, slowest, samples);
	if (rank)
		return;
	qsort(slowest, samples, sizeof(*slowest), by_value);
	for (i = 0; i < samples; i++)
		sum += slowest[i];
	printf("%s %d %.2f %.2f %.2f %.2f\n", collective, bytes, slowest[samples / 2],
	       slowest[samples * 99 / 100], slowest[0], sum / samples);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char *collective, *size, *save_collective, *save_size;

	if (argc != 4) {
		fprintf(stderr, "usage: peer SECONDS COLLECTIVE[,..] BYTES[,..]\n");
		return 2;
	}
	peer_open(&argc, &argv);
	in = calloc(ranks, 4 << 20);
	out = calloc(ranks, 4 << 20);
	for (collective = strtok_r(argv[2], ",", &save_collective); collective;
	     collective = strtok_r(NULL, ",", &save_collective)) {
		char sizes[256];

		snprintf(sizes, sizeof(sizes), "%s", strcmp(collective, "barrier") ? argv[3] : "0");
		for (size = strtok_r(sizes, ",", &save_size); size;
		     size = strtok_r(NULL, ",", &save_size))
			measure(collective, atoi(size), atof(argv[1]));
	}
	peer_close();
	return 0;
}
