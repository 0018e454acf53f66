// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Noise that is measured in the job (option measure=always): messages are late for a while (option
 * inject), and the choice follows, on all ranks after the same call: one that had chosen by other
 * noise would end the next call with -EPROTO. Rank 0 prints the choice of each part of the job:
 * before, while messages are late, and after.
 *
 *	noise_follow CALLS [late|busy|leaf RANK MICROSECONDS | links]
 *
 * CALLS: that a part of the job has at most, 0: what fits into 12 s, for noise that was found stays
 * for 2 s; it ends when all is as expected. late: instead of
 * messages this rank is late, by up to so much before each call; the choice must stay. busy: all
 * ranks start each call and compute for up to so much, the given rank longest, before they ask
 * whether it has ended; the choice must stay as well. leaf: this rank is late in the second part of the
 * job, and becomes a leaf. links: what is injected there makes one rank's links bad, which is told, and an answer
 * to it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/rank.h"

enum { LOOK_EVERY = 64, CALLS_LEAST = 768, PART_S = 12, RANK_NONE = -1 };

static void call(struct coll_group *group)
{
	const int ranks = coll_ranks(group);
	double value = coll_rank(group);

	rank_must(group, coll_allreduce(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM, group));
	rank_assert(group, value == ranks * (ranks - 1) / 2);
}

/* What is said of a call that would be made now. */
static void choice_now(struct coll_group *group, const char *print, char *why, size_t bytes)
{
	double value = 0;
	struct coll_run *run;

	rank_must(group, coll_allreduce_init(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM, group,
					     &run));
	snprintf(why, bytes, "%s", coll_run_explain(run));
	if (print && !coll_rank(group))
		printf("%s: %s\n", print, why);
	coll_run_free(&run);
}

/* By how many redundant exchanges it would be answered. */
static int redundancy(struct coll_group *group, const char *print)
{
	char why[1200], *t;

	choice_now(group, print, why, sizeof(why));
	t = strstr(why, ":T=");
	return t ? atoi(t + 3) : 0;
}

/* Whether it would be answered with a late rank for a leaf. */
static bool has_leaf(struct coll_group *group, const char *print)
{
	char why[1200];

	choice_now(group, print, why, sizeof(why));
	return strstr(why, "late=");
}

static struct coll_context *job;

/* Whether one rank's links are known to be bad. */
static bool has_bad_links(struct coll_group *group, const char *print)
{
	char costs[4096] = "";

	rank_assert(group, coll_costs(job, costs, sizeof(costs)) > 0);
	if (print)
		redundancy(group, print);
	return strstr(costs, "late messages by its links");
}

/* By rank 0's clock, for all. */
static bool is_over(struct coll_group *group, time_t end)
{
	int over = time(NULL) > end;

	rank_must(group, coll_bcast(&over, 1, COLL_INT32, 0, group));
	return over;
}

/* A part of the job, until T is as wanted. */
static void part(struct coll_group *group, const char *name, const char *inject, bool wanted,
		 int most)
{
	const time_t end = time(NULL) + PART_S;
	int calls;

	rank_must(group, coll_group_set(group, "inject", inject));
	for (calls = 0; !most || calls < most; calls++) {
		if (calls >= CALLS_LEAST && calls % LOOK_EVERY == 0 &&
		    ((redundancy(group, NULL) > 0) == wanted || (!most && is_over(group, end))))
			break;
		call(group);
	}
	redundancy(group, name);
	if (!coll_rank(group))
		printf("%s: %d calls\n", name, calls);
}

static void be_late(unsigned int *random, long most)
{
	const struct timespec time = { 0, 1000 * (rand_r(random) % (most + 1)) };

	nanosleep(&time, NULL);
}

/* What an application does while a call is under way: the library is not asked meanwhile. */
static void compute(unsigned int *random, long most)
{
	const long ns = 1000 * (rand_r(random) % (most + 1));
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

static void call_while_busy(struct coll_group *group, unsigned int *random, long most)
{
	const int ranks = coll_ranks(group);
	double value = coll_rank(group);
	struct coll_run *run;
	int ended;

	rank_must(group, coll_iallreduce(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM, group, &run));
	do {
		compute(random, most);
		rank_must(group, coll_run_test(&run, &ended));
	} while (!ended);
	rank_assert(group, value == ranks * (ranks - 1) / 2);
}

/* Of four calls one is plain: a survey is begun by one that all ranks block in. */
static int be_busy(struct coll_group *group, int busy_rank, long most, int calls)
{
	unsigned int random = 1 + coll_rank(group);
	int redundant = 0, i;

	for (i = 0; i < calls; i++) {
		if (i % 4)
			call_while_busy(group, &random, coll_rank(group) == busy_rank ? most : most / 4);
		else
			call(group);
		if (i % LOOK_EVERY == 0)
			redundant += redundancy(group, NULL) > 0;
	}
	return redundant;
}

/* One rank comes late. Returns how often there would have been redundant exchanges. */
static int come_late(struct coll_group *group, int late_rank, long most, int calls)
{
	unsigned int random = 1;
	int redundant = 0, i;

	for (i = 0; i < calls; i++) {
		if (coll_rank(group) == late_rank)
			be_late(&random, most);
		call(group);
		if (i % LOOK_EVERY == 0)
			redundant += redundancy(group, NULL) > 0;
	}
	return redundant;
}

/* Whether it is so. Rank 0 prints what would be chosen. */
typedef bool so_now(struct coll_group *group, const char *print);

/* A part of the job, until it is so or not, as wanted: this rank is late (RANK_NONE: none). */
static void leaf_part(struct coll_group *group, const char *name, so_now *is_so, bool wanted, int late_rank, long most)
{
	const time_t begin = time(NULL), end = begin + PART_S;
	unsigned int random = 1;
	int calls;

	for (calls = 0;; calls++) {
		if (calls >= CALLS_LEAST && calls % LOOK_EVERY == 0 &&
		    (is_so(group, NULL) == wanted || is_over(group, end)))
			break;
		if (coll_rank(group) == late_rank)
			be_late(&random, most);
		call(group);
	}
	is_so(group, name);
	if (!coll_rank(group))
		printf("%s: %d calls, %ld s\n", name, calls, (long)(time(NULL) - begin));
}

/* A rank is late in the second part, or its messages are. */
static void leaf_parts(struct coll_context *context, so_now *is_so, int late_rank, long most, const char *inject)
{
	struct coll_group *world = coll_world(context);
	char costs[4096] = "";

	rank_must(world, coll_group_set(world, "inject", "off"));
	leaf_part(world, "before", is_so, false, RANK_NONE, 0);
	rank_must(world, coll_group_set(world, "inject", inject));
	leaf_part(world, "leaf", is_so, true, late_rank, most);
	rank_assert(world, coll_costs(context, costs, sizeof(costs)) > 0);
	if (!coll_rank(world))
		printf("%s", costs);
	rank_must(world, coll_group_set(world, "inject", "off"));
	leaf_part(world, "after", is_so, false, RANK_NONE, 0);
}

int main(int argc, char **argv)
{
	const int most = argc > 1 ? atoi(argv[1]) : 4000;
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(job = context);
	const char *inject = getenv("COLL_INJECT");
	char costs[4096] = "";

	if (argc > 4 && !strcmp(argv[2], "leaf")) {
		leaf_parts(context, has_leaf, atoi(argv[3]), atol(argv[4]), "off");
	} else if (argc > 2 && !strcmp(argv[2], "links")) {
		leaf_parts(context, has_bad_links, RANK_NONE, 0, inject ? inject : "off");
	} else if (argc > 4) {
		const bool busy = !strcmp(argv[2], "busy");
		const int redundant = (busy ? be_busy : come_late)(world, atoi(argv[3]), atol(argv[4]),
								  most);

		redundancy(world, "late");
		rank_assert(world, coll_costs(context, costs, sizeof(costs)) > 0);
		if (!coll_rank(world))
			printf("%slate: redundant %d times\n", costs, redundant);
	} else {
		part(world, "before", "off", false, most);
		part(world, "noise", inject ? inject : "off", true, most);
		rank_assert(world, coll_costs(context, costs, sizeof(costs)) > 0);
		if (!coll_rank(world))
			printf("%s", costs);
		part(world, "after", "off", false, most);
	}
	coll_close(context);
	return 0;
}
