// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One loop, three libraries and none: built with -DPEER_MPI against an MPI, with -DPEER_FLOOR
 * against nothing (peer_floor.h), without against libcoll. For every collective and size it
 * prints
 *
 *	<collective> <bytes> <median> <p99> <min> <mean>
 *
 * in microseconds. A sample is the time from an agreed start until the last rank has
 * returned. What a rank sends is written before each sample, as a program would: who copies
 * the same bytes again and again finds them in the caches. Failures end the program.
 *
 * BYTES are those of a vector (bcast, reduce, allreduce, reduce_scatter) or of a block
 * (allgather, gather, scatter, alltoall). A size whose blocks are more than 64 MB a rank, or
 * that is no whole float a rank, is left out; by -DPEER_FLOOR one of more than 64 KB too.
 *
 * Why not each rank's own time after a barrier: a rank that leaves the barrier late, because
 * it waited for a core, finds the data there and seems fast. That measures the barrier
 * (Hunold and Carpen-Amarie, "Reproducible MPI benchmarking is still not as easy as you
 * think", IEEE TPDS 2016).
 *
 *	peer SECONDS COLLECTIVE[,..] BYTES[,..] [alloc|WINDOW]
 *
 * alloc: buffers are memory of coll_alloc(), or of MPI_Alloc_mem. WINDOW: by so many microseconds (300)
 * the start is ahead of its agreement. All ranks are to know it by then.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES_MAX = 20000, WARMUP = 20, BLOCKS_MAX = 64 << 20 };

static int rank, ranks;

#if defined(PEER_MPI)
#include "peer_mpi.h"
#elif defined(PEER_FLOOR)
#include "peer_floor.h"
#else
#include "peer_coll.h"
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

static float *in, *out;
static double window_us = 300;

static void call_barrier(void *none, void *nowhere, int count)
{
	(void)none;
	(void)nowhere;
	(void)count;
	peer_barrier();
}

static void call_bcast(void *data, void *nowhere, int count)
{
	(void)nowhere;
	peer_bcast(data, count);
}

/*
 * in[] holds rank + 1 everywhere: what the last element of the result is, at rank 0 if only
 * rank 0 has one. `blocks`: the size is a block's, of `ranks`.
 */
static const struct collective {
	const char *name;
	void (*call)(void *in, void *out, int count);
	enum { NOTHING, IN_ONE, SUM, LAST, ONE } result;
	int only_root, blocks, scattered;
} collectives[] = {
	{ "barrier", call_barrier, NOTHING, 0, 0, 0 },
	{ "bcast", call_bcast, IN_ONE, 0, 0, 0 },
	{ "reduce", peer_reduce, SUM, 1, 0, 0 },
	{ "allreduce", peer_allreduce, SUM, 0, 0, 0 },
	{ "reduce_scatter", peer_reduce_scatter, SUM, 0, 0, 1 },
	{ "allgather", peer_allgather, LAST, 0, 1, 0 },
	{ "gather", peer_gather, LAST, 1, 1, 0 },
	{ "scatter", peer_scatter, ONE, 0, 1, 0 },
	{ "alltoall", peer_alltoall, LAST, 0, 1, 0 },
};

static const struct collective *collective_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		if (!strcmp(collectives[i].name, name))
			return &collectives[i];
	fprintf(stderr, "peer: no collective \"%s\"\n", name);
	exit(2);
}

static int elements(const struct collective *of, int count)
{
	return of->blocks ? count * ranks : count;
}

static void fill(const struct collective *of, int count)
{
	int i;

	for (i = 0; i < elements(of, count); i++)
		in[i] = rank + 1;
}

/* The time of a call with a wrong result has no meaning. */
static void verify(const struct collective *of, int count)
{
	const float sum = ranks * (ranks + 1) / 2;
	float got = 0, right = 0;
	int last = elements(of, count) - 1;

	fill(of, count);
	out[last < 0 ? 0 : last] = -1;
	of->call(in, out, count);
	if (of->result == NOTHING || !count || (of->only_root && rank))
		return;
	if (of->result == IN_ONE)
		got = in[last], right = 1;
	else if (of->result == SUM)
		got = out[of->scattered ? count / ranks - 1 : last], right = sum;
	else if (of->result == LAST)
		got = out[last], right = ranks;
	else
		got = out[count - 1], right = 1;
	if (got != right) {
		fprintf(stderr, "rank %d: %s of %d floats gives %g, not %g\n", rank, of->name, count,
			got, right);
		exit(1);
	}
}

/*
 * Rank 0 sets the start, window_us from now, or 0 after the last sample; all ranks are on
 * one node and share its clock. A waiting rank yields its core: others may need it to be in
 * time.
 */
static double wait_for_start(int enough)
{
	double start = rank || enough ? 0 : now_us() + window_us;

	peer_tell(&start);
	while (now_us() < start)
		sched_yield();
	return start;
}

static void measure(const struct collective *of, int bytes, double seconds)
{
	static double mine[SAMPLES_MAX], slowest[SAMPLES_MAX];
	int count = bytes / sizeof(float), samples = 0, i;
	double end, start, sum = 0;

	if ((long)elements(of, bytes) > BLOCKS_MAX || bytes > PEER_BYTES_MAX ||
	    (of->scattered && count % ranks))
		return;
	verify(of, count);
	for (i = 0; i < WARMUP; i++)
		of->call(in, out, count);
	end = now_us() + seconds * 1e6;
	for (;;) {
		fill(of, count);
		peer_barrier();
		start = wait_for_start(samples && (now_us() > end || samples == SAMPLES_MAX));
		if (!start)
			break;
		of->call(in, out, count);
		mine[samples++] = now_us() - start;
		peer_barrier();	/* who fills its buffer has a core that others may still want for the call */
	}
	peer_slowest(mine, slowest, samples);
	if (rank)
		return;
	qsort(slowest, samples, sizeof(*slowest), by_value);
	for (i = 0; i < samples; i++)
		sum += slowest[i];
	printf("%s %d %.2f %.2f %.2f %.2f\n", of->name, bytes, slowest[samples / 2],
	       slowest[samples * 99 / 100], slowest[0], sum / samples);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const int alloc = argc == 5 && !strcmp(argv[4], "alloc");
	char *name, *size, *save_name, *save_size;

	if (argc == 5 && !alloc)
		window_us = atof(argv[4]);
	if (argc < 4 || argc > 5 || !(window_us > 0)) {
		fprintf(stderr, "usage: peer SECONDS COLLECTIVE[,..] BYTES[,..] [alloc|WINDOW]\n");
		return 2;
	}
	peer_open(&argc, &argv);
	in = alloc ? peer_alloc(BLOCKS_MAX) : malloc(BLOCKS_MAX);
	out = alloc ? peer_alloc(BLOCKS_MAX) : malloc(BLOCKS_MAX);
	if (!in || !out) {
		fprintf(stderr, "rank %d: no memory\n", rank);
		exit(1);
	}
	for (name = strtok_r(argv[2], ",", &save_name); name;
	     name = strtok_r(NULL, ",", &save_name)) {
		const struct collective *of = collective_named(name);
		char sizes[256];

		snprintf(sizes, sizeof(sizes), "%s", strcmp(name, "barrier") ? argv[3] : "0");
		for (size = strtok_r(sizes, ",", &save_size); size;
		     size = strtok_r(NULL, ",", &save_size))
			measure(of, atoi(size), atof(argv[1]));
	}
	peer_close();
	return 0;
}
