// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What an allreduce takes while the noise of its job changes: quiet, messages of rank 1 are late, a
 * daemon runs, quiet. Three copies of the world are called in turn, so all meet the same: the plain
 * butterfly, T = 2, and what is chosen where no option is set. For make demo.
 *
 *	changing_noise SECONDS DAEMON
 *		SECONDS of each phase. While the third one runs there is a file DAEMON: whoever waits for
 *		it runs the daemon as long as it is there. Rank 0 prints CSV: the time, the phase, the
 *		algorithm's name, calls, us a call, and what would be chosen.
 *	changing_noise daemon NAME DAEMON
 *		the daemon: for 10 ms of each 20 it computes
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { WAYS = 3, PHASES = 4, BLOCK = 16, LONGEST_S = 600 };

static const char *const phases[PHASES] = { "quiet", "link-noise", "daemon", "quiet-again" };
#define LATE	"link:poisson:rate=100,duration=3ms,model=occupancy,rank=1"

struct way {
	const char *name, *algorithm;
	struct coll_group *group;
	double seconds;
	int calls;
};

/* It ends with the file, and soon in any case. */
static int run_daemon(const char *name, const char *file)
{
	const double end = rank_seconds() + LONGEST_S;

	prctl(PR_SET_NAME, name);
	while (rank_seconds() < end && !access(file, F_OK)) {
		const double until = rank_seconds() + 0.01;

		while (rank_seconds() < until)
			;
		usleep(10000);
	}
	return 0;
}

static void block_of(struct way *way)
{
	const int ranks = coll_ranks(way->group);
	const double began = rank_seconds();
	int call;

	for (call = 0; call < BLOCK; call++) {
		double value = coll_rank(way->group);

		rank_must(way->group, coll_allreduce(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM,
						     way->group));
		rank_assert(way->group, value == ranks * (ranks - 1) / 2);
	}
	way->seconds += rank_seconds() - began;
	way->calls += BLOCK;
}

/* Of what the library would take now: up to the first blank or comma. */
static void print_choice(struct coll_group *group)
{
	struct coll_run *run;
	double value = 0;
	const char *why;

	rank_must(group, coll_allreduce_init(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM, group, &run));
	why = strstr(coll_run_explain(run), ": ");
	if (!coll_rank(group))
		printf("%.*s\n", why ? (int)strcspn(why + 2, " ,") : 1, why ? why + 2 : "?");
	coll_run_free(&run);
}

static void print_row(struct way *way, double time, const char *phase)
{
	if (!coll_rank(way->group))
		printf("%.2f,%s,%s,%d,%.1f,", time, phase, way->name, way->calls,
		       1e6 * way->seconds / way->calls);
	print_choice(way->group);
	fflush(stdout);
	way->seconds = way->calls = 0;
}

/* By rank 0's clock, for all. */
static bool is_over(struct coll_group *world, double end)
{
	int over = rank_seconds() > end;

	rank_must(world, coll_bcast(&over, 1, COLL_INT32, 0, world));
	return over;
}

/* For half a second each way has some of the calls. */
static void part_of(struct coll_group *world, struct way *way, double began, const char *phase)
{
	const double end = rank_seconds() + 0.5;
	int w;

	do {
		for (w = 0; w < WAYS; w++) {
			rank_must(world, coll_barrier(world));
			block_of(&way[w]);
		}
	} while (!is_over(world, end));
	for (w = 0; w < WAYS; w++)
		print_row(&way[w], rank_seconds() - began, phase);
}

static void begin_phase(struct coll_group *world, struct way *way, int phase, const char *file)
{
	int w;

	for (w = 0; w < WAYS; w++)
		rank_must(world, coll_group_set(way[w].group, "inject", phase == 1 ? LATE : "off"));
	if (coll_rank(world))
		return;
	if (phase == 2) {
		FILE *daemon = fopen(file, "w");

		if (!daemon || fclose(daemon))
			rank_fail(world, "%s: %s", file, strerror(errno));
	} else {
		unlink(file);
	}
}

int main(int argc, char **argv)
{
	struct way way[WAYS] = { { .name = "plain", .algorithm = "butterfly" },
				 { .name = "T=2", .algorithm = "butterfly-redundant:T=2" },
				 { .name = "auto", .algorithm = "auto" } };
	struct coll_context *context;
	struct coll_group *world;
	double began, end;
	int w, phase;

	if (argc == 4 && !strcmp(argv[1], "daemon"))
		return run_daemon(argv[2], argv[3]);
	if (argc != 3) {
		fprintf(stderr, "usage: changing_noise SECONDS FILE\n");
		return 2;
	}
	context = rank_open("inject=" LATE);
	world = coll_world(context);
	for (w = 0; w < WAYS; w++) {
		rank_must(world, coll_group_dup(world, &way[w].group));
		rank_must(way[w].group, coll_group_set(way[w].group, "allreduce", way[w].algorithm));
	}
	rank_must(world, coll_group_set(world, "inject", "off"));
	began = rank_seconds();
	for (phase = 0; phase < PHASES; phase++) {
		begin_phase(world, way, phase, argv[2]);
		end = rank_seconds() + atof(argv[1]);
		do {
			part_of(world, way, began, phases[phase]);
		} while (!is_over(world, end));
	}
	coll_close(context);
	return 0;
}
