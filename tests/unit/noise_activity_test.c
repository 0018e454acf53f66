// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What ran between two samples of /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "node/activity.h"
#include "node/limit.h"

enum { BEFORE_NS = 300000000 };

static void spin(uint64_t ns)
{
	const uint64_t end = coll_now() + ns;

	while (coll_now() < end)
		;
}

/* Computes, says so, and takes another name each time that it is told to. */
static pid_t begin_child(int *tell, int *hear)
{
	int in[2], out[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(in) | pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(in[1]);
		prctl(PR_SET_NAME, "first-name");
		spin(BEFORE_NS);
		while (write(out[1], "", 1) == 1 && read(in[0], &byte, 1) == 1)
			prctl(PR_SET_NAME, "second-name");
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	*tell = in[1];
	*hear = out[0];
	assert_int_equal(read(*hear, &byte, 1), 1);
	return pid;
}

/* As kernel threads do. What it took before is not counted, under whatever name. */
static void a_thread_that_takes_another_name_is_the_same(void **state)
{
	struct node_activity *before, *after;
	struct node_capture capture;
	struct node_cpus cpus;
	int tell, hear;
	bool found = false;
	char byte;
	pid_t pid = begin_child(&tell, &hear);
	u32 i;

	(void)state;
	node_cpus_affinity(0, &cpus);
	node_capture_init(&capture);
	before = node_activity_sample(&cpus);
	assert_int_equal(write(tell, "", 1), 1);
	assert_int_equal(read(hear, &byte, 1), 1);
	after = node_activity_sample(&cpus);
	assert_true(before && after);
	assert_int_equal(node_activity_difference(before, after, &capture), 0);
	for (i = 0; i < capture.head.sources; i++) {
		const struct coll_noise_source *source = &capture.source[i];

		if (source->cause != COLL_NOISE_THREAD || (pid_t)source->number != pid)
			continue;
		found = true;
		assert_string_equal(source->name, "second-name");
		assert_true(source->total < BEFORE_NS / 2);
	}
	assert_true(found);
	close(tell);
	close(hear);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	node_activity_free(before);
	node_activity_free(after);
	node_capture_free(&capture);
}

struct ran_child {
	u32 pid;
	u64 ns;
	char name[16];
};

static void note_child(const struct node_ran *ran, void *argument)
{
	struct ran_child *child = argument;

	assert_int_not_equal(ran->pid, getpid());
	if (ran->pid != child->pid)
		return;
	child->ns += ran->ns;
	snprintf(child->name, sizeof(child->name), "%s", ran->name);
}

/* Also one that began meanwhile, and of it alone what it took since. */
static void who_ran_between_two_samples_is_told(void **state)
{
	struct node_activity *before = node_activity_threads(), *after, *last;
	struct ran_child child = { .ns = 0 };
	int tell, hear;
	char byte;

	(void)state;
	child.pid = begin_child(&tell, &hear);
	after = node_activity_threads();
	assert_int_equal(write(tell, "", 1), 1);
	assert_int_equal(read(hear, &byte, 1), 1);
	last = node_activity_threads();
	assert_true(before && after && last);
	node_activity_ran(before, after, note_child, &child);
	assert_string_equal(child.name, "first-name");
	assert_true(child.ns > 0);
	child.ns = 0;
	node_activity_ran(after, last, note_child, &child);
	assert_true(child.ns < BEFORE_NS / 2);
	close(tell);
	close(hear);
	assert_int_equal(waitpid(child.pid, NULL, 0), (pid_t)child.pid);
	node_activity_free(before);
	node_activity_free(after);
	node_activity_free(last);
}

struct came {
	u64 ticks, others;
};

static void note_interrupt(const struct coll_noise_source *source, void *argument)
{
	struct came *came = argument;

	assert_int_not_equal(source->cause, COLL_NOISE_THREAD);
	assert_true(source->times && source->times < 1 << 20 && *source->name);
	if (strstr(source->name, "timer"))
		came->ticks += source->times;
	else
		came->others++;
}

/* A CPU that computes has its tick. */
static void interrupts_that_came_are_told(void **state)
{
	struct node_activity *before, *after;
	struct came came = { 0 };
	struct node_cpus may, one = { .bits = { 0 } };

	(void)state;
	node_cpus_affinity(0, &may);
	node_cpus_add(&one, node_cpus_next(&may, 0));
	assert_int_equal(node_cpus_set_affinity(0, &one), 0);
	before = node_activity_interrupts(&one);
	spin(300000000);
	after = node_activity_interrupts(&one);
	assert_int_equal(node_cpus_set_affinity(0, &may), 0);
	assert_true(before && after);
	node_activity_came(before, after, note_interrupt, &came);
	assert_true(came.ticks >= 15);
	came.ticks = 0;
	node_activity_came(after, after, note_interrupt, &came);
	assert_int_equal(came.ticks, 0);
	node_activity_free(before);
	node_activity_free(after);
}

/* Each level has what those below it have as well, so they are not added up. */
static void the_level_that_was_throttled_most_is_told(void **state)
{
	static const struct node_limit before = { .levels = 3, .level = {
		{ 900, 1, "/a/b" }, { 7000, 2, "/a" }, { 50, 3, "/" },
	} }, now = { .levels = 4, .level = {
		{ 1000, 1, "/a/b" }, { 7300, 2, "/a" }, { 60, 3, "/" }, { 5000, 4, "/new" },
	} };
	const struct node_limit_level *most;
	struct node_limit own;
	u64 ns;

	(void)state;
	most = node_limit_most(&before, &now, &ns);
	assert_non_null(most);
	assert_string_equal(most->cgroup, "/a");
	assert_int_equal(ns, 300);
	assert_true(node_limit_has(&before, most));
	assert_false(node_limit_has(&before, &now.level[3]));
	assert_null(node_limit_most(&now, &now, &ns));
	assert_int_equal(ns, 0);
	node_limit_read(getpid(), &own);
	assert_null(node_limit_most(&own, &own, &ns));
}

/* As where a CPU goes offline meanwhile, or a counter of 32 bits begins anew. */
static void what_has_become_less_is_not_counted(void **state)
{
	struct node_activity *before, *after;
	struct node_cpus cpus, one = { .bits = { 0 } };
	struct node_capture capture;
	u32 i;

	(void)state;
	node_cpus_affinity(0, &cpus);
	if (node_cpus_count(&cpus) < 2)
		skip();
	node_cpus_add(&one, node_cpus_next(&cpus, 0));
	node_capture_init(&capture);
	before = node_activity_sample(&cpus);
	after = node_activity_sample(&one);
	assert_true(before && after);
	assert_int_equal(node_activity_difference(before, after, &capture), 0);
	for (i = 0; i < capture.head.sources; i++) {
		assert_true(capture.source[i].times < 1ull << 62);
		assert_true(capture.source[i].total < 1ull << 62);
	}
	node_capture_free(&capture);
	node_activity_free(before);
	node_activity_free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_ran_between_two_samples_is_told),
		cmocka_unit_test(interrupts_that_came_are_told),
		cmocka_unit_test(the_level_that_was_throttled_most_is_told),
		cmocka_unit_test(a_thread_that_takes_another_name_is_the_same),
		cmocka_unit_test(what_has_become_less_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
