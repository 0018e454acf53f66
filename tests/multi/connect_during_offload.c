// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * connect_during_offload: a link connects while the other links are handed to the kernel.
 * In each new group the last rank already uses links of its own and calls late; another
 * rank connects to it just then.
 */
#include <unistd.h>

#include "tests/lib/rank.h"

enum { GROUPS = 12, COUNT = 64, WAITED_US = 150000, LATE_US = 100000 };

/* The application's own reductions stay in user space. */
static void add(void *out, const void *left, const void *right, size_t count, enum coll_type type,
		void *argument)
{
	double *to = out;
	const double *a = left, *b = right;
	size_t i;

	(void)type;
	(void)argument;
	for (i = 0; i < count; i++)
		to[i] = a[i] + b[i];
}

static void fill(const struct coll_group *group, double *in, int turn)
{
	int i;

	for (i = 0; i < COUNT; i++)
		in[i] = coll_rank(group) + i * turn;
}

static void check(const struct coll_group *group, const double *out, int turn)
{
	const int ranks = coll_ranks(group);
	int i;

	for (i = 0; i < COUNT; i++)
		rank_assert(group, out[i] == ranks * (ranks - 1) / 2 + ranks * i * turn);
}

/* To the last rank, by 0, 1, 3, ... */
static void reduce(struct coll_group *group, enum coll_reduction op, int turn)
{
	const int last = coll_ranks(group) - 1;
	double in[COUNT], out[COUNT];

	fill(group, in, turn);
	rank_must(group, coll_reduce(in, out, COUNT, COLL_DOUBLE, op, last, group));
	if (coll_rank(group) == last)
		check(group, out, turn);
}

/* Between neighbours. */
static void allreduce(struct coll_group *group, int turn)
{
	double in[COUNT], out[COUNT];

	fill(group, in, turn);
	rank_must(group, coll_allreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, group));
	check(group, out, turn);
}

int main(void)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context), *group;
	const int last = coll_ranks(world) - 1;
	enum coll_reduction op;
	int turn;

	rank_must(world, coll_op_create(context, add, NULL, 1, &op));
	for (turn = 0; turn < GROUPS; turn++) {
		rank_must(world, coll_group_dup(world, &group));
		rank_must(group, coll_group_set(group, "reduce", "binomial"));
		rank_must(group, coll_group_set(group, "allreduce", "ring"));
		if (!coll_rank(group))
			usleep(WAITED_US);
		reduce(group, op, turn);
		if (coll_rank(group) == last)
			usleep(LATE_US);
		else if (coll_rank(group) == last - 1)
			usleep(WAITED_US + LATE_US / 2);
		allreduce(group, turn);
		reduce(group, op, turn);
		allreduce(group, turn);
		coll_group_free(group);
	}
	coll_op_free(context, op);
	coll_close(context);
	return 0;
}
