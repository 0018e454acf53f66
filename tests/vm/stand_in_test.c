// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A rank that has called and then does not run: who stands in for it. Of four ranks in two nodes the task
 * of rank 0 is held from before the others call until long after. Where coll.ko's thread has its run, all
 * others have the result meanwhile; where its own task makes progress, they wait until it goes on.
 * tests/vm/run -p brings `coll` along.
 *
 *	stand_in_test				the test
 *	stand_in_test HOLD ALGORITHM		a rank of it
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "node/netlink.h"
#include "tests/lib/rank.h"
#include "uapi/coll_noise.h"
#include "job.h"
#include "vm.h"

enum { HELD = 0, RANKS = 4, WARMUP = 3, TRIES = 5, ITS_CPU = 1 };

static const int64_t ms = 1000000;
static const int64_t ahead = 150, calls_after = 350, lasts = 800;	/* ms */

/* ---- a rank ----------------------------------------------------------------------- */

/* On the clock of all: of rank 0 when it was held, of the others their call. */
struct span {
	int64_t begin, end;
};

static void sleep_until(int64_t ns)
{
	const struct timespec then = { ns / (1000 * ms), ns % (1000 * ms) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
		;
}

/* A real-time task of the injector's gets our CPU. It is the socket's. */
static struct netlink *hold_by_noise(const struct coll_group *world)
{
	const struct coll_noise_model model = { .period = 20000 * ms, .duration = lasts * ms };
	struct netlink *netlink;
	struct nl_msg *message;
	struct timespec now;

	rank_assert(world, !netlink_open(&netlink));
	message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_FIFO);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put_u64(message, COLL_NOISE_A_EPOCH,
		    now.tv_sec * 1000 * ms + now.tv_nsec + ahead * ms);
	if (netlink_ask(netlink, message, NULL, NULL))
		rank_fail(world, "noise: %s", netlink_reason(netlink));
	return netlink;
}

/* In a process of its own: holds the first thread of that process alone, or all of it. */
static void hold(pid_t process, bool stops, int64_t from)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep_until(from);
	if (stops) {
		kill(process, SIGSTOP);
		sleep_until(from + lasts * ms);
		kill(process, SIGCONT);
		_exit(0);
	}
	if (ptrace(PTRACE_SEIZE, process, 0, 0) || ptrace(PTRACE_INTERRUPT, process, 0, 0))
		_exit(1);
	waitpid(process, NULL, __WALL);
	sleep_until(from + lasts * ms);
	_exit(ptrace(PTRACE_DETACH, process, 0, 0) != 0);
}

static pid_t hold_by_process(const struct coll_group *world, bool stops)
{
	const int64_t from = coll_now() + ahead * ms;
	const pid_t parent = getpid(), child = fork();

	rank_assert(world, child >= 0);
	if (!child)
		hold(parent, stops, from);
	return child;
}

/* Starts its call and tests it again and again: the longest time between two tests. */
static struct span call_and_test(struct coll_group *world, const double *in, double *out)
{
	struct span longest = { 0, 0 };
	int64_t last, now;
	struct coll_run *run;
	int done = 0;

	rank_must(world, coll_iallreduce(in, out, 1, COLL_DOUBLE, COLL_SUM, world, &run));
	for (last = coll_now(); !done; last = now) {
		rank_must(world, coll_run_test(&run, &done));
		now = coll_now();
		if (now - last > longest.end - longest.begin)
			longest = (struct span){ last, now };
	}
	return longest;
}

static struct span be_held(struct coll_group *world, const char *how, const double *in, double *out)
{
	struct netlink *netlink = NULL;
	struct span held;
	pid_t child = 0;
	int status = 0;

	if (!strcmp(how, "late")) {	/* before it calls */
		held.begin = coll_now();
		sleep_until(held.begin + lasts * ms);
		held.end = coll_now();
		call_and_test(world, in, out);
		return held;
	}
	if (!strcmp(how, "noise"))
		netlink = hold_by_noise(world);
	else
		child = hold_by_process(world, !strcmp(how, "stop"));
	held = call_and_test(world, in, out);
	if (netlink)
		netlink_close(netlink);
	if (child)
		rank_assert(world, waitpid(child, &status, 0) == child && !status);
	return held;
}

static struct span call(struct coll_group *world, const double *in, double *out)
{
	struct span span;

	sleep_until(coll_now() + calls_after * ms);
	span.begin = coll_now();
	rank_must(world, coll_allreduce(in, out, 1, COLL_DOUBLE, COLL_SUM, world));
	span.end = coll_now();
	return span;
}

/* What the others did while rank 0 was held. NULL: it was not, all the time in which they called. */
static const char *judge(const struct span spans[RANKS])
{
	const struct span held = spans[HELD];
	const int64_t slack = (lasts - calls_after) / 4 * ms;
	int64_t first = INT64_MAX, last = 0;
	int i, waited = 0;

	for (i = 0; i < RANKS; i++) {
		if (i == HELD)
			continue;
		first = first < spans[i].begin ? first : spans[i].begin;
		last = last > spans[i].begin ? last : spans[i].begin;
		waited += spans[i].end > held.end - slack;	/* that is known late */
	}
	if (first < held.begin || last > held.end - 2 * slack)
		return NULL;
	return waited == RANKS - 1 ? "all wait" : waited ? "some wait" : "nobody waits";
}

static const char *try_once(struct coll_group *world, const char *how, struct span spans[RANKS])
{
	const int rank = coll_rank(world);
	const double in = rank + 1;
	struct span span;
	double out = 0;

	rank_must(world, coll_barrier(world));
	span = rank == HELD ? be_held(world, how, &in, &out) : call(world, &in, &out);
	rank_assert(world, out == RANKS * (RANKS + 1) / 2);
	rank_must(world, coll_allgather(&span, spans, 2, COLL_INT64, world));
	return judge(spans);
}

/* Threads of this process: with the one of /dev/coll, where that is the program's. */
static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	while (tasks && (entry = readdir(tasks)))
		count += entry->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return count;
}

static int play_rank(const char *how, const char *algorithm)
{
	const bool is_held = atoi(getenv("COLL_RANK") ?: "") == HELD;
	struct coll_context *context;
	struct span spans[RANKS];
	struct coll_group *world;
	const char *waits = NULL;
	int i;

	vm_run_on(is_held ? ITS_CPU : 0);
	context = rank_open(NULL);
	world = coll_world(context);
	rank_assert(world, coll_ranks(world) == RANKS);
	rank_must(world, coll_group_set(world, "allreduce", algorithm));
	for (i = 0; i < WARMUP; i++) {	/* makes the links */
		const double in = 1;
		double out;

		rank_must(world, coll_allreduce(&in, &out, 1, COLL_DOUBLE, COLL_SUM, world));
	}
	for (i = 0; i < TRIES && !waits; i++)
		waits = try_once(world, how, spans);
	if (is_held) {
		printf("%s%s\n", waits ? waits : "not held while they called",
		       threads() > 1 ? ", a thread of the program" : "");
		for (i = 0; i < RANKS; i++)
			printf("rank %d: %.1f to %.1f ms\n", i, (spans[i].begin - spans[HELD].begin) * 1e-6,
			       (spans[i].end - spans[HELD].begin) * 1e-6);
	}
	coll_close(context);
	return 0;
}

/* ---- the test ------------------------------------------------------------------------ */

static const struct play {
	const char *hold, *progress, *algorithm, *expected;
} plays[] = {
	{ "noise", "kernel", "leader", "nobody waits" },
	{ "noise", "kernel", "ring", "nobody waits" },
	{ "noise", "thread", "leader", "nobody waits" },	/* it is on another CPU */
	{ "noise", "call", "leader", "all wait" },
	{ "noise", "call", "ring", "all wait" },
	{ "noise", "call", "replicas", "nobody waits" },
	{ "debugger", "kernel", "leader", "nobody waits" },
	{ "debugger", "call", "leader", "all wait" },
	{ "stop", "call", "leader", "all wait" },
	{ "stop", "kernel", "leader", NULL },
	{ "late", "kernel", "leader", "all wait" },	/* nobody has its vector */
	{ "late", "kernel", "replicas", "all wait" },
};

static void play(const struct play *play)
{
	const struct job job = {
		.ranks = "4", .memory = "auto",
		.program = { "stand_in_test", play->hold, play->algorithm },
	};
	const char *expected = play->expected;
	const char *said;
	int status;

	setenv("COLL_PROGRESS", play->progress, 1);
	if (strcmp(play->progress, "call"))
		setenv("COLL_PROGRESS_CPUS", "0", 1);
	else
		unsetenv("COLL_PROGRESS_CPUS");
	status = job_run(&job);
	said = job_said("nobody waits") ?: job_said("all wait") ?: job_said("some wait");
	if (!expected)	/* SIGSTOP stops all threads of the program: before Linux 6.10 that is none of them */
		expected = job_said("a thread of the program") ? "all wait" : "nobody waits";
	if (!vm_ok(!status && said && !strncmp(said, expected, strlen(expected)), "%s, progress=%s, %s: %s",
		   play->hold, play->progress, play->algorithm, expected))
		job_show();
	else
		vm_note("rank 0 was held for %s", strstr(said, "rank 0: 0.0 to ") + strlen("rank 0: 0.0 to "));
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 3)
		return play_rank(argv[1], argv[2]);
	if (access("/bin/coll", X_OK)) {
		vm_skip("who stands in", "no coll here");
		return vm_end();
	}
	vm_loopback_up();
	setenv("COLL_LEVELS", "2+", 1);
	for (i = 0; i < sizeof(plays) / sizeof(*plays); i++)
		play(&plays[i]);
	return vm_end();
}
