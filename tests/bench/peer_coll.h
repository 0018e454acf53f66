// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The calls of peer.c by libcoll. */
#include "libcoll/coll.h"

enum { PEER_BYTES_MAX = BLOCKS_MAX };

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

static void *peer_alloc(long bytes)
{
	void *memory;

	return coll_alloc(context, bytes, &memory) ? NULL : memory;
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

static void peer_reduce(void *in, void *out, int count)
{
	must(coll_reduce(in, out, count, COLL_FLOAT, COLL_SUM, 0, world));
}

static void peer_reduce_scatter(void *in, void *out, int count)
{
	must(coll_reduce_scatter_block(in, out, count / ranks, COLL_FLOAT, COLL_SUM, world));
}

static void peer_allgather(void *in, void *out, int count)
{
	must(coll_allgather(in, out, count, COLL_FLOAT, world));
}

static void peer_gather(void *in, void *out, int count)
{
	must(coll_gather(in, out, count, COLL_FLOAT, 0, world));
}

static void peer_scatter(void *in, void *out, int count)
{
	must(coll_scatter(in, out, count, COLL_FLOAT, 0, world));
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
