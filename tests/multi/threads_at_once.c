// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * threads_at_once many: each thread has a group of its own, and all call at once (progress=thread).
 * threads_at_once turns: threads take turns with the same group, and one that has started a run
 *	ends before it is awaited (threads=any).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { THREADS = 4, ROUNDS = 200, COUNT = 3000 };

struct caller {
	pthread_t thread;
	struct coll_group *group;
	struct coll_run *run;
	int number;
	int32_t in[COUNT], out[COUNT];
};

static void fill(struct caller *c, int round)
{
	int i;

	for (i = 0; i < COUNT; i++)
		c->in[i] = coll_rank(c->group) + i + round + c->number;
}

static void check(const struct caller *c, int round)
{
	const int ranks = coll_ranks(c->group);
	int i;

	for (i = 0; i < COUNT; i++)
		rank_assert(c->group, c->out[i] == ranks * (ranks - 1) / 2 +
						ranks * (i + round + c->number));
}

/* Blocking, nonblocking and persistent calls in turn, of lengths that differ between threads. */
static void call_once(struct caller *c, int round)
{
	struct coll_group *group = c->group;
	struct coll_run *run;

	fill(c, round);
	switch (round % 3) {
	case 0:
		rank_must(group, coll_allreduce(c->in, c->out, COUNT, COLL_INT32, COLL_SUM, group));
		break;
	case 1:
		rank_must(group, coll_iallreduce(c->in, c->out, COUNT, COLL_INT32, COLL_SUM, group, &run));
		rank_must(group, coll_run_wait(&run));
		break;
	default:
		rank_must(group, coll_allreduce_init(c->in, c->out, COUNT, COLL_INT32, COLL_SUM, group,
						     &run));
		rank_must(group, coll_run_start(run));
		rank_must(group, coll_run_wait(&run));
		rank_must(group, coll_run_free(&run));
	}
	check(c, round);
	rank_assert(group, coll_bcast(c->in, 1, COLL_INT32, 99, group) == -EINVAL);
	rank_assert(group, strstr(coll_last_error(group), "root (99)"));
}

static void *call_many(void *argument)
{
	struct caller *c = argument;
	int round;

	for (round = 0; round < ROUNDS; round++)
		call_once(c, round);
	return NULL;
}

static void many(struct coll_group *world)
{
	static struct caller caller[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		caller[i].number = i;
		rank_must(world, coll_group_dup(world, &caller[i].group));
	}
	for (i = 0; i < THREADS; i++)
		rank_assert(world, !pthread_create(&caller[i].thread, NULL, call_many, &caller[i]));
	for (i = 0; i < THREADS; i++)
		pthread_join(caller[i].thread, NULL);
	for (i = 0; i < THREADS; i++)
		coll_group_free(caller[i].group);
}

static void *call_in_turn(void *argument)
{
	struct caller *c = argument;

	call_once(c, c->number);
	fill(c, c->number);
	rank_must(c->group, coll_iallreduce(c->in, c->out, COUNT, COLL_INT32, COLL_SUM, c->group,
					    &c->run));
	return NULL;		/* its requests end with it; the run does not */
}

static void turns(struct coll_group *world)
{
	static struct caller c;
	int round;

	c.group = world;
	for (round = 0; round < ROUNDS; round++) {
		c.number = round;
		rank_assert(world, !pthread_create(&c.thread, NULL, call_in_turn, &c));
		pthread_join(c.thread, NULL);
		rank_must(world, coll_run_wait(&c.run));
		check(&c, c.number);
		if (round % 5 == coll_rank(world))
			usleep(2000);
	}
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=20s");

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "many"))
		many(coll_world(context));
	else
		turns(coll_world(context));
	coll_close(context);
	return 0;
}
