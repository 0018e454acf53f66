// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * report_cause CAUSE RANK SECONDS [FILE]: a job of allreduces, of which one rank is kept for a known
 * cause; for coll report. CAUSE, of the rank before each call:
 *	none, busy	nothing: all ranks sleep, or compute, for a short time
 *	asleep, work	it sleeps, or computes, for longer
 *	alternate	... before every other call
 *	disk		it writes to FILE and waits for the disk
 *	fixed		it has so much work to do, in steps, as others have time to sleep: what takes the CPU
 *			in the name of the rank makes it longer, as interrupts do
 *	limit		it has put itself into the cgroup whose file of processes is FILE, and is busy
 *	pid		it has written its pid into FILE
 *	outside		all compute, without a call, as long as there is FILE and that rank sees it
 *
 * report_cause burn NAME SECONDS [PERCENT]: no rank, but a program of this name that computes, for so
 * much of the time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { USUAL_US = 2000, LONG_US = 20000, FIXED_US = 10000, WRITTEN = 1 << 20 };

static double seconds_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* By the clock of the CPU that it gets: a busy rank has so much to do however long it takes. */
static void compute_for(double us)
{
	const double until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + us / 1e6;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

/* Always the same, whatever the clock of the CPU says. */
static void work_steps(unsigned long steps)
{
	static volatile unsigned long sum;
	unsigned long i;

	for (i = 0; i < steps; i++)
		sum += i;
}

/* How many steps take so long with nothing else on the CPU: the least time of many short tries, between interrupts. */
static unsigned long steps_of(double us)
{
	enum { STEPS = 20000, TRIES = 2000 };
	double least = 1;
	int i;

	for (i = 0; i < TRIES; i++) {
		const double began = seconds_of(CLOCK_THREAD_CPUTIME_ID);
		double took;

		work_steps(STEPS);
		took = seconds_of(CLOCK_THREAD_CPUTIME_ID) - began;
		least = took < least ? took : least;
	}
	return least > 0 ? us / 1e6 * STEPS / least : STEPS;
}

static int burn_cpu(const char *name, double seconds, int percent)
{
	const double until = seconds_of(CLOCK_MONOTONIC) + seconds;

	prctl(PR_SET_NAME, name);
	while (seconds_of(CLOCK_MONOTONIC) < until) {
		compute_for(1000.0 * percent);
		if (percent < 100)
			usleep(1000 * (100 - percent));
	}
	return 0;
}

static void compute_while(const char *file)
{
	while (!access(file, F_OK))
		compute_for(USUAL_US);
}

static void tell_pid(const char *path)
{
	FILE *to = fopen(path, "w");

	if (!to || fprintf(to, "%d\n", getpid()) < 0 || fclose(to)) {
		perror(path);
		exit(1);
	}
}

static void write_through(const char *path)
{
	static const char zeros[WRITTEN];
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, zeros, sizeof(zeros)) != sizeof(zeros) || fsync(fd) || close(fd)) {
		perror(path);
		exit(1);
	}
}

static void keep_rank(const char *cause, int call, const char *file)
{
	if (!strcmp(cause, "asleep") || (!strcmp(cause, "alternate") && call % 2))
		usleep(LONG_US);
	if (!strcmp(cause, "work"))
		compute_for(LONG_US);
	if (!strcmp(cause, "disk"))
		write_through(file);
}

int main(int argc, char **argv)
{
	const char *cause = argc > 3 ? argv[1] : "none", *file = argc > 4 ? argv[4] : NULL;
	const double seconds = argc > 3 ? atof(argv[3]) : 1;
	const int kept = argc > 3 ? atoi(argv[2]) : -1;
	const int outside = !strcmp(cause, "outside");
	const unsigned long steps = strcmp(cause, "fixed") ? 0 : steps_of(FIXED_US);
	const int busy = !strcmp(cause, "busy") || !strcmp(cause, "limit") || outside;
	struct coll_context *context;
	struct coll_group *world;
	int call, mine, all = 0;
	double until;

	if (!strcmp(cause, "burn"))
		return burn_cpu(argv[2], seconds, argc > 4 ? atoi(argv[4]) : 100);
	context = rank_open(NULL);
	world = coll_world(context);
	if (coll_rank(world) == kept && (!strcmp(cause, "limit") || !strcmp(cause, "pid")))
		tell_pid(file);
	until = seconds_of(CLOCK_MONOTONIC) + seconds;
	for (call = 0; all != 2; call++) {
		if (all)
			compute_while(file);
		if (busy)
			compute_for(USUAL_US);
		else if (steps && coll_rank(world) == kept)
			work_steps(steps);
		else
			usleep(steps ? FIXED_US : USUAL_US);
		if (coll_rank(world) == kept)
			keep_rank(cause, call, file);
		mine = seconds_of(CLOCK_MONOTONIC) > until ? 2 :
		       outside && coll_rank(world) == kept && !access(file, F_OK);
		rank_must(world, coll_allreduce(&mine, &all, 1, COLL_INT32, COLL_MAX, world));
	}
	coll_close(context);
	return 0;
}
