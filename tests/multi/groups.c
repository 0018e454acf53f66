// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * groups: one rank splits, duplicates and frees groups, and has many runs of
 * several groups in flight, in every order that is allowed.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include "tests/lib/rank.h"

enum { IN_FLIGHT = 20, RESTARTS = 1000, LARGE = 30000 };

/* ---- a sum that identifies the ranks ------------------------------------------ */

/* Sum of 2^(rank in the world) over the group. */
static uint64_t members(struct coll_group *group, int world_rank)
{
	uint64_t mine = 1ull << world_rank, all = 0;

	rank_must(group, coll_allreduce(&mine, &all, 1, COLL_UINT64, COLL_SUM, group));
	return all;
}

/* The world's ranks in the order of the group's. */
static void check_order(struct coll_group *group, int world_rank, int step)
{
	const int ranks = coll_ranks(group);
	int order[ranks], i;

	rank_must(group, coll_allgather(&world_rank, order, 1, COLL_INT32, group));
	rank_assert(group, order[coll_rank(group)] == world_rank);
	for (i = 1; i < ranks; i++)
		rank_assert(group, step * (order[i] - order[i - 1]) > 0);
}

/* ---- splits ------------------------------------------------------------- */

static void check_parity(struct coll_group *world)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	struct coll_group *part;
	uint64_t want = 0;
	int i;

	rank_must(world, coll_group_split(world, rank % 2, rank, &part));
	for (i = rank % 2; i < ranks; i += 2)
		want |= 1ull << i;
	rank_assert(world, members(part, rank) == want);
	check_order(part, rank, 1);
	coll_group_free(part);
}

static void check_reverse_halves(struct coll_group *world)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	const int half = rank >= ranks / 2;
	struct coll_group *part, *again;

	rank_must(world, coll_group_split(world, half, -rank, &part));
	rank_assert(world, coll_ranks(part) == (half ? ranks - ranks / 2 : ranks / 2));
	check_order(part, rank, -1);
	/* a split of a split, back in order, while its parent lives on */
	rank_must(part, coll_group_split(part, 7, rank, &again));
	check_order(again, rank, 1);
	check_order(part, rank, -1);
	coll_group_free(part);
	check_order(again, rank, 1);
	coll_group_free(again);
}

static void check_equal_keys(struct coll_group *world)
{
	struct coll_group *part;

	rank_must(world, coll_group_split(world, 0, 5, &part));
	rank_assert(world, coll_rank(part) == coll_rank(world));
	coll_group_free(part);
}

static void check_single(struct coll_group *world)
{
	struct coll_group *part;

	rank_must(world, coll_group_split(world, coll_rank(world), 0, &part));
	rank_assert(world, coll_ranks(part) == 1 && !coll_rank(part));
	rank_assert(world, members(part, coll_rank(world)) == 1ull << coll_rank(world));
	rank_must(part, coll_barrier(part));
	coll_group_free(part);
}

static void check_left_out(struct coll_group *world)
{
	const int rank = coll_rank(world);
	struct coll_group *part = world;

	rank_must(world, coll_group_split(world, rank ? 3 : -1, 0, &part));
	rank_assert(world, rank ? coll_ranks(part) == coll_ranks(world) - 1 : !part);
	if (part)
		rank_must(part, coll_barrier(part));
	coll_group_free(part);
}

/* ---- groups of listed ranks ----------------------------------------------- */

/* Two lists at once: the even ranks backwards, and the odd ones. */
static void check_lists(struct coll_group *world)
{
	const int ranks = coll_ranks(world), rank = coll_rank(world), odd = rank % 2;
	struct coll_group *part;
	int list[ranks], count = 0, i;

	for (i = odd ? 1 : (ranks - 1) / 2 * 2; i >= 0 && i < ranks; i += odd ? 2 : -2)
		list[count++] = i;
	rank_must(world, coll_group_from_ranks(world, list, count, &part));
	rank_assert(world, coll_ranks(part) == count);
	rank_assert(world, list[coll_rank(part)] == rank);
	check_order(part, rank, odd ? 1 : -1);
	coll_group_free(part);
}

/* Rank 0 alone; the others pass it, no rank, or each other's neighbours. */
static void check_unlisted(struct coll_group *world)
{
	const int rank = coll_rank(world), first = 0;
	struct coll_group *part;

	rank_must(world, coll_group_from_ranks(world, &first, rank % 2 ? 0 : 1, &part));
	rank_assert(world, !rank == !!part);
	if (part)
		rank_assert(world, coll_ranks(part) == 1 && members(part, 0) == 1);
	coll_group_free(part);
}

/*
 * The last rank leaves rank 0 out: a rank that lists another with a different list gets an error.
 */
static void check_lists_differ(struct coll_group *world)
{
	const int ranks = coll_ranks(world), rank = coll_rank(world);
	const int skip = rank == ranks - 1;
	struct coll_group *part;
	int list[ranks], error, i;

	for (i = 0; i < ranks; i++)
		list[i] = i;
	if (ranks == 1)
		return;
	error = coll_group_from_ranks(world, list + skip, ranks - skip, &part);
	if (ranks == 2 && skip) {	/* its list is its own affair */
		rank_must(world, error);
		rank_assert(world, coll_ranks(part) == 1);
		coll_group_free(part);
	} else {
		rank_assert(world, error == -EPROTO && !part);
		rank_assert(world, strstr(coll_last_error(world), "passed this list"));
	}
	rank_must(world, coll_group_from_ranks(world, list, ranks, &part));
	coll_group_free(part);
}

/* Refused without any message. */
static void check_bad_lists(struct coll_group *world)
{
	const int ranks = coll_ranks(world), twice[] = { 0, 0 }, beyond[] = { 0, ranks };
	const int negative[] = { -1 };
	struct coll_group *part;

	rank_assert(world, coll_group_from_ranks(world, twice, 2, &part) == -EINVAL && !part);
	rank_assert(world, strstr(coll_last_error(world), "ranks[1] (0) is listed before"));
	rank_assert(world, coll_group_from_ranks(world, beyond, 2, &part) == -EINVAL && !part);
	rank_assert(world, strstr(coll_last_error(world), "is no rank of the group; valid: 0 to"));
	rank_assert(world, coll_group_from_ranks(world, negative, 1, &part) == -EINVAL && !part);
	rank_assert(world, coll_group_from_ranks(world, NULL, -1, &part) == -EINVAL && !part);
	rank_assert(world, strstr(coll_last_error(world), "count (-1)"));
}

static void check_dup(struct coll_group *world)
{
	struct coll_group *copy;
	const char *name = "ring";

	rank_must(world, coll_group_set(world, "allreduce", name));
	rank_must(world, coll_group_dup(world, &copy));
	rank_must(world, coll_group_set(world, "allreduce", "auto"));
	rank_assert(world, coll_rank(copy) == coll_rank(world));
	check_order(copy, coll_rank(world), 1);
	rank_assert(world, members(copy, coll_rank(world)) ==
				   members(world, coll_rank(world)));
	coll_group_free(copy);
}

/* ---- several groups at once ------------------------------------------------ */

/* Three groups' collectives; each rank starts them in another order. */
static void check_orders(struct coll_group *world)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	struct coll_group *group[3];
	struct coll_run *run[3];
	int round, i;

	rank_must(world, coll_group_dup(world, &group[0]));
	rank_must(world, coll_group_split(world, rank % 2, rank, &group[1]));
	rank_must(world, coll_group_split(world, 0, -rank, &group[2]));
	for (round = 0; round < 20; round++) {
		int64_t in[3], out[3];

		for (i = 0; i < 3; i++) {
			const int which = (i + rank + round) % 3;

			in[which] = 100 * which + round;
			rank_must(group[which],
				  coll_iallreduce(&in[which], &out[which], 1, COLL_INT64, COLL_SUM,
						  group[which], &run[which]));
		}
		for (i = 0; i < 3; i++) {
			const int which = (i + 2 * rank) % 3;

			rank_must(group[which], coll_run_wait(&run[which]));
			rank_assert(world, !run[which]);
		}
		for (i = 0; i < 3; i++)
			rank_assert(world, out[i] == in[i] * coll_ranks(group[i]));
	}
	rank_assert(world, coll_ranks(group[0]) == ranks);
	for (i = 0; i < 3; i++)
		coll_group_free(group[i]);
}

/* ---- several runs of one group ----------------------------------------------- */

/* Large and small ones in turn; the root changes, so do the algorithms. */
static void start_one(struct coll_group *world, int which, int64_t *in, int64_t *out,
		      struct coll_run **run)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	const size_t count = which % 4 == 3 ? LARGE : 1 + which;
	size_t i;

	for (i = 0; i < count; i++)
		in[i] = which * 1000 + rank + i;
	if (which % 2) {
		if (rank == which % ranks)
			memcpy(out, in, count * sizeof(*out));
		rank_must(world, coll_ibcast(out, count, COLL_INT64, which % ranks, world, run));
	} else {
		rank_must(world, coll_iallreduce(in, out, count, COLL_INT64, COLL_MAX, world, run));
	}
}

static void check_one(struct coll_group *world, int which, const int64_t *out)
{
	const int ranks = coll_ranks(world);
	const size_t count = which % 4 == 3 ? LARGE : 1 + which;
	const int64_t first = which * 1000 + (which % 2 ? which % ranks : ranks - 1);
	size_t i;

	for (i = 0; i < count; i++)
		rank_assert(world, out[i] == first + (int64_t)i);
}

/* Waits by coll_run_test() alone, sleeping in poll(2) on the context's descriptor. */
static void wait_by_poll(struct coll_context *context, struct coll_group *group,
			 struct coll_run **run)
{
	int done = 0;

	for (;;) {
		struct pollfd fd = { .fd = coll_fd(context), .events = POLLIN };

		rank_must(group, coll_run_test(run, &done));
		if (done)
			return;
		rank_assert(group, poll(&fd, 1, 20000) == 1);
	}
}

enum way { REVERSE, ALL, POLL, WAYS };

static void check_in_flight(struct coll_context *context, struct coll_group *world, enum way way)
{
	struct coll_run *run[IN_FLIGHT];
	int64_t *in[IN_FLIGHT], *out[IN_FLIGHT];
	int i;

	for (i = 0; i < IN_FLIGHT; i++) {
		in[i] = calloc(LARGE, sizeof(int64_t));
		out[i] = calloc(LARGE, sizeof(int64_t));
		start_one(world, i, in[i], out[i], &run[i]);
	}
	if (way == ALL)
		rank_must(world, coll_run_waitall(run, IN_FLIGHT));
	for (i = IN_FLIGHT - 1; i >= 0 && way == REVERSE; i--)
		rank_must(world, coll_run_wait(&run[i]));
	for (i = 0; i < IN_FLIGHT && way == POLL; i++)
		wait_by_poll(context, world, &run[i]);
	for (i = 0; i < IN_FLIGHT; i++) {
		rank_assert(world, !run[i]);
		check_one(world, i, out[i]);
		free(in[i]);
		free(out[i]);
	}
}

static void check_restarts(struct coll_group *world)
{
	const int64_t ranks = coll_ranks(world);
	struct coll_run *sum, *barrier;
	int64_t in = 0, out = 0;

	rank_must(world, coll_allreduce_init(&in, &out, 1, COLL_INT64, COLL_SUM, world, &sum));
	rank_must(world, coll_barrier_init(world, &barrier));
	for (; in < RESTARTS; in++) {
		rank_must(world, coll_run_start(sum));
		rank_must(world, coll_run_start(barrier));
		rank_must(world, coll_run_wait(&barrier));
		rank_must(world, coll_run_wait(&sum));
		rank_assert(world, out == in * ranks && sum && barrier);
	}
	rank_must(world, coll_run_free(&sum));
	rank_must(world, coll_run_free(&barrier));
	rank_assert(world, !sum && !barrier);
}

/* What a started run of equal calls needs is there already. */
static void check_allocations(struct coll_context *context, struct coll_group *world)
{
	struct coll_counters counters = { .size = sizeof(counters) };
	uint64_t before;
	int64_t in = 1, out;
	int i;

	for (i = 0; i < 200; i++) {
		if (i == 100)
			coll_counters(context, &counters);
		rank_must(world, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world));
	}
	before = counters.allocations;
	coll_counters(context, &counters);
	rank_assert(world, counters.allocations <= before + 1);
}

/* Without elements no memory is needed; otherwise NULL is refused. */
static void check_no_memory(struct coll_group *world)
{
	const int ranks = coll_ranks(world);
	size_t counts[ranks], displs[ranks];
	int64_t data[ranks];
	int i;

	for (i = 0; i < ranks; i++) {
		counts[i] = 1;
		displs[i] = i;
	}
	rank_assert(world, coll_allreduce(NULL, data, 1, COLL_INT64, COLL_SUM, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world),
				  "allreduce: in is NULL; valid: a buffer of 8 bytes"));
	rank_assert(world, coll_allreduce(data, NULL, 1, COLL_INT64, COLL_SUM, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world),
				  "allreduce: out is NULL; valid: a buffer of 8 bytes"));
	rank_assert(world, coll_allreduce(data, COLL_IN_PLACE, 1, COLL_INT64, COLL_SUM, world) ==
				   -EINVAL);
	rank_assert(world, coll_bcast(NULL, 1, COLL_INT64, 0, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world),
				  "bcast: data is NULL; valid: a buffer of 8 bytes"));
	rank_assert(world, coll_allgatherv(NULL, 1, data, counts, displs, COLL_INT64, world) ==
				   -EINVAL);
	rank_assert(world, coll_alltoall(data, NULL, 1, COLL_INT64, world) == -EINVAL);
	rank_must(world, coll_allreduce(NULL, NULL, 0, COLL_INT64, COLL_SUM, world));
	rank_must(world, coll_alltoall(NULL, NULL, 0, COLL_INT64, world));
	/* Off the root nothing is received, nor sent. */
	data[0] = 7;
	rank_must(world, coll_gather(coll_rank(world) ? data : COLL_IN_PLACE,
				     coll_rank(world) ? NULL : data, 1, COLL_INT64, 0, world));
	rank_must(world, coll_scatter(coll_rank(world) ? NULL : data,
				      coll_rank(world) ? data : COLL_IN_PLACE, 1, COLL_INT64, 0,
				      world));
	rank_assert(world, data[0] == 7);
}

static void check_misuse(struct coll_group *world)
{
	struct coll_run *run;
	int64_t in = 1, out;
	int done = 0;

	rank_must(world, coll_barrier_init(world, &run));
	rank_must(world, coll_run_wait(&run));	/* not started: nothing to wait for */
	rank_must(world, coll_run_start(run));
	rank_must(world, coll_run_wait(&run));
	rank_must(world, coll_run_free(&run));
	rank_must(world, coll_run_test(&run, &done));
	rank_assert(world, done);
	rank_assert(world, coll_allreduce(&in, &out, 1, 999, COLL_SUM, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world),
				  "allreduce: type (999) is unknown; valid: "));
	rank_assert(world, coll_allreduce(&in, &out, 1, COLL_FLOAT, COLL_BAND, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world),
				  "op (band) is not defined for type (float); valid: "));
	rank_assert(world, coll_bcast(&out, 1, COLL_INT64, coll_ranks(world), world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "is no rank of the group; valid: 0 to "));
	rank_assert(world, coll_bcast(&out, (size_t)1 << 60, COLL_INT64, 0, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "bcast: count (1152921504606846976) "));
	rank_assert(world, coll_group_set(world, "allreduce", "gossip") == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "butterfly"));
	rank_must(world, coll_barrier(world));
}

int main(void)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context);
	const char *progress = getenv("COLL_PROGRESS");
	enum way way;

	check_parity(world);
	check_reverse_halves(world);
	check_equal_keys(world);
	check_single(world);
	check_left_out(world);
	check_lists(world);
	check_unlisted(world);
	check_lists_differ(world);
	check_bad_lists(world);
	check_dup(world);
	/* One after the other, as a helper executes them, these would wait for each other. */
	if (!progress || strcmp(progress, "helper"))
		check_orders(world);
	for (way = 0; way < WAYS; way++)
		check_in_flight(context, world, way);
	check_restarts(world);
	check_allocations(context, world);
	check_no_memory(world);
	check_misuse(world);
	coll_close(context);
	return 0;
}
