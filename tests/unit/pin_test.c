// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What colld could not move back stays written down. The task is a child of this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/policy/pin.c"

enum { STRANGER = 64321 };

static char folder[] = "/tmp/coll-pin.XXXXXX";
static struct node_rules rules;
static struct colld_pin *pin;
static char before[NODE_CPUS_TEXT], house[NODE_CPUS_TEXT];
static pid_t child;

static const char *cpus_of_child(void)
{
	static char text[NODE_CPUS_TEXT];
	const struct node_pin like = { .kind = NODE_PIN_TASK, .number = child };

	assert_int_equal(node_pin_read(&like, text), 0);
	return text;
}

static bool is_written_down(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/pin.state", folder);
	return !access(path, F_OK);
}

/* One CPU: there is nowhere to go. Who is not root cannot become another user. */
static void open_pin(void)
{
	if (geteuid() || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	assert_int_equal(colld_pin_open(&pin, &rules, folder), 0);
	if (pin->netlink) {	/* coll.ko moves the task, and nothing is written down */
		colld_pin_close(pin, true);
		skip();
	}
	assert_string_equal(cpus_of_child(), house);
	assert_true(is_written_down());
}

static void begin_child(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "coll-pin-child");
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

/* What one could not move back. */
static void the_next_one_moves_it_back(void)
{
	assert_string_equal(cpus_of_child(), house);
	assert_true(is_written_down());
	open_pin();
	colld_pin_close(pin, true);
	assert_string_equal(cpus_of_child(), before);
	assert_false(is_written_down());
}

static void no_look_at_the_tasks(void **state)
{
	struct rlimit limit, none;

	(void)state;
	open_pin();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	colld_pin_close(pin, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	the_next_one_moves_it_back();
}

static void the_kernel_refuses(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	open_pin();
	assert_int_equal(chown(folder, STRANGER, STRANGER), 0);
	pid = fork();
	if (!pid) {
		if (setuid(STRANGER))
			_exit(1);
		colld_pin_close(pin, true);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	colld_pin_close(pin, false);
	the_next_one_moves_it_back();
}

static int begin(void **state)
{
	static const char policy[] = "pin comm=coll-pin-child\n";
	struct coll_text_error error = { 0 };

	(void)state;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (!mkdtemp(folder) || node_rules_parse(policy, &rules, &error))
		return -1;
	node_rules_complete(&rules, &error);
	node_cpus_list(&rules.housekeeping, house, sizeof(house));
	begin_child();
	strcpy(before, cpus_of_child());
	return 0;
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	node_rules_free(&rules);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_look_at_the_tasks, begin, end),
		cmocka_unit_test_setup_teardown(the_kernel_refuses, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
