// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/link/group.h"
#include "loops.h"

/* Starts it, or calls and waits: run is NULL. */
#define CALL(name, ...) (run ? coll_i##name(__VA_ARGS__, run) : coll_##name(__VA_ARGS__))

static int loops_barrier(struct loop *l, struct coll_run **run)
{
	return CALL(barrier, l->group);
}

static int loops_bcast(struct loop *l, struct coll_run **run)
{
	return CALL(bcast, l->out, l->count, COLL_INT32, l->root, l->group);
}

static int loops_gather(struct loop *l, struct coll_run **run)
{
	return CALL(gather, l->in, l->out, l->count, COLL_INT32, l->root, l->group);
}

static int loops_gatherv(struct loop *l, struct coll_run **run)
{
	return CALL(gatherv, l->in, l->count, l->out, l->counts, l->displs, COLL_INT32, l->root,
			    l->group);
}

static int loops_scatter(struct loop *l, struct coll_run **run)
{
	return CALL(scatter, l->in, l->out, l->count, COLL_INT32, l->root, l->group);
}

static int loops_scatterv(struct loop *l, struct coll_run **run)
{
	return CALL(scatterv, l->in, l->counts, l->displs, l->out, l->count, COLL_INT32, l->root,
			     l->group);
}

static int loops_allgather(struct loop *l, struct coll_run **run)
{
	return CALL(allgather, l->in, l->out, l->count, COLL_INT32, l->group);
}

static int loops_allgatherv(struct loop *l, struct coll_run **run)
{
	return CALL(allgatherv, l->in, l->count, l->out, l->counts, l->displs, COLL_INT32,
			       l->group);
}

static int loops_alltoall(struct loop *l, struct coll_run **run)
{
	return CALL(alltoall, l->in, l->out, l->count, COLL_INT32, l->group);
}

static int loops_alltoallv(struct loop *l, struct coll_run **run)
{
	return CALL(alltoallv, l->in, l->counts, l->displs, l->out, l->counts, l->displs,
			      COLL_INT32, l->group);
}

static int loops_reduce(struct loop *l, struct coll_run **run)
{
	return CALL(reduce, l->in, l->out, l->count, COLL_INT32, COLL_SUM, l->root, l->group);
}

static int loops_allreduce(struct loop *l, struct coll_run **run)
{
	return CALL(allreduce, l->in, l->out, l->count, COLL_INT32, COLL_SUM, l->group);
}

static int reduce_scatter(struct loop *l, struct coll_run **run)
{
	return CALL(reduce_scatter, l->in, l->out, l->counts, COLL_INT32, COLL_SUM, l->group);
}

static int reduce_scatter_block(struct loop *l, struct coll_run **run)
{
	return CALL(reduce_scatter_block, l->in, l->out, l->count, COLL_INT32, COLL_SUM, l->group);
}

static int loops_scan(struct loop *l, struct coll_run **run)
{
	return CALL(scan, l->in, l->out, l->count, COLL_INT32, COLL_SUM, l->group);
}

static int loops_exscan(struct loop *l, struct coll_run **run)
{
	return CALL(exscan, l->in, l->out, l->count, COLL_INT32, COLL_SUM, l->group);
}

const char *const loop_collectives[] = {
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather",
	"allgatherv", "alltoall", "alltoallv", "reduce", "allreduce", "reduce_scatter",
	"reduce_scatter_block", "scan", "exscan", NULL,
};

static int (*const calls[])(struct loop *loop, struct coll_run **run) = {
	loops_barrier,	loops_bcast,	      loops_gather,    loops_gatherv,
	loops_scatter,	loops_scatterv,	      loops_allgather, loops_allgatherv,
	loops_alltoall, loops_alltoallv,      loops_reduce,    loops_allreduce,
	reduce_scatter, reduce_scatter_block, loops_scan,      loops_exscan,
};

/* With COLL_TEST_ALLOC it is memory that ranks of this node map. */
static void *zeros(struct coll_group *group, size_t bytes)
{
	void *memory;

	if (!getenv("COLL_TEST_ALLOC"))
		return calloc(1, bytes);
	return coll_alloc(group->context, bytes, &memory) ? NULL : memset(memory, 0, bytes);
}

struct loop loop_make(struct coll_group *group, const char *collective, size_t count)
{
	const size_t ranks = coll_ranks(group), bytes = ranks * count * sizeof(int);
	struct loop loop = {
		.group = group,
		.collective = collective,
		.count = count,
		.in = zeros(group, bytes + 1),
		.out = zeros(group, bytes + 1),
		.counts = calloc(ranks, sizeof(size_t)),
		.displs = calloc(ranks, sizeof(size_t)),
	};
	size_t i;

	if (!loop.in || !loop.out || !loop.counts || !loop.displs)
		abort();
	for (i = 0; i < ranks; i++) {
		loop.counts[i] = count;
		loop.displs[i] = i * count;
	}
	return loop;
}

int loop_start(struct loop *loop, struct coll_run **run)
{
	int i;

	for (i = 0; loop_collectives[i]; i++)
		if (!strcmp(loop_collectives[i], loop->collective))
			return calls[i](loop, run);
	return -ENOENT;
}

int loop_call(struct loop *loop)
{
	return loop_start(loop, NULL);
}

void loop_free(struct loop *loop)
{
	if (!getenv("COLL_TEST_ALLOC")) {	/* else coll_close() frees it, or has */
		free(loop->in);
		free(loop->out);
	}
	free(loop->counts);
	free(loop->displs);
}
