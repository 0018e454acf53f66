// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * late_rank [-d MS [-r RATE | -a MS]] SECONDS LATE ALGORITHM ...: allreduce of 8 bytes by each algorithm
 * in turn, one call each, for so long. All ranks begin a call at an agreed time, so they must share a clock. Rank 0
 * prints "ALGORITHM CALLS others MEAN MEDIAN P99 all MEAN MEDIAN P99": us from there until the last rank has
 * the result, without ranks LATE (R+R+...) and with them.
 *
 *	-d	hold the tasks of ranks LATE for so long: they alone, not what else makes progress for them ...
 *	-r	... so many times a second, at random (Poisson)
 *	-a	... so long after the beginning of each call
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "tests/lib/rank.h"

enum { ALGORITHMS_MAX = 16, GAPS = 4096, WARMUP = 3 };

static const int64_t second = 1000000000;
static int64_t ahead = 500000;	/* ns from what ranks propose to the beginning of a call: all are back by then, mostly */

struct taken {
	double *others, *all;		/* us a call */
	size_t calls, room;
};

static void sleep_until(int64_t ns)
{
	const struct timespec then = { ns / second, ns % second };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
		;
}

/* ---- tasks that are held: a signal's handler sleeps ---------------------------------- */

static struct {
	int64_t lasts, after;		/* ns; after: -1, at random */
	int64_t gap[GAPS];		/* between the beginnings, at random */
	size_t next;
	timer_t timer;
} hold;

/* Until then the task does what it did. 0: from now on, whatever comes. */
static void hold_from(int64_t ns)
{
	const struct itimerspec at = { .it_value = { ns / second, ns % second } };

	timer_settime(hold.timer, TIMER_ABSTIME, &at, NULL);
}

static void be_held(int signal)
{
	const int64_t begins = coll_now();
	const int saved = errno;

	(void)signal;
	sleep_until(begins + hold.lasts);
	if (hold.after < 0)
		hold_from(begins + hold.gap[hold.next++ % GAPS]);
	errno = saved;
}

/* This thread alone. */
static bool hold_this_task(double rate)
{
	struct sigaction action = { .sa_handler = be_held, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	size_t i;

	event._sigev_un._tid = gettid();
	if (sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &hold.timer))
		return false;
	if (hold.after >= 0)
		return true;
	for (i = 0; i < GAPS; i++)
		hold.gap[i] = -log(1 - drand48()) / rate * second;
	hold_from(coll_now() + hold.gap[GAPS - 1]);
	return true;
}

/* ---- calls --------------------------------------------------------------------------- */

/* Whether "R+R+..." has the rank. */
static bool is_in_list(int rank, const char *list)
{
	const char *at;

	for (at = list; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL)
		if (atoi(at) == rank)
			return true;
	return false;
}

/*
 * One call, and the world agrees on how long it took: us without the late ranks, and of all. Returns how late
 * this rank was for the beginning, ns; negative: it waited for it.
 */
static int64_t call_once(struct coll_group *world, struct coll_group *by, bool late, double us[2])
{
	const int rank = coll_rank(world);
	double value = rank, sum;
	int64_t was_late, start = (int64_t)coll_now() + ahead;

	rank_must(world, coll_allreduce(COLL_IN_PLACE, &start, 1, COLL_INT64, COLL_MAX, world));
	was_late = (int64_t)coll_now() - start;
	sleep_until(start);
	if (late && hold.lasts && hold.after >= 0)
		hold_from(start + hold.after);
	rank_must(by, coll_allreduce(&value, &sum, 1, COLL_DOUBLE, COLL_SUM, by));
	us[1] = ((int64_t)coll_now() - start) * 1e-3;
	us[0] = late ? 0 : us[1];
	if (late && hold.lasts && hold.after >= 0)
		hold_from(0);
	rank_must(world, coll_allreduce(COLL_IN_PLACE, us, 2, COLL_DOUBLE, COLL_MAX, world));
	return was_late;
}

/* Makes the links. Over slow ones the agreement takes as long as a call: then all begin later. */
static void warm_up(struct coll_group *world, struct coll_group **by, int algorithms)
{
	int64_t was_late, least = INT64_MAX;
	double us[2];
	int i;

	for (i = 0; i < WARMUP * algorithms; i++) {
		was_late = call_once(world, by[i % algorithms], false, us);
		rank_must(world, coll_allreduce(COLL_IN_PLACE, &was_late, 1, COLL_INT64, COLL_MAX, world));
		least = was_late < least ? was_late : least;
	}
	if (least > 0)
		ahead += least + least / 4;
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

/* Options; argv then begins with what comes after them. False: they are wrong. */
static bool read_options(int *argc, char ***argv, double *rate)
{
	double held_ms = 0, after_ms = -1;
	int option;

	*rate = 0;
	while ((option = getopt(*argc, *argv, "+d:r:a:")) != -1)
		switch (option) {
		case 'd':
			held_ms = atof(optarg);
			break;
		case 'r':
			*rate = atof(optarg);
			break;
		case 'a':
			after_ms = atof(optarg);
			break;
		default:
			return false;
		}
	*argc -= optind;
	*argv += optind;
	hold.lasts = held_ms * 1e6;
	hold.after = after_ms < 0 ? -1 : after_ms * 1e6;
	return held_ms > 0 ? (*rate > 0) != (after_ms >= 0) : !*rate && after_ms < 0;
}

int main(int argc, char **argv)
{
	double rate, seconds, us[2];
	const bool good = read_options(&argc, &argv, &rate) && argc > 2 &&
			  argc - 2 <= ALGORITHMS_MAX && (seconds = atof(argv[0])) > 0;
	const int algorithms = argc - 2;
	struct coll_group *world, *by[ALGORITHMS_MAX];
	struct taken taken[ALGORITHMS_MAX] = { { .calls = 0 } };
	struct coll_context *context;
	int goes_on = 1, i;
	int64_t until;
	bool late;

	if (!good) {
		fprintf(stderr, "usage: late_rank [-d MS [-r RATE | -a MS]] SECONDS LATE ALGORITHM ...\n");
		return 2;
	}
	context = rank_open(NULL);
	world = coll_world(context);
	late = is_in_list(coll_rank(world), argv[1]);
	srand48(coll_rank(world) + 1);
	for (i = 0; i < algorithms; i++) {
		rank_must(world, coll_group_dup(world, &by[i]));
		rank_must(by[i], coll_group_set(by[i], "allreduce", argv[2 + i]));
	}
	warm_up(world, by, algorithms);
	rank_assert(world, !late || !hold.lasts || hold_this_task(rate));
	until = (int64_t)coll_now() + (int64_t)(seconds * 1e9);
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
			printf("%s %zu", argv[2 + i], taken[i].calls);
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
