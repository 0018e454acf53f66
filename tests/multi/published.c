// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * published WAY: the root's broadcasts are published (libcoll/engine/published.h), and the others come late to the
 * last of them.
 *
 *	computes	the root makes no call for a while after it
 *	leaves		the root closes its context after it
 *	dies		... or dies: who gets no error gets the root's bytes
 *	ahead		the root is many broadcasts ahead: slots run out
 *	buried		... and a reader dies, which was told of all: the root publishes to the others again
 *
 * published differs RANK: that rank shares no memory with the others; each says what it chose, by which costs.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { BYTES = 1 << 20, WARM = 5, AHEAD = 40, PAUSE_US = 300000 };

static const double root_computes = 3;
static uint8_t *data;

static int bcast(struct coll_group *world, uint8_t value, size_t bytes)
{
	int error;

	memset(data, coll_rank(world) ? 0 : value, bytes);
	error = coll_bcast(data, bytes, COLL_UINT8, 0, world);
	if (!error)
		rank_assert(world, data[0] == value && !memcmp(data, data + 1, bytes - 1));
	return error;
}

static uint64_t published_bytes(struct coll_context *context)
{
	struct coll_counters counters = { .size = sizeof(counters) };

	rank_must(coll_world(context), coll_counters(context, &counters));
	return counters.published_bytes;
}

static void pause_if(bool pauses)
{
	if (pauses)
		usleep(PAUSE_US);
}

static void ahead(struct coll_group *world)
{
	int i;

	for (i = 0; i < AHEAD; i++)
		rank_must(world, bcast(world, 50 + i, BYTES >> i % 6));
}

/* The last reader takes nothing, and dies when the root has no slot left. The others go on. */
static void bury(struct coll_context *context, struct coll_group *world)
{
	const int rank = coll_rank(world), last = coll_ranks(world) - 1;
	struct coll_group *rest;
	uint64_t before;
	int i, error = 0;

	if (rank == last)
		kill(getpid(), SIGKILL);
	for (i = 0; i < AHEAD && !error; i++)
		error = bcast(world, 50 + i, BYTES);
	while (!error)				/* its death is seen at the latest by who waits for it */
		error = coll_barrier(world);
	rank_must(world, coll_shrink(world, &rest));
	for (i = 0; i < AHEAD; i++) {		/* after a lack few ask for a slot */
		before = published_bytes(context);
		rank_must(rest, bcast(rest, 90 + i, BYTES));
		rank_must(rest, coll_barrier(rest));
	}
	rank_assert(rest, rank || published_bytes(context) - before == BYTES);
	coll_group_free(rest);
}

static int comes_late(const char *way)
{
	struct coll_context *context = rank_open("bcast=linear memory=auto");
	struct coll_group *world = coll_world(context);
	const bool root = !coll_rank(world);
	uint64_t before;
	double start;
	int i;

	data = malloc(BYTES);
	rank_assert(world, data);
	for (i = 0; i < WARM; i++) {
		rank_must(world, bcast(world, 1 + i, BYTES));
		rank_must(world, coll_barrier(world));
	}
	before = published_bytes(context);
	rank_assert(world, !root == !before);
	start = rank_seconds();
	pause_if(!root);
	if (!strcmp(way, "ahead")) {
		ahead(world);
	} else if (!strcmp(way, "buried")) {
		bury(context, world);
	} else if (bcast(world, 99, BYTES)) {
		rank_assert(world, !strcmp(way, "dies") && !root);
		puts("error");
		return 0;
	}
	if (root && strcmp(way, "ahead") && strcmp(way, "buried"))
		rank_assert(world, published_bytes(context) - before == BYTES);
	if (root && !strcmp(way, "dies"))
		kill(getpid(), SIGKILL);
	if (root && !strcmp(way, "computes"))
		usleep(root_computes * 1e6);
	else
		rank_assert(world, rank_seconds() - start < root_computes);
	puts("right");
	fflush(stdout);
	coll_close(context);
	return 0;
}

/* What rank 0 could publish is in the costs of all: else the ranks would execute different algorithms. */
static int differs(const char *other)
{
	const char *rank = getenv("COLL_RANK");
	struct coll_context *context = rank_open(rank && !strcmp(rank, other) ? "memory=off" : "memory=auto");
	struct coll_group *world = coll_world(context);
	size_t bytes;

	data = malloc(BYTES);
	rank_assert(world, data);
	for (bytes = BYTES; bytes >= 8 << 10; bytes /= 2) {
		struct coll_run *run;

		rank_must(world, bcast(world, 7, bytes));
		rank_must(world, coll_bcast_init(data, bytes, COLL_UINT8, 0, world, &run));
		printf("%zu bytes: %s\n", bytes, coll_run_explain(run));
		rank_must(world, coll_run_free(&run));
	}
	fflush(stdout);
	coll_close(context);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "differs"))
		return differs(argv[2]);
	return comes_late(argc > 1 ? argv[1] : "");
}
