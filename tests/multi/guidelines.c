// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * guidelines clock|barrier SECONDS BYTES ...: self-consistency of the collectives (Träff, Gropp, Thakur,
 * Self-Consistent MPI Performance Guidelines, IEEE TPDS 21(5), 2010). A collective that others can
 * stand for must not be slower than these are together; nor is more data, or another rank, to make
 * a call faster.
 *
 * Both sides of a guideline are called in turn, by all ranks at an agreed time (clock: they are of
 * one node) or when they leave a barrier, and a sample is the longest time of any rank. Rank 0
 * prints a line each:
 *
 *	GUIDELINE,RANKS,BYTES,SAMPLES,LEFT,RIGHT,P25,RATIO,P75
 *
 * medians in us, and quartiles of left / right of samples that were taken one after the other. Both
 * sides have room for all that any side needs, so that no side has warmer memory.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/base/clock.h"
#include "tests/lib/rank.h"

enum { SAMPLES_MAX = 2000, SAMPLES_MIN = 12, SAMPLES_LONG = 4, WARMUP = 3, BYTES_MAX = 4 << 20 };
enum { PATIENCE = 4 };	/* times SECONDS: then SAMPLES_LONG are enough, as long calls vary less */
enum { AHEAD_NS = 100000 };	/* by then all ranks know the agreed time */

/* Buffers of `ranks` blocks, a rank's block being `bytes`. */
struct side_call {
	struct coll_group *group;
	int ranks;
	size_t bytes;
	char *in, *out, *more;
};

typedef int side_function(const struct side_call *c);

/* ---- the sides ---------------------------------------------------------------------- */

static int call_barrier(const struct side_call *c)
{
	return coll_barrier(c->group);
}

static int call_bcast(const struct side_call *c)
{
	return coll_bcast(c->out, c->bytes, COLL_UINT8, 0, c->group);
}

static int call_bcast_all(const struct side_call *c)
{
	return coll_bcast(c->out, c->bytes * c->ranks, COLL_UINT8, 0, c->group);
}

static int call_gather(const struct side_call *c)
{
	return coll_gather(c->in, c->out, c->bytes, COLL_UINT8, 0, c->group);
}

static int call_scatter(const struct side_call *c)
{
	return coll_scatter(c->in, c->out, c->bytes, COLL_UINT8, 0, c->group);
}

static int call_allgather(const struct side_call *c)
{
	return coll_allgather(c->in, c->out, c->bytes, COLL_UINT8, c->group);
}

static int call_alltoall(const struct side_call *c)
{
	return coll_alltoall(c->in, c->out, c->bytes, COLL_UINT8, c->group);
}

static int call_reduce(const struct side_call *c)
{
	return coll_reduce(c->in, c->out, c->bytes, COLL_UINT8, COLL_BXOR, 0, c->group);
}

static int call_reduce_all(const struct side_call *c)
{
	return coll_reduce(c->in, c->out, c->bytes * c->ranks, COLL_UINT8, COLL_BXOR, 0, c->group);
}

static int call_allreduce(const struct side_call *c)
{
	return coll_allreduce(c->in, c->out, c->bytes, COLL_UINT8, COLL_BXOR, c->group);
}

static int call_allreduce_all(const struct side_call *c)
{
	return coll_allreduce(c->in, c->out, c->bytes * c->ranks, COLL_UINT8, COLL_BXOR, c->group);
}

static int call_allreduce_byte(const struct side_call *c)
{
	return coll_allreduce(c->in, c->out, 1, COLL_UINT8, COLL_BXOR, c->group);
}

static int call_reduce_scatter(const struct side_call *c)
{
	return coll_reduce_scatter_block(c->in, c->out, c->bytes, COLL_UINT8, COLL_BXOR, c->group);
}

static int call_exscan(const struct side_call *c)
{
	return coll_exscan(c->in, c->out, c->bytes, COLL_UINT8, COLL_BXOR, c->group);
}

static int call_scan(const struct side_call *c)
{
	return coll_scan(c->in, c->out, c->bytes, COLL_UINT8, COLL_BXOR, c->group);
}

static int reduce_and_bcast(const struct side_call *c)
{
	int error = call_reduce(c);

	return error ? error : call_bcast(c);
}

static int gather_and_bcast(const struct side_call *c)
{
	int error = call_gather(c);

	return error ? error : call_bcast_all(c);
}

static int scatter_and_allgather(const struct side_call *c)
{
	int error = call_scatter(c);

	return error ? error : coll_allgather(c->out, c->more, c->bytes, COLL_UINT8, c->group);
}

static int reduce_and_scatter(const struct side_call *c)
{
	int error = call_reduce_all(c);

	return error ? error : coll_scatter(c->out, c->more, c->bytes, COLL_UINT8, 0, c->group);
}

static int reduce_scatter_and_allgather(const struct side_call *c)
{
	int error = call_reduce_scatter(c);

	return error ? error : coll_allgather(c->out, c->more, c->bytes, COLL_UINT8, c->group);
}

/* The rest of a scan is local. */
static int exscan_and_combine(const struct side_call *c)
{
	int error = call_exscan(c);
	size_t i;

	for (i = 0; i < c->bytes; i++)
		c->out[i] ^= c->in[i];
	return error;
}

/* "of blocks": of a vector of as many blocks as there are ranks. */
static const struct guideline {
	const char *name;
	side_function *left, *right;
} guidelines[] = {
	{ "allreduce <= reduce + bcast", call_allreduce, reduce_and_bcast },
	{ "allreduce of blocks <= reduce_scatter_block + allgather", call_allreduce_all,
	  reduce_scatter_and_allgather },
	{ "reduce <= allreduce", call_reduce, call_allreduce },
	{ "allgather <= gather + bcast", call_allgather, gather_and_bcast },
	{ "allgather <= allreduce of blocks", call_allgather, call_allreduce_all },
	{ "allgather <= alltoall", call_allgather, call_alltoall },
	{ "gather <= allgather", call_gather, call_allgather },
	{ "gather <= reduce of blocks", call_gather, call_reduce_all },
	{ "scatter <= bcast of blocks", call_scatter, call_bcast_all },
	{ "bcast of blocks <= scatter + allgather", call_bcast_all, scatter_and_allgather },
	{ "reduce_scatter_block <= reduce of blocks + scatter", call_reduce_scatter,
	  reduce_and_scatter },
	{ "reduce_scatter_block <= allreduce of blocks", call_reduce_scatter, call_allreduce_all },
	{ "scan <= exscan + local", call_scan, exscan_and_combine },
};

/* Of these, four times the bytes take as long at least, and so does one more rank, nearly. */
static const struct {
	const char *name;
	side_function *call;
} monotone[] = {
	{ "bcast", call_bcast }, { "reduce", call_reduce }, { "allreduce", call_allreduce },
	{ "gather", call_gather }, { "scatter", call_scatter }, { "allgather", call_allgather },
	{ "alltoall", call_alltoall }, { "reduce_scatter_block", call_reduce_scatter },
	{ "scan", call_scan },
};

/* ---- measuring ---------------------------------------------------------------------- */

static bool by_clock;

/* A rank that waits for the agreed time leaves its core to others. */
static uint64_t start_together(struct coll_group *world)
{
	uint64_t start;

	rank_must(world, coll_barrier(world));
	start = coll_now() + AHEAD_NS;
	if (!by_clock)
		return coll_now();
	rank_must(world, coll_bcast(&start, 1, COLL_UINT64, 0, world));
	while (coll_now() < start)
		sched_yield();
	return start;
}

static double sample(const struct side_call *c, side_function *side, struct coll_group *world)
{
	const uint64_t begin = start_together(world);

	if (c->group)
		rank_must(world, side(c));
	return (coll_now() - begin) / 1e3;
}

static int order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *sorted, int count, double part)
{
	return sorted[(int)(part * (count - 1) + 0.5)];
}

static void print(const char *name, int ranks, size_t bytes, double times[2][SAMPLES_MAX], int count)
{
	static double ratio[SAMPLES_MAX];
	int i;

	for (i = 0; i < count; i++)
		ratio[i] = times[0][i] / times[1][i];
	qsort(ratio, count, sizeof(*ratio), order);
	for (i = 0; i < 2; i++)
		qsort(times[i], count, sizeof(**times), order);
	printf("%s,%d,%zu,%d,%.1f,%.1f,%.2f,%.2f,%.2f\n", name, ranks, bytes, count,
	       quantile(times[0], count, 0.5), quantile(times[1], count, 0.5),
	       quantile(ratio, count, 0.25), quantile(ratio, count, 0.5), quantile(ratio, count, 0.75));
	fflush(stdout);
}

/* Which side goes first changes: the first finds what the other has left in caches. */
static void measure(const char *name, const struct side_call *left, side_function *left_side,
		    const struct side_call *right, side_function *right_side,
		    struct coll_group *world, double seconds)
{
	static double times[2][SAMPLES_MAX], all[2][SAMPLES_MAX];
	const uint64_t time = (uint64_t)(seconds * 1e9);
	uint64_t begin = 0;
	int count, go, i;

	for (i = -WARMUP, count = 0, go = 1; go && count < SAMPLES_MAX; i++) {
		double taken[2];

		if (i % 2)
			taken[0] = sample(left, left_side, world);
		taken[1] = sample(right, right_side, world);
		if (i % 2 == 0)
			taken[0] = sample(left, left_side, world);
		if (i < 0)
			continue;
		if (!begin)
			begin = coll_now();
		times[0][count] = taken[0];
		times[1][count++] = taken[1];
		go = coll_now() - begin < (count < SAMPLES_LONG ? UINT64_MAX :
					   count < SAMPLES_MIN ? PATIENCE * time : time);
		rank_must(world, coll_bcast(&go, 1, COLL_INT32, 0, world));
	}
	for (i = 0; i < 2; i++)
		rank_must(world, coll_reduce(times[i], all[i], count, COLL_DOUBLE, COLL_MAX, 0, world));
	if (!coll_rank(world))
		print(name, right->ranks, left->bytes, all, count);
}

/* ---- what is measured ------------------------------------------------------------------ */

static struct side_call with_bytes(struct side_call c, size_t bytes)
{
	c.bytes = bytes;
	return c;
}

static void measure_guidelines(struct side_call c, double seconds)
{
	size_t i;

	for (i = 0; i < sizeof(guidelines) / sizeof(*guidelines); i++) {
		const struct guideline *g = &guidelines[i];

		measure(g->name, &c, g->left, &c, g->right, c.group, seconds);
	}
}

static void measure_sizes(struct side_call c, double seconds)
{
	const struct side_call more = with_bytes(c, c.bytes * 4);
	char name[80];
	size_t i;

	for (i = 0; i < sizeof(monotone) / sizeof(*monotone); i++) {
		snprintf(name, sizeof(name), "%s <= the same of four times the bytes", monotone[i].name);
		measure(name, &c, monotone[i].call, &more, monotone[i].call, c.group, seconds);
	}
}

/* Ranks outside of a side's group wait in the barrier. */
static void measure_ranks(struct side_call c, struct coll_group *few, double seconds)
{
	struct side_call fewer = c;
	char name[80];
	size_t i;

	fewer.group = few;
	fewer.ranks = c.ranks - 1;
	for (i = 0; i < sizeof(monotone) / sizeof(*monotone); i++) {
		snprintf(name, sizeof(name), "%s <= the same of one rank more", monotone[i].name);
		measure(name, &fewer, monotone[i].call, &c, monotone[i].call, c.group, seconds);
	}
}

static char *make_buffer(size_t bytes)
{
	char *buffer = malloc(bytes);

	if (buffer)
		memset(buffer, 1, bytes);	/* its pages are there */
	return buffer;
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=60s");
	struct coll_group *world = coll_world(context), *few = NULL;
	struct side_call c = { .group = world, .ranks = coll_ranks(world) };
	const size_t room = (size_t)c.ranks * BYTES_MAX * 4;
	const double seconds = argc > 2 ? atof(argv[2]) : 0;
	int i;

	rank_assert(world, argc > 3 && seconds > 0 && c.ranks > 1);
	by_clock = !strcmp(argv[1], "clock");
	c.in = make_buffer(room);
	c.out = make_buffer(room);
	c.more = make_buffer(room);
	rank_assert(world, c.in && c.out && c.more);
	rank_must(world, coll_group_split(world, coll_rank(world) == c.ranks - 1 ? -1 : 0, 0,
					  &few));
	measure("barrier <= allreduce of a byte", &c, call_barrier, &c, call_allreduce_byte, world,
		seconds);
	for (i = 3; i < argc; i++) {
		c.bytes = strtoull(argv[i], NULL, 10);
		rank_assert(world, c.bytes && c.bytes <= BYTES_MAX);
		measure_guidelines(c, seconds);
		measure_sizes(c, seconds);
		if (c.ranks > 2)
			measure_ranks(c, few, seconds);
	}
	if (few)
		coll_group_free(few);
	coll_close(context);
	free(c.in);
	free(c.out);
	free(c.more);
	return 0;
}
