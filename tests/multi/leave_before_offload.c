// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * leave_before_offload: the last rank broadcasts and frees its group. The others have both
 * the message and the goodbye when they come to the call: in user space, or in the kernel,
 * from which they take the links back for a call in between.
 */
#include <unistd.h>

#include "tests/lib/rank.h"

enum { GROUPS = 8, WAITED_MS = 60 };

/* The application's own reductions stay in user space. */
static void add(void *out, const void *left, const void *right, size_t count, enum coll_type type,
		void *argument)
{
	size_t i;

	(void)type;
	(void)argument;
	for (i = 0; i < count; i++)
		((int *)out)[i] = ((const int *)left)[i] + ((const int *)right)[i];
}

static void hear(struct coll_context *context)
{
	int i;

	for (i = 0; i < WAITED_MS; i++) {
		coll_progress(context);
		usleep(1000);
	}
}

static void reduce(struct coll_group *group, enum coll_reduction op)
{
	const int ranks = coll_ranks(group);
	int one = 1, all = ranks;

	rank_must(group, coll_reduce(&one, &all, 1, COLL_INT32, op, 0, group));
	rank_assert(group, all == ranks);
}

static void bcast(struct coll_group *group, int value)
{
	const int last = coll_ranks(group) - 1;
	int got = coll_rank(group) == last ? value : -1;

	rank_must(group, coll_bcast(&got, 1, COLL_INT32, last, group));
	rank_assert(group, got == value);
	coll_group_free(group);
}

static void in_user_space(struct coll_context *context, struct coll_group *group,
			  enum coll_reduction op, int value)
{
	int one = 1, all;

	rank_must(group, coll_allreduce(&one, &all, 1, COLL_INT32, op, group));
	rank_assert(group, all == coll_ranks(group));
	if (coll_rank(group) != coll_ranks(group) - 1)
		hear(context);
	bcast(group, value);
}

/* The last rank has sent all that the others need of it, for both calls. */
static void in_the_kernel(struct coll_context *context, struct coll_group *group,
			  enum coll_reduction op, int value)
{
	rank_must(group, coll_barrier(group));
	if (coll_rank(group) != coll_ranks(group) - 1)
		hear(context);
	reduce(group, op);
	bcast(group, value);
}

int main(void)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context), *group;
	enum coll_reduction op;
	int turn;

	rank_must(world, coll_op_create(context, add, NULL, 1, &op));
	for (turn = 0; turn < GROUPS; turn++) {
		rank_must(world, coll_group_dup(world, &group));
		rank_must(group, coll_group_set(group, "bcast", "linear"));
		rank_must(group, coll_group_set(group, "reduce", "binomial"));
		if (turn % 2)
			in_the_kernel(context, group, op, turn);
		else
			in_user_space(context, group, op, turn);
	}
	coll_op_free(context, op);
	coll_close(context);
	return 0;
}
