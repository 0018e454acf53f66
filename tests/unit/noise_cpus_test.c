// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Sets of CPUs, priorities and shares as they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/cpus.c"
#include "tools/noise/policy.c"
#include "node/units.c"

static void put(const char *root, const char *name, const char *text)
{
	char command[300];

	snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s) && echo %s >%s/%s", root,
		 name, text, root, name);
	assert_int_equal(system(command), 0);
}

/* Four cores of two threads each, numbered as Intel does; the last is offline. */
static void siblings_are_found(void **state)
{
	char root[] = "/tmp/noise_cpus_XXXXXX", name[100], core[20], command[100];
	struct node_cpus cpus;
	int cpu;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_false(node_cpus_siblings(&cpus, root));
	put(root, "online", "0-3");
	for (cpu = 0; cpu < 8; cpu++) {
		snprintf(name, sizeof(name), "cpu%d/topology/thread_siblings_list", cpu);
		snprintf(core, sizeof(core), "%d,%d", cpu % 4, cpu % 4 + 4);
		put(root, name, core);
	}
	assert_false(node_cpus_siblings(&cpus, root));
	put(root, "online", "0-6");
	assert_true(node_cpus_siblings(&cpus, root));
	assert_string_equal(node_cpus_list(&cpus, command, sizeof(command)), "4-6");
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void lists_and_masks_come_back(void **state)
{
	static const struct {
		const char *list, *mask;
	} cases[] = {
		{ "0", "1" },
		{ "0-3,8", "10f" },
		{ "31", "80000000" },
		{ "32", "1,00000000" },
		{ "0,63-64", "1,80000000,00000001" },
		{ "5-100", "1f,ffffffff,ffffffff,ffffffe0" },
	};
	struct node_cpus cpus, back;
	char text[NODE_CPUS_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(node_cpus_read_list(&cpus, cases[i].list));
		assert_string_equal(node_cpus_list(&cpus, text, sizeof(text)), cases[i].list);
		assert_string_equal(node_cpus_mask(&cpus, text, sizeof(text)), cases[i].mask);
		assert_true(node_cpus_read_mask(&back, cases[i].mask));
		assert_true(node_cpus_same(&cpus, &back));
	}
	assert_true(node_cpus_read_mask(&back, "00000000,00000010f\n"));
	assert_string_equal(node_cpus_list(&back, text, sizeof(text)), "0-3,8");
	assert_true(node_cpus_read_list(&cpus, "\n") && !node_cpus_count(&cpus));
	assert_string_equal(node_cpus_mask(&cpus, text, sizeof(text)), "0");
	assert_true(node_cpus_read_list(&cpus, "0-8191") && node_cpus_count(&cpus) == 8192);
	node_cpus_mask(&cpus, text, sizeof(text));
	assert_int_equal(strlen(text), 8192 / 4 + 255);
	assert_true(node_cpus_read_mask(&back, text) && node_cpus_same(&cpus, &back));
}

static void other_text_is_none(void **state)
{
	static const char *const lists[] = { "a", "1-", "-1", "3-1", "1,,2", "1 2", "8192", "1,",
					     "99999999999999999999" };
	static const char *const masks[] = { "", "x", "1-2", "1\n2" };
	struct node_cpus cpus;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		assert_false(node_cpus_read_list(&cpus, lists[i]));
	for (i = 0; i < sizeof(masks) / sizeof(*masks); i++)
		assert_false(node_cpus_read_mask(&cpus, masks[i]));
}

static void sets_are_sets(void **state)
{
	struct node_cpus a, b;
	char text[64];

	(void)state;
	node_cpus_read_list(&a, "0-10");
	node_cpus_read_list(&b, "3-5,20");
	node_cpus_remove(&a, &b);
	assert_string_equal(node_cpus_list(&a, text, sizeof(text)), "0-2,6-10");
	node_cpus_keep(&b, &a);
	assert_int_equal(node_cpus_count(&b), 0);
	assert_int_equal(node_cpus_next(&a, 3), 6);
	assert_int_equal(node_cpus_next(&a, 11), NODE_CPUS_MAX);
	assert_int_equal(strlen(node_cpus_list(&a, text, 4)), 3);	/* cut, not beyond */
}

static void priorities_are_read(void **state)
{
	static const char *const bad[] = { "", "f", "f:", "f:0", "f:100", "x:1", "o:20", "d:1ms",
					   "d:10ms:1ms", "f:1x", "d:1ns:1ms" };
	struct noise_policy policy;
	size_t i;

	(void)state;
	assert_true(noise_policy_read(&policy, "f:50") && policy.policy == SCHED_FIFO &&
		    policy.priority == 50);
	assert_true(noise_policy_read(&policy, "o:-5") && policy.policy == SCHED_OTHER &&
		    policy.nice == -5);
	assert_true(noise_policy_read(&policy, "d:500:1000") && policy.runtime == 500000 &&
		    policy.period == 1000000);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(noise_policy_read(&policy, bad[i]));
}

static void shares_and_times(void **state)
{
	double share;
	char text[24];

	(void)state;
	assert_true(node_share_read("2.5%", &share) && share == 0.025);
	assert_true(node_share_read("0.5", &share) && share == 0.5);
	assert_false(node_share_read("101%", &share) || node_share_read("-1%", &share) ||
		     node_share_read("x", &share) || node_share_read("1%%", &share));
	assert_string_equal(node_time_text(999, text), "999 ns");
	assert_string_equal(node_time_text(1000, text), "1.00 us");
	assert_string_equal(node_time_text(999600, text), "1.00 ms");
	assert_string_equal(node_time_text(12.25, text), "12.2 ns");
	assert_string_equal(node_time_text(-4.5e9, text), "-4.50 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_and_masks_come_back),
		cmocka_unit_test(siblings_are_found),
		cmocka_unit_test(other_text_is_none),
		cmocka_unit_test(sets_are_sets),
		cmocka_unit_test(priorities_are_read),
		cmocka_unit_test(shares_and_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
