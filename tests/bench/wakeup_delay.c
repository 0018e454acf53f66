// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * wakeup_delay PROCESSES SECONDS: all processes sleep for 2 ms repeatedly; prints the delay of
 * each wake-up, in microseconds, one per line. Each process has a core of its own if there are
 * enough, as ranks do.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLEEP_NS = 2000000 };

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void sleep_until(long long until)
{
	const struct timespec time = { until / 1000000000, until % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

static void one(int process, int processes, double seconds)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const long long end = now() + seconds * 1e9;
	cpu_set_t cpu;

	setvbuf(stdout, NULL, _IOLBF, 0);	/* lines of several processes stay whole */
	if (processes <= cores) {
		CPU_ZERO(&cpu);
		CPU_SET(process, &cpu);
		sched_setaffinity(0, sizeof(cpu), &cpu);
	}
	while (now() < end) {
		const long long until = now() + SLEEP_NS;

		sleep_until(until);
		printf("%.3f\n", (now() - until) / 1e3);
	}
}

int main(int argc, char **argv)
{
	const int processes = argc == 3 ? atoi(argv[1]) : 0;
	int i;

	if (processes < 1) {
		fprintf(stderr, "usage: wakeup_delay PROCESSES SECONDS\n");
		return 2;
	}
	for (i = 0; i < processes; i++)
		if (!fork()) {
			one(i, processes, atof(argv[2]));
			return 0;
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
