// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * context_per_thread: one rank with several threads. Each thread has a context of its own, and
 * all work at the same time. Threads of different ranks meet in any combination, since all
 * do the same.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/rank.h"

enum { THREADS = 3, ROUNDS = 60, COUNT = 5000 };

static void work(struct coll_group *world)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	int *in = malloc(COUNT * sizeof(*in)), *out = malloc(COUNT * sizeof(*out)), round, i;
	struct coll_group *part;

	rank_must(world, coll_group_split(world, rank % 2, rank, &part));
	for (round = 0; round < ROUNDS; round++) {
		const int count = round % 3 ? 1 + round : COUNT;

		for (i = 0; i < count; i++)
			in[i] = rank + round + i;
		rank_must(world, coll_allreduce(in, out, count, COLL_INT32, COLL_MAX, world));
		for (i = 0; i < count; i++)
			rank_assert(world, out[i] == ranks - 1 + round + i);
		rank_must(part, coll_bcast(out, count, COLL_INT32, 0, part));
	}
	coll_group_free(part);
	free(in);
	free(out);
}

static void *thread_main(void *argument)
{
	struct coll_context *context = rank_open(NULL);

	(void)argument;
	work(coll_world(context));
	coll_close(context);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, thread_main, NULL))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
