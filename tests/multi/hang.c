// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * hang WHAT: ranks of which the last one, mostly, keeps the others waiting, for coll show:
 *
 *	mismatch	rank 0 gathers where the others broadcast, so that no message flows
 *	loop		the last rank computes for ever
 *	stop		it stops itself by a signal
 *	never		it sleeps instead of calling
 *	slow		it calls, 8 s late
 *	function	rank 0 reduces by a function that does not return
 *	left		the same, and the others have left: they need nothing of it
 *	idle		rank 0 stops itself in no call, and the others have not called either
 *	ahead		it starts a run, and computes instead of waiting for it
 *	full		rank 0 sends more to it than its host takes
 *	late		it calls again and again, each time 0.4 s after the others
 *	deadlock	it calls the collectives of two groups in the other order
 *	thread		a debugger holds its thread of progress
 *	kernel		a task of higher priority has the CPU of its thread in coll.ko:
 *			that of the rank's number (COLL_PROGRESS=kernel COLL_PROGRESS_CPUS=0-1)
 *	circuit		all call again and again, with the circuits of colld
 *	path		all call again and again
 *	groups N	N groups have a run before it computes for ever
 *	child		its child keeps its descriptors, and sleeps; it computes for ever
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { BIG = 32 << 20, CALLS = 3, STARVED_CALLS = 40 };

static struct coll_group *world;
static int rank, last;

static void allreduce(struct coll_group *group)
{
	int in = rank, out;

	rank_must(group, coll_allreduce(&in, &out, 1, COLL_INT32, COLL_SUM, group));
}

static void spin(void)
{
	volatile unsigned long turns = 0;

	for (;;)
		turns++;
}

static void ahead(void);

/* All wait for the last rank, after some calls that all have made. */
static void without_last(void (*instead)(void))
{
	int i;

	for (i = 0; i < CALLS; i++)
		allreduce(world);
	if (instead == ahead)
		rank_must(world, coll_group_set(world, "allreduce", "ring"));
	if (rank == last)
		instead();
	else if (instead == ahead)
		usleep(300000);	/* it begins before their messages are there: with these it might need no further call */
	allreduce(world);
}

static void stop(void)
{
	raise(SIGSTOP);
}

static void never(void)
{
	sleep(1000);
}

static void slow(void)
{
	sleep(8);
}

/* In a ring the others need what it would receive and send on. */
static void ahead(void)
{
	struct coll_run *run;
	int in = rank, out;

	rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT32, COLL_SUM, world, &run));
	spin();
}

/* The child is as one of a killed rank: it has all descriptors. */
static void child(void)
{
	if (!fork())
		never();
	spin();
}

static void mismatch(void)
{
	int data = rank, all[64];

	rank_must(world, coll_group_set(world, "gather", "linear"));
	rank_must(world, coll_group_set(world, "bcast", "linear"));
	if (rank)
		rank_must(world, coll_bcast(&data, 1, COLL_INT32, 0, world));
	else
		rank_must(world, coll_gather(&data, all, 1, COLL_INT32, 0, world));
}

static void full(void)
{
	void *data = calloc(1, BIG);

	rank_must(world, coll_group_set(world, "bcast", "linear"));
	allreduce(world);
	if (rank == last)
		spin();
	rank_must(world, coll_bcast(data, BIG, COLL_UINT8, 0, world));
	allreduce(world);
}

static void deadlock(void)
{
	struct coll_group *first, *second;

	rank_must(world, coll_group_split(world, 0, rank, &first));
	rank_must(world, coll_group_split(world, 0, rank, &second));
	allreduce(first);
	allreduce(second);
	allreduce(rank == last ? second : first);
	allreduce(rank == last ? first : second);
}

static void stuck_function(void *result, const void *left, const void *right, size_t count,
			   enum coll_type type, void *argument)
{
	(void)left;
	(void)right;
	(void)count;
	(void)type;
	(void)argument;
	if (!rank)
		spin();
	*(int *)result = 0;
}

static void function(struct coll_context *context)
{
	enum coll_reduction op;
	int in = rank, out;

	rank_must(world, coll_op_create(context, stuck_function, NULL, 1, &op));
	rank_must(world, coll_allreduce(&in, &out, 1, COLL_INT32, op, world));
	allreduce(world);	/* where the others wait: the first may need nothing of a rank that reduces */
}

/* The root alone needs the others. */
static void left(struct coll_context *context)
{
	enum coll_reduction op;
	int in = rank, out;

	rank_must(world, coll_op_create(context, stuck_function, NULL, 1, &op));
	rank_must(world, coll_group_set(world, "reduce", "linear"));
	rank_must(world, coll_reduce(&in, &out, 1, COLL_INT32, op, 0, world));
}

static void idle(void)
{
	allreduce(world);
	if (!rank)
		stop();
	never();
}

/* A thread of this process that is not the first. */
static pid_t other_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t tid = 0;

	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid())
			tid = atoi(entry->d_name);
	closedir(tasks);
	return tid;
}

static void hold_thread(void)
{
	const pid_t tid = other_thread();
	int ready[2];
	char byte;

	if (pipe(ready))
		exit(2);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "debugger");
		if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
			perror("ptrace");
		waitpid(tid, NULL, __WALL);
		if (write(ready[1], "", 1) == 1)
			never();
		exit(2);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(2);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static void take_cpu(void)
{
	const struct sched_param most = { .sched_priority = 90 };
	int ready[2];
	char byte;

	if (pipe(ready))
		exit(2);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "hog");
		alarm(300);
		run_on(rank);
		if (sched_setscheduler(0, SCHED_FIFO, &most))
			perror("sched_setscheduler");
		if (write(ready[1], "", 1) == 1)
			spin();
		exit(2);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(2);
}

/*
 * From Linux 6.12 on tasks without real time get 50 ms of a second nevertheless: so there are many
 * calls, with a pause after each.
 */
static void starved(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		allreduce(world);
	if (rank == last)
		take_cpu();
	for (i = 0; i < STARVED_CALLS; i++) {
		allreduce(world);
		usleep(100000);
	}
}

static void groups(int count)
{
	struct coll_group *group;
	int i;

	for (i = 0; i < count; i++) {
		rank_must(world, coll_group_split(world, 0, rank, &group));
		allreduce(group);
		if (i % 2)
			coll_group_free(group);
	}
	without_last(spin);
}

static void again_and_again(void)
{
	for (;;) {
		allreduce(world);
		usleep(1000);
	}
}

static void late(void)
{
	for (;;) {
		if (rank == last)
			usleep(400000);
		allreduce(world);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct coll_context *context = rank_open(!strcmp(what, "thread") ? "progress=thread" : NULL);

	if (!strcmp(what, "kernel"))
		run_on(0);	/* only the threads in the kernel are elsewhere */
	world = coll_world(context);
	rank = coll_rank(world);
	last = coll_ranks(world) - 1;
	if (!strcmp(what, "mismatch"))
		mismatch();
	else if (!strcmp(what, "loop"))
		without_last(spin);
	else if (!strcmp(what, "stop"))
		without_last(stop);
	else if (!strcmp(what, "never"))
		without_last(never);
	else if (!strcmp(what, "slow"))
		without_last(slow);
	else if (!strcmp(what, "ahead"))
		without_last(ahead);
	else if (!strcmp(what, "child"))
		without_last(child);
	else if (!strcmp(what, "function"))
		function(context);
	else if (!strcmp(what, "left"))
		left(context);
	else if (!strcmp(what, "idle"))
		idle();
	else if (!strcmp(what, "full"))
		full();
	else if (!strcmp(what, "late"))
		late();
	else if (!strcmp(what, "deadlock"))
		deadlock();
	else if (!strcmp(what, "thread"))
		without_last(hold_thread);
	else if (!strcmp(what, "kernel"))
		starved();
	else if (!strcmp(what, "groups"))
		groups(argc > 2 ? atoi(argv[2]) : 100);
	else
		again_and_again();
	coll_close(context);
	printf("done\n");
	return 0;
}
