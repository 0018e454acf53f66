// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Who changes a task's CPUs waits in the kernel, without an end and deaf to signals, until it has left those that it lost.
 * One that may not be moved just now (it holds a lock of a kernel with PREEMPT_RT) leaves when it gets CPU time: where a
 * thread of higher priority keeps the CPU to itself, that may be never. So a thread waits. Who gives the task the CPU that it
 * is on ends that wait.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "move.h"
#include "small_file.h"

enum { WAIT_NS = 100000000, STACK_BYTES = 128 << 10, STAT_CPU = 39 };

struct move {
	int task, status;
	struct node_cpus cpus;
};

static void *move_wait(void *data)
{
	struct move *move = data;

	move->status = node_cpus_set_affinity(move->task, &move->cpus);
	return NULL;
}

/* Signals are for the threads that the program knows of. */
static int move_begin(pthread_t *thread, struct move *move)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(thread, &attributes, move_wait, move);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

/* The CPU that the task is on, or was last. false: it has ended. */
static bool move_cpu_of(int task, u32 *cpu)
{
	char path[40], text[1024], *at;
	int field;

	snprintf(path, sizeof(path), "/proc/%d/stat", task);
	if (!node_read_small(path, text, sizeof(text)))
		return false;
	at = strrchr(text, ')');	/* behind the name, which is the second */
	for (field = 2; at && field < STAT_CPU; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%u", cpu) == 1;
}

static void move_give_up(int task, const struct node_cpus *had)
{
	struct node_cpus one = { 0 };
	u32 cpu;

	if (!move_cpu_of(task, &cpu) || cpu >= NODE_CPUS_MAX)
		return;
	node_cpus_add(&one, cpu);
	node_cpus_set_affinity(task, &one);
	if (node_cpus_has(had, cpu))
		node_cpus_set_affinity(task, had);
}

static struct timespec move_deadline(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}

int node_move_task(int task, const struct node_cpus *cpus)
{
	struct move move = { .task = task, .cpus = *cpus };
	struct node_cpus had;
	struct timespec until;
	pthread_t thread;
	bool given_up = false;
	const int status = node_cpus_affinity(task, &had);

	if (status)
		return status;
	if (move_begin(&thread, &move))
		return node_cpus_set_affinity(task, cpus);
	until = move_deadline();
	while (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT) {
		move_give_up(task, &had);
		given_up = true;
		until = move_deadline();
	}
	return given_up ? -EAGAIN : move.status;
}
