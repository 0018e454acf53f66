// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Second processes that undo when the first one dies, each without the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/policy/keeper.c"

enum { GLANCES = 500 };		/* of 20 ms */

static char folder[] = "/tmp/coll-keeper.XXXXXX";

static void path_of(const char *name, char path[64])
{
	snprintf(path, 64, "%s/%s", folder, name);
}

static bool is_there(const char *name)
{
	char path[64];

	path_of(name, path);
	return !access(path, F_OK);
}

static bool comes(const char *name, int glances)
{
	const struct timespec glance = { 0, 20000000 };

	for (; glances && !is_there(name); glances--)
		nanosleep(&glance, NULL);
	return glances > 0;
}

static void make(void *name)
{
	char path[64];

	path_of(name, path);
	close(open(path, O_WRONLY | O_CREAT, 0600));
}

/* Only after the first one. */
static void follow(void *name)
{
	if (comes("first", GLANCES / 2))
		make(name);
}

static void take_away(const char *name)
{
	char path[64];

	path_of(name, path);
	assert_int_equal(unlink(path), 0);
}

/* Starts both, and dies. */
static void die_with_two(void)
{
	struct keeper first, second;

	if (keeper_start(&first, make, "first") || keeper_start(&second, follow, "second"))
		_exit(1);
	kill(getpid(), SIGKILL);
}

static void each_sees_the_end_by_itself(void **state)
{
	int status;
	const pid_t pid = fork();

	(void)state;
	if (!pid)
		die_with_two();
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_true(comes("first", GLANCES));
	assert_true(comes("second", GLANCES));
	take_away("first");
	take_away("second");
}

static void told_that_all_is_undone_it_does_nothing(void **state)
{
	struct keeper keeper;

	(void)state;
	assert_int_equal(keeper_start(&keeper, make, "none"), 0);
	keeper_end(&keeper);
	assert_false(is_there("none"));
	assert_int_equal(keeper.pipe, -1);
}

static void left_it_undoes_what_is_left(void **state)
{
	struct keeper keeper;
	pid_t pid;

	(void)state;
	assert_int_equal(keeper_start(&keeper, make, "left"), 0);
	pid = keeper.pid;
	keeper_leave(&keeper);
	assert_true(comes("left", GLANCES));
	take_away("left");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	keeper_end(&keeper);
}

static int make_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sees_the_end_by_itself),
		cmocka_unit_test(told_that_all_is_undone_it_does_nothing),
		cmocka_unit_test(left_it_undoes_what_is_left),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
