// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * late_rank SECONDS LATE ALGORITHM ...: allreduce of 8 bytes by each algorithm in turn, one call each,
 * for so long. All ranks begin a call at an agreed time, so they must share a clock. Rank 0 prints
 * "ALGORITHM CALLS others MEAN MEDIAN P99 all MEAN MEDIAN P99": us from there until the last rank has the
 * result, without ranks LATE (R+R+...) and with them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcoll/base/clock.h"
#include "tests/lib/rank.h"

enum { ALGORITHMS_MAX = 16, AHEAD_NS = 500000 };	/* AHEAD_NS: all are back by then, mostly */

struct taken {
	double *others, *all;		/* us a call */
	size_t calls, room;
};

static void sleep_until(int64_t ns)
{
	const struct timespec then = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
		;
}

/* Whether "R+R+..." has the rank. */
static bool is_in_list(int rank, const char *list)
{
	const char *at;

	for (at = list; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL)
		if (atoi(at) == rank)
			return true;
	return false;
}

/* One call, and the world agrees on how long it took: us without the late ranks, and of all. */
static void call_once(struct coll_group *world, struct coll_group *by, bool late, double us[2])
{
	const int rank = coll_rank(world);
	double value = rank, sum;
	int64_t start = (int64_t)coll_now() + AHEAD_NS;

	rank_must(world, coll_allreduce(COLL_IN_PLACE, &start, 1, COLL_INT64, COLL_MAX, world));
	sleep_until(start);
	rank_must(by, coll_allreduce(&value, &sum, 1, COLL_DOUBLE, COLL_SUM, by));
	us[1] = ((int64_t)coll_now() - start) * 1e-3;
	us[0] = late ? 0 : us[1];
	rank_must(world, coll_allreduce(COLL_IN_PLACE, us, 2, COLL_DOUBLE, COLL_MAX, world));
}

static void taken_add(struct coll_group *world, struct taken *taken, const double us[2])
{
	if (taken->calls == taken->room) {
		taken->room = taken->room ? 2 * taken->room : 1024;
		taken->others = realloc(taken->others, taken->room * sizeof(double));
		taken->all = realloc(taken->all, taken->room * sizeof(double));
		rank_assert(world, taken->others && taken->all);
	}
	taken->others[taken->calls] = us[0];
	taken->all[taken->calls++] = us[1];
}

static int is_longer(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_summary(const char *of, double *us, size_t calls)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < calls; i++)
		sum += us[i];
	qsort(us, calls, sizeof(*us), is_longer);
	printf(" %s %.1f %.1f %.1f", of, sum / calls, us[calls / 2], us[calls * 99 / 100]);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context), *by[ALGORITHMS_MAX];
	const double seconds = argc > 1 ? atof(argv[1]) : 0;
	const bool late = argc > 2 && is_in_list(coll_rank(world), argv[2]);
	const int algorithms = argc - 3;
	struct taken taken[ALGORITHMS_MAX] = { { .calls = 0 } };
	const int64_t until = (int64_t)coll_now() + (int64_t)(seconds * 1e9);
	double us[2];
	int goes_on = 1, i;

	rank_assert(world, seconds > 0 && algorithms > 0 && algorithms <= ALGORITHMS_MAX);
	for (i = 0; i < algorithms; i++) {
		rank_must(world, coll_group_dup(world, &by[i]));
		rank_must(by[i], coll_group_set(by[i], "allreduce", argv[3 + i]));
		call_once(world, by[i], late, us);	/* connects */
	}
	while (goes_on) {
		for (i = 0; i < algorithms; i++) {
			call_once(world, by[i], late, us);
			taken_add(world, &taken[i], us);
		}
		goes_on = (int64_t)coll_now() < until;
		rank_must(world, coll_bcast(&goes_on, 1, COLL_INT32, 0, world));
	}
	for (i = 0; i < algorithms; i++) {
		if (!coll_rank(world)) {
			printf("%s %zu", argv[3 + i], taken[i].calls);
			print_summary("others", taken[i].others, taken[i].calls);
			print_summary("all", taken[i].all, taken[i].calls);
			printf("\n");
		}
		free(taken[i].others);
		free(taken[i].all);
		coll_group_free(by[i]);
	}
	coll_close(context);
	return 0;
}
