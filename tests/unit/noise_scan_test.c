// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which tasks are looked at, time and again, and which rule is theirs. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/noise/text.h"
#include "node/rules.h"
#include "node/scan.h"

enum {
	ROUNDS_MAX = 100000,	/* looks in which any sweep has ended */
	CHAIN = 200,		/* processes, more than twice the generations */
	GENERATIONS = 64,
};

static bool with_ancestors;

static bool scan_finds(struct node_scan *scan, u32 tid, bool *round)
{
	const struct node_task *task;
	struct node_tasks tasks;
	bool found;

	assert_int_equal(node_scan_look(scan, &tasks, with_ancestors, round), 0);
	task = node_tasks_find(&tasks, tid);
	found = task && !task->beside;
	node_tasks_free(&tasks);
	return found;
}

static pid_t start_sleeper(void)
{
	const pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Looks until a sweep has ended; how often the task was found in it. */
static int finds_in_round(struct node_scan *scan, u32 tid)
{
	bool round = false;
	int found = 0, looks;

	for (looks = 0; !round && looks < ROUNDS_MAX; looks++)
		found += scan_finds(scan, tid, &round);
	assert_true(round);
	return found;
}

static void the_new_are_seen_twice(void **state)
{
	struct node_scan scan = { .begun = false };
	bool round;
	pid_t pid;

	(void)state;
	assert_true(scan_finds(&scan, getpid(), &round));
	assert_true(round);
	pid = start_sleeper();
	assert_true(scan_finds(&scan, pid, &round));
	assert_true(scan_finds(&scan, pid, &round));
	assert_int_equal(scan.gones, 0);
	end_sleeper(pid);
	node_scan_close(&scan);
}

static void of_the_new_those_that_end_are_told(void **state)
{
	struct node_scan scan = { .begun = false };
	bool round, told = false;
	pid_t pid;
	u32 i;

	(void)state;
	scan_finds(&scan, 1, &round);
	pid = start_sleeper();
	assert_true(scan_finds(&scan, pid, &round));
	end_sleeper(pid);
	scan_finds(&scan, 1, &round);
	for (i = 0; i < scan.gones; i++)
		told |= scan.gone[i] == (u32)pid;
	assert_true(told);
	node_scan_close(&scan);
}

static void the_sweep_sees_the_old(void **state)
{
	struct node_scan scan = { .begun = false };
	const pid_t pid = start_sleeper();

	(void)state;
	finds_in_round(&scan, pid);		/* the first look, and those behind it: as new ones */
	finds_in_round(&scan, pid);
	assert_int_equal(finds_in_round(&scan, pid), 1);
	end_sleeper(pid);
	assert_int_equal(finds_in_round(&scan, pid), 0);
	node_scan_close(&scan);
}

static void *thread_of_old(void *data)
{
	const u32 tid = syscall(SYS_gettid);
	struct node_scan *scan = data;
	struct node_tasks tasks;
	const struct node_task *task;
	bool round;

	assert_int_equal(node_scan_look(scan, &tasks, with_ancestors, &round), 0);
	task = node_tasks_find(&tasks, tid);
	assert_non_null(task);
	assert_int_equal(task->pid, getpid());
	/* Its process and its ancestors are there for the rules. */
	assert_non_null(node_tasks_find(&tasks, getpid()));
	assert_true(node_tasks_below(&tasks, task, getppid()));
	node_tasks_free(&tasks);
	return NULL;
}

static void a_new_thread_of_an_old_process_is_seen(void **state)
{
	struct node_scan scan = { .begun = false };
	pthread_t thread;
	bool round;

	(void)state;
	scan_finds(&scan, 1, &round);
	assert_int_equal(pthread_create(&thread, NULL, thread_of_old, &scan), 0);
	pthread_join(thread, NULL);
	node_scan_close(&scan);
}

/* As if the numbers had begun anew: those of the end and of the beginning are looked at. */
static void numbers_begin_anew(void **state)
{
	struct node_scan scan = { .begun = false };
	bool round;
	pid_t pid;

	(void)state;
	scan_finds(&scan, 1, &round);
	pid = start_sleeper();
	scan.last = scan.last + 100000000;	/* above each there is: all tasks are read */
	assert_true(scan_finds(&scan, pid, &round));
	assert_true(round);
	end_sleeper(pid);
	node_scan_close(&scan);
}

/* The kernel gives a number before its task can be seen. */
static void a_number_that_is_hidden_is_looked_at_again(void **state)
{
	struct node_scan scan = { .begun = false };
	bool round, noted = false;
	pid_t pid;
	u32 i;

	(void)state;
	scan_finds(&scan, 1, &round);
	pid = start_sleeper();
	end_sleeper(pid);
	scan_finds(&scan, 1, &round);
	for (i = 0; i < scan.hiddens; i++)
		noted |= scan.hidden[i] == (u32)pid;
	assert_true(noted);
	/* As if one that is there had not been seen. */
	scan.hidden[0] = 1;
	scan.hiddens = 1;
	assert_true(scan_finds(&scan, 1, &round));
	assert_true(scan.youngs > 0);		/* before those that others have started */
	assert_int_equal(scan.young[0], 1);
	node_scan_close(&scan);
}

static void numbers_that_went_around_are_all_looked_at(void **state)
{
	struct node_scan scan = { .begun = false };
	bool round;

	(void)state;
	scan_finds(&scan, 1, &round);
	assert_true(scan.forks > 0);
	scan.forks -= 100000;			/* and the latest number is about the same */
	assert_true(scan_finds(&scan, 1, &round));
	assert_true(round);
	node_scan_close(&scan);
}

/* A chain of `left` more, each the parent of the next; the last writes its number. */
static void sleep_in_chain(u32 left, int to)
{
	pid_t child = 0, self;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; left && !child; left--) {
		child = fork();
		if (!child)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	self = getpid();
	if (child <= 0)
		assert_int_equal(write(to, &self, sizeof(self)), sizeof(self));
	for (;;)
		pause();
}

/* Of those from `first` to `last`. */
static u32 count_beside(struct node_scan *scan, pid_t first, pid_t last)
{
	struct node_tasks tasks;
	bool round;
	u32 i, count = 0;

	assert_int_equal(node_scan_look(scan, &tasks, with_ancestors, &round), 0);
	for (i = 0; i < tasks.count; i++)
		count += tasks.task[i].beside && tasks.task[i].tid >= (u32)first &&
			 tasks.task[i].tid <= (u32)last;
	node_tasks_free(&tasks);
	return count;
}

/* Who makes a long one does not keep the scan busy. */
static void a_chain_of_processes_has_an_end(void **state)
{
	struct node_scan scan = { .begun = false };
	u32 count, looks;
	pid_t last, first;
	bool round;
	int from[2];

	(void)state;
	assert_int_equal(pipe(from), 0);
	first = fork();
	if (!first)
		sleep_in_chain(CHAIN, from[1]);
	assert_int_equal(read(from[0], &last, sizeof(last)), sizeof(last));
	scan_finds(&scan, 1, &round);
	for (looks = 0; looks < 3; looks++)
		scan_finds(&scan, 1, &round);	/* they are old */
	scan.young[0] = last;
	scan.youngs = 1;
	with_ancestors = true;
	count = count_beside(&scan, first, last);
	with_ancestors = false;
	end_sleeper(first);
	/* Those of the last, and of what the sweep may have come to. */
	assert_in_range(count, GENERATIONS / 2, 2 * GENERATIONS);
	node_scan_close(&scan);
	close(from[0]);
	close(from[1]);
}

/* ---- rules --------------------------------------------------------------------- */

static const struct node_rule *rule_of(const char *text, const char *comm, struct node_rules *rules)
{
	struct coll_text_error error;
	struct node_task task = { .tid = 7, .pid = 7 };
	const struct node_tasks tasks = { .task = &task, .count = 1 };

	assert_int_equal(node_rules_parse(text, rules, &error), 0);
	strcpy(task.comm, comm);
	return node_rules_task(rules, &task, &tasks);
}

static void names_match_as_globs(void **state)
{
	static const struct {
		const char *glob, *comm;
		bool matches;
	} cases[] = {
		{ "cron", "cron", true }, { "cron", "crond", false }, { "cron", "cro", false },
		{ "cron*", "crond", true }, { "cron*", "cron", true }, { "cron*", "cran", false },
		{ "*", "", true }, { "c?on", "cron", true }, { "c[pr]on", "cron", true },
		{ "c[pr]on", "con", false }, { "a\\*b", "a*b", true }, { "a\\*b", "axb", false },
	};
	struct node_rules rules;
	char text[80];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), "pin comm=%s", cases[i].glob);
		assert_int_equal(rule_of(text, cases[i].comm, &rules) != NULL, cases[i].matches);
		node_rules_free(&rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_new_are_seen_twice),
		cmocka_unit_test(of_the_new_those_that_end_are_told),
		cmocka_unit_test(the_sweep_sees_the_old),
		cmocka_unit_test(a_new_thread_of_an_old_process_is_seen),
		cmocka_unit_test(numbers_begin_anew),
		cmocka_unit_test(a_number_that_is_hidden_is_looked_at_again),
		cmocka_unit_test(numbers_that_went_around_are_all_looked_at),
		cmocka_unit_test(a_chain_of_processes_has_an_end),
		cmocka_unit_test(names_match_as_globs),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
