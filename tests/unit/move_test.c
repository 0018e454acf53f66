// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A task that does not leave its CPU is given up after a while, and has what it had. Setting a task's CPUs is the test's
 * own: it waits as the kernel does, until the task has the CPU that it is on.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/move.c"

enum { TARGET = 5000, OTHER = 6000 };	/* CPUs that no machine here has */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct node_cpus may;
	bool stays;		/* it does not leave its CPU */
	u32 cpu;
	int error;
	u32 waits;
} task = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

void node_cpus_add(struct node_cpus *cpus, u32 cpu)
{
	cpus->bits[cpu / 64] |= 1ull << cpu % 64;
}

bool node_cpus_has(const struct node_cpus *cpus, u32 cpu)
{
	return cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

int node_cpus_affinity(int number, struct node_cpus *cpus)
{
	(void)number;
	*cpus = task.may;
	return 0;
}

int node_cpus_set_affinity(int number, const struct node_cpus *cpus)
{
	(void)number;
	pthread_mutex_lock(&task.lock);
	if (!task.error) {
		task.may = *cpus;
		pthread_cond_broadcast(&task.changed);
		task.waits += task.stays && !node_cpus_has(&task.may, task.cpu);
		while (task.stays && !node_cpus_has(&task.may, task.cpu))
			pthread_cond_wait(&task.changed, &task.lock);
	}
	pthread_mutex_unlock(&task.lock);
	return task.error;
}

/* ---- a child that sleeps ------------------------------------------------------------ */

static pid_t child;

/* It stays on the CPU that it is on then. */
static int child_stay(void)
{
	cpu_set_t may, one;
	int cpu = 0;

	if (sched_getaffinity(child, sizeof(may), &may))
		return -1;
	while (!CPU_ISSET(cpu, &may))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(child, sizeof(one), &one);
}

static int begin(void **state)
{
	(void)state;
	child = fork();
	if (!child)
		for (;;)
			pause();
	if (child < 0 || child_stay())
		return -1;
	memset(&task.may, 0, sizeof(task.may));
	task.stays = false;
	task.error = 0;
	task.waits = 0;
	assert_true(move_cpu_of(child, &task.cpu));
	return 0;
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) != child;
}

static struct node_cpus only(u32 cpu)
{
	struct node_cpus cpus = { 0 };

	node_cpus_add(&cpus, cpu);
	return cpus;
}

static void moves(void **state)
{
	const struct node_cpus target = only(TARGET);

	(void)state;
	assert_int_equal(node_move_task(child, &target), 0);
	assert_memory_equal(&task.may, &target, sizeof(target));
	task.error = -EINVAL;
	assert_int_equal(node_move_task(child, &target), -EINVAL);
}

static void is_given_up(void **state)
{
	const struct node_cpus target = only(TARGET);
	struct node_cpus had = only(OTHER);

	(void)state;
	node_cpus_add(&had, task.cpu);
	task.may = had;
	task.stays = true;
	assert_int_equal(node_move_task(child, &target), -EAGAIN);
	assert_memory_equal(&task.may, &had, sizeof(had));
	assert_int_equal(task.waits, 1);
}

/* What it had is without the CPU that it does not leave: that is set, and nobody waits. */
static void is_given_up_where_it_may_not_be(void **state)
{
	const struct node_cpus target = only(TARGET), here = only(task.cpu);

	(void)state;
	task.may = only(OTHER);
	task.stays = true;
	assert_int_equal(node_move_task(child, &target), -EAGAIN);
	assert_memory_equal(&task.may, &here, sizeof(here));
	assert_int_equal(task.waits, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(moves, begin, end),
		cmocka_unit_test_setup_teardown(is_given_up, begin, end),
		cmocka_unit_test_setup_teardown(is_given_up_where_it_may_not_be, begin, end),
	};

	alarm(30);	/* who waits without an end is ended */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
