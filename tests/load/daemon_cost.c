// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * daemon_cost PROCESSES RATE SECONDS COMMAND...: what a daemon costs beside so many sleeping
 * processes, while RATE others a second come, live for a second and go. The sleepers are named
 * crowd000 to crowd999, in turn. Without processes: PROCESSES is 0.
 *
 * The command runs, gets SETTLE seconds to begin, is watched for SECONDS, and is told to end.
 * Prints a line of name=value: `ppm` of a core (its CPU time by /proc/PID/schedstat), `wakes` a
 * second (times that it was given a CPU), `longest` (ms of CPU in one piece: between two looks
 * of 10 ms at which it did not run), `resident` (KiB), `moved` (sleepers that may use one CPU
 * alone); where THREAD names a kernel thread, `thread_ppm`, that one's CPU time. Exit code 1: the
 * command ended by itself.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 1000, LOOK_MS = 10 };

struct cost {
	uint64_t ran_ns, turns;
};

static pid_t *crowd;
static long crowd_count;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* One that sleeps for so many seconds, and does not outlive this process. */
static pid_t crowd_start(long number, unsigned int seconds)
{
	const pid_t parent = getpid(), pid = fork();
	char name[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(name, sizeof(name), "crowd%03ld", number % NAMES);
	prctl(PR_SET_NAME, name);
	if (getppid() == parent)
		sleep(seconds);
	_exit(0);
}

static bool crowd_gather(long count)
{
	crowd = calloc(count + 1, sizeof(*crowd));
	while (crowd && crowd_count < count) {
		crowd[crowd_count] = crowd_start(crowd_count, 3600);
		if (crowd[crowd_count] < 0) {
			fprintf(stderr, "process %ld of %ld: fork: %s\n", crowd_count + 1, count,
				strerror(errno));
			return false;
		}
		crowd_count++;
	}
	return crowd != NULL;
}

static void crowd_end(void)
{
	long i;

	for (i = 0; i < crowd_count; i++)
		kill(crowd[i], SIGKILL);
	for (i = 0; i < crowd_count; i++)
		waitpid(crowd[i], NULL, 0);
}

static long crowd_moved(void)
{
	long i, moved = 0;
	cpu_set_t may;

	for (i = 0; i < crowd_count; i++)
		moved += !sched_getaffinity(crowd[i], sizeof(may), &may) && CPU_COUNT(&may) == 1;
	return moved;
}

/* ---- the daemon ---------------------------------------------------------------- */

static pid_t daemon_start(char **command)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(command[0], command);
	fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
	_exit(127);
}

static bool daemon_cost(pid_t pid, struct cost *cost)
{
	char path[64];
	FILE *from;
	unsigned long long ran, turns;
	int fields;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	from = fopen(path, "re");
	fields = from ? fscanf(from, "%llu %*u %llu", &ran, &turns) : 0;
	if (from)
		fclose(from);
	*cost = (struct cost){ fields == 2 ? ran : 0, fields == 2 ? turns : 0 };
	return fields == 2;
}

/* The process of that name; 0: there is none. */
static pid_t find_named(const char *name)
{
	char path[64], text[32];
	struct dirent *entry;
	DIR *proc = name ? opendir("/proc") : NULL;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		FILE *from;

		snprintf(path, sizeof(path), "/proc/%d/comm", atoi(entry->d_name));
		from = atoi(entry->d_name) ? fopen(path, "re") : NULL;
		if (from && fgets(text, sizeof(text), from) && !strncmp(text, name, strlen(name)) &&
		    text[strlen(name)] == '\n')
			found = atoi(entry->d_name);
		if (from)
			fclose(from);
	}
	if (proc)
		closedir(proc);
	return found;
}

static long daemon_resident(pid_t pid)
{
	char path[64];
	FILE *from;
	long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	from = fopen(path, "re");
	if (from && fscanf(from, "%*d %ld", &pages) != 1)
		pages = 0;
	if (from)
		fclose(from);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Processes come as often as `rate` says until `now`; those that have gone are waited for. */
static void crowd_change(pid_t daemon, double rate, uint64_t since, uint64_t now, long *came)
{
	const long due = rate * (now - since) / 1e9;

	for (; *came < due; ++*came)
		crowd_start(*came, 1);
	while (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) == 0) {
		siginfo_t ended = { 0 };

		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid ||
		    ended.si_pid == daemon)
			return;
		waitpid(ended.si_pid, NULL, 0);
	}
}

/* False: it has ended. */
static bool watch(pid_t pid, double rate, uint64_t seconds, struct cost *cost, uint64_t *longest)
{
	const uint64_t since = now_ns(), until = since + seconds * 1000000000;
	const struct timespec look = { 0, LOOK_MS * 1000000 };
	struct cost first, before, now;
	uint64_t piece = 0, at;
	long came = 0;

	if (!daemon_cost(pid, &first))
		return false;
	before = first;
	while ((at = now_ns()) < until) {
		crowd_change(pid, rate, since, at, &came);
		nanosleep(&look, NULL);
		if (!daemon_cost(pid, &now))
			return false;
		piece = now.ran_ns > before.ran_ns ? piece + now.ran_ns - before.ran_ns : 0;
		if (piece > *longest)
			*longest = piece;
		before = now;
	}
	*cost = (struct cost){ before.ran_ns - first.ran_ns, before.turns - first.turns };
	return true;
}

int main(int argc, char **argv)
{
	const long processes = argc > 4 ? atol(argv[1]) : -1;
	const double rate = argc > 4 ? atof(argv[2]) : 0;
	const unsigned int seconds = argc > 4 ? atoi(argv[3]) : 0;
	const char *settle = getenv("SETTLE");
	struct cost cost = { 0, 0 }, before, after;
	uint64_t longest = 0;
	long moved, resident;
	bool there, thread_known;
	pid_t pid, thread;

	if (processes < 0 || !seconds) {
		fprintf(stderr, "usage: daemon_cost PROCESSES RATE SECONDS COMMAND...\n");
		return 2;
	}
	if (!crowd_gather(processes))
		return 1;
	pid = daemon_start(argv + 4);
	sleep(settle ? atoi(settle) : 5);
	thread = find_named(getenv("THREAD"));
	thread_known = thread && daemon_cost(thread, &before);
	there = watch(pid, rate, seconds, &cost, &longest);
	thread_known = thread_known && daemon_cost(thread, &after);
	moved = crowd_moved();
	resident = daemon_resident(pid);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	crowd_end();
	printf("processes=%ld rate=%g seconds=%u ppm=%.1f wakes=%.2f longest=%.3f resident=%ld "
	       "moved=%ld", processes, rate, seconds, cost.ran_ns / 1e3 / seconds,
	       (double)cost.turns / seconds, longest / 1e6, resident, moved);
	if (thread_known)
		printf(" thread_ppm=%.1f", (after.ran_ns - before.ran_ns) / 1e3 / seconds);
	printf("\n");
	return !there;
}
