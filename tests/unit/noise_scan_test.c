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

enum { ROUNDS_MAX = 100000 };	/* looks in which any sweep has ended */

static bool scan_finds(struct node_scan *scan, u32 tid, bool *round)
{
	const struct node_task *task;
	struct node_tasks tasks;
	bool found;

	assert_int_equal(node_scan_look(scan, &tasks, round), 0);
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

	assert_int_equal(node_scan_look(scan, &tasks, &round), 0);
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
		cmocka_unit_test(names_match_as_globs),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
