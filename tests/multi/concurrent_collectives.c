// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * concurrent_collectives COUNT BYTES[,BYTES ...] [ROUNDS [COLLECTIVE [groups]]]: COUNT
 * collectives are in flight at once; measures when each one completes.
 *
 * COLLECTIVE is alltoall, allreduce, or mixed (alternately). BYTES is the size of a block or
 * a vector; several sizes are used in turn. With `groups` each collective has a group of its
 * own. A collective is complete when it is complete on all ranks. Rank 0 prints the medians
 * over the rounds, "mean MS last MS first-was K", and its counters.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/rank.h"

enum { FLIGHTS_MAX = 64, ROUNDS_MAX = 64 };

struct flight {
	struct coll_group *group;
	struct coll_run *run;
	bool reduces;
	size_t bytes; /* of a block or the vector: whole elements */
	int64_t *in, *out;
	double done; /* s since the round began, on the last rank */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static size_t elements(const struct flight *f)
{
	return f->bytes / sizeof(*f->in) * (f->reduces ? 1 : coll_ranks(f->group));
}

static void start(struct flight *f)
{
	const size_t count = f->bytes / sizeof(*f->in);

	if (f->reduces)
		rank_must(f->group, coll_iallreduce(f->in, f->out, count, COLL_INT64, COLL_SUM,
						    f->group, &f->run));
	else
		rank_must(f->group,
			  coll_ialltoall(f->in, f->out, count, COLL_INT64, f->group, &f->run));
}

/* Element i of rank r's input is i + r, and of its block for rank q q more. */
static void fill(struct flight *f, int round)
{
	const size_t count = f->bytes / sizeof(*f->in);
	size_t i;

	for (i = 0; i < elements(f); i++)
		f->in[i] = i % count + round + coll_rank(f->group) + (f->reduces ? 0 : i / count);
}

static void check(const struct flight *f, int round)
{
	const int64_t ranks = coll_ranks(f->group), rank = coll_rank(f->group);
	const size_t count = f->bytes / sizeof(*f->in);
	size_t i;

	for (i = 0; i < elements(f); i++) {
		const int64_t at = i % count + round;

		rank_assert(f->group,
			    f->out[i] == (f->reduces ? ranks * at + ranks * (ranks - 1) / 2
						     : at + rank + (int64_t)(i / count)));
	}
}

static void fly(struct coll_group *world, struct flight *flight, int count, int round)
{
	double done[FLIGHTS_MAX], began;
	int i, left = count;

	for (i = 0; i < count; i++)
		fill(&flight[i], round);
	rank_must(world, coll_barrier(world));
	began = now();
	for (i = 0; i < count; i++)
		start(&flight[i]);
	while (left)
		for (i = 0; i < count; i++) {
			int ended = 0;

			if (!flight[i].run)
				continue;
			rank_must(flight[i].group, coll_run_test(&flight[i].run, &ended));
			if (ended) {
				done[i] = now() - began;
				left--;
			}
		}
	rank_must(world, coll_allreduce(COLL_IN_PLACE, done, count, COLL_DOUBLE, COLL_MAX, world));
	for (i = 0; i < count; i++) {
		flight[i].done = done[i];
		check(&flight[i], round);
	}
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void report(struct coll_context *context, double *mean, double *last, int rounds, int first)
{
	struct coll_counters c = { .size = sizeof(c) };

	coll_counters(context, &c);
	printf("mean %.3f ms last %.3f ms first-was %d\n", 1e3 * median(mean, rounds),
	       1e3 * median(last, rounds), first);
	printf("chunks %llu expedited %llu deferred %llu bypassed %llu copied %llu\n",
	       (unsigned long long)c.chunks, (unsigned long long)c.expedited,
	       (unsigned long long)c.deferred, (unsigned long long)c.bypassed,
	       (unsigned long long)c.copied_bytes);
}

/* "1000,2000": the which-th, in turn. */
static size_t size_of(const char *sizes, int which)
{
	size_t size[FLIGHTS_MAX];
	int count = 0;
	char *end;

	do {
		size[count] = strtoull(sizes, &end, 10);
		sizes = end + 1;
	} while (size[count++] && *end == ',' && count < FLIGHTS_MAX);
	return size[which % count] / sizeof(int64_t) * sizeof(int64_t);
}

int main(int argc, char **argv)
{
	const int count = argc > 2 ? atoi(argv[1]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 1;
	const char *what = argc > 4 ? argv[4] : "alltoall";
	const bool groups = argc > 5 && !strcmp(argv[5], "groups");
	struct flight flight[FLIGHTS_MAX] = { 0 };
	double mean[ROUNDS_MAX], last[ROUNDS_MAX];
	struct coll_context *context;
	struct coll_group *world;
	int i, round, first = 0;

	if (count < 1 || count > FLIGHTS_MAX || rounds < 1 || rounds > ROUNDS_MAX ||
	    size_of(argv[2], 0) == 0)
		return 2;
	context = rank_open(NULL);
	world = coll_world(context);
	for (i = 0; i < count; i++) {
		struct flight *f = &flight[i];

		f->group = world;
		f->reduces = !strcmp(what, "allreduce") || (!strcmp(what, "mixed") && i % 2);
		f->bytes = size_of(argv[2], i);
		if (groups)
			rank_must(world, coll_group_dup(world, &f->group));
		f->in = calloc(elements(f) + 1, sizeof(*f->in));
		f->out = calloc(elements(f) + 1, sizeof(*f->out));
		rank_assert(world, f->in && f->out);
	}
	fly(world, flight, count, 0); /* connects */
	for (round = 0; round < rounds; round++) {
		fly(world, flight, count, round + 1);
		mean[round] = last[round] = 0;
		for (i = 0; i < count; i++) {
			mean[round] += flight[i].done / count;
			if (flight[i].done > last[round])
				last[round] = flight[i].done;
			if (flight[i].done < flight[first].done)
				first = i;
		}
	}
	if (!coll_rank(world))
		report(context, mean, last, rounds, first);
	for (i = 0; i < count; i++) {
		if (groups)
			coll_group_free(flight[i].group);
		free(flight[i].in);
		free(flight[i].out);
	}
	coll_close(context);
	return 0;
}
