// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which nodes of an allocation differ from the others (tools/noise/allocation.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/noise/allocation.h"
#include "tools/noise/nodelist.h"

enum { WATCHED = 1000000000 };

/* As collnoise measure prints it: one CPU, whose time `name` takes. */
static json_t *measured(double share, double longest, const char *name)
{
	return json_pack("{s{sI sf sf s{sf sf}} s[{si sf}] s[{ss ss sI} {ss ss sI}]}", "all",
			 "watched_ns", (json_int_t)WATCHED, "share", share, "events_per_s", 100.,
			 "duration", "p99_ns", longest / 2, "max_ns", longest, "cpus", "cpu", 3,
			 "share", share, "who", "cause", "irq", "name", "timer", "total_ns",
			 (json_int_t)(WATCHED * 0.0001), "cause", "thread", "name", name, "total_ns",
			 (json_int_t)(WATCHED * share));
}

static void node_is(struct noise_allocation *a, u32 i, const char *name, double share,
		    double longest, const char *cause)
{
	json_t *json = measured(share, longest, cause);

	a->node[i].name = strdup(name);
	assert_true(noise_node_read(&a->node[i], json));
	json_decref(json);
}

/* As many nodes alike, nearly. */
static struct noise_allocation alike(u32 nodes)
{
	struct noise_allocation a;
	char name[20];
	u32 i;

	assert_int_equal(noise_allocation_init(&a, nodes), 0);
	for (i = 0; i < nodes; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		node_is(&a, i, name, 0.001 + 0.00005 * (i % 3), 50e3 + 1000 * (i % 5), "kworker/0:1");
	}
	return a;
}

static void replace(struct noise_allocation *a, u32 i, double share, double longest,
		    const char *cause)
{
	free(a->node[i].name);
	a->node[i] = (struct noise_node){ 0 };
	node_is(a, i, "odd", share, longest, cause);
}

static void nodes_that_are_alike_do_not_differ(void **state)
{
	u32 nodes;

	(void)state;
	for (nodes = 1; nodes < 40; nodes++) {
		struct noise_allocation a = alike(nodes);

		noise_allocation_judge(&a);
		assert_int_equal(a.came, nodes);
		assert_int_equal(a.outliers, 0);
		noise_allocation_free(&a);
	}
}

static void one_that_loses_more_time_is_named_with_the_cause(void **state)
{
	u32 nodes, at;

	(void)state;
	for (nodes = NODES_TO_COMPARE; nodes < 20; nodes++)
		for (at = 0; at < nodes; at++) {
			struct noise_allocation a = alike(nodes);

			replace(&a, at, 0.03, 55e3, "backup/7");
			noise_allocation_judge(&a);
			assert_int_equal(a.outliers, 1);
			assert_string_equal(a.node[0].name, "odd");
			assert_true(a.node[0].more_time && !a.node[0].longer);
			assert_non_null(a.node[0].blamed);
			assert_string_equal(a.node[0].blamed->text, "thread backup");
			assert_true(a.node[0].blamed->share > 0.029);
			assert_true(a.node[0].elsewhere == 0);
			noise_allocation_free(&a);
		}
}

/* Not what takes the most time there, if it does so everywhere. */
static void what_all_nodes_have_is_not_blamed(void **state)
{
	struct noise_allocation a = alike(7);
	struct noise_node *node = &a.node[5];

	(void)state;
	node->share += 0.002;
	node->cause[node->causes] = (struct noise_node_cause){ "irq nic", 0.0009 };
	node->causes++;
	noise_allocation_judge(&a);
	assert_int_equal(a.outliers, 1);
	assert_string_equal(a.node[0].blamed->text, "irq nic");
	noise_allocation_free(&a);
}

static void one_long_event_is_enough(void **state)
{
	struct noise_allocation a = alike(9);

	(void)state;
	replace(&a, 4, 0.001, 5e6, "kworker/3:0");
	noise_allocation_judge(&a);
	assert_int_equal(a.outliers, 1);
	assert_true(a.node[0].longer && !a.node[0].more_time);
	noise_allocation_free(&a);
}

static void two_nodes_cannot_be_told_apart(void **state)
{
	struct noise_allocation a = alike(2);

	(void)state;
	replace(&a, 1, 0.5, 5e6, "backup");
	noise_allocation_judge(&a);
	assert_int_equal(a.outliers, 0);
	noise_allocation_free(&a);
}

/* A node from which nothing came is last, and changes no figure of the others. */
static void a_silent_node_is_no_outlier(void **state)
{
	struct noise_allocation a = alike(6);

	(void)state;
	a.node[0].came = false;
	replace(&a, 3, 0.03, 55e3, "backup");
	noise_allocation_judge(&a);
	assert_int_equal(a.came, 5);
	assert_int_equal(a.outliers, 1);
	assert_string_equal(a.node[0].name, "odd");
	assert_false(a.node[5].came);
	noise_allocation_free(&a);
}

/* A host may print anything. */
static void what_is_no_measurement_is_refused(void **state)
{
	static const char *const texts[] = {
		"{}", "[]", "3", "{\"all\": 3, \"cpus\": []}", "{\"all\": {\"watched_ns\": -1}, \"cpus\": []}",
		"{\"all\": {\"watched_ns\": \"x\"}, \"cpus\": [1]}", "{\"all\": {\"watched_ns\": 5}, \"cpus\": 7}",
	};
	struct noise_node node = { 0 };
	json_t *odd;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		json_t *json = json_loads(texts[i], JSON_DECODE_ANY, NULL);

		assert_non_null(json);
		assert_false(noise_node_read(&node, json));
		assert_false(node.came);
		json_decref(json);
	}
	odd = json_loads("{\"all\": {\"watched_ns\": 5, \"share\": [], \"duration\": 1}, \"cpus\": [1, {}], "
			 "\"who\": [1, {\"cause\": 2}, {\"cause\": \"irq\", \"name\": 3}], \"sources\": 1}",
			 0, NULL);
	assert_non_null(odd);
	assert_true(noise_node_read(&node, odd));
	assert_true(node.share == 0);
	json_decref(odd);
}

static void list_is(const char *text, const char *wanted)
{
	struct noise_nodelist list;
	char *names;

	assert_true(noise_nodelist_read(&list, text));
	names = noise_nodelist_join(&list);
	assert_string_equal(names, wanted);
	free(names);
	noise_nodelist_free(&list);
}

static void lists_of_slurm_are_read(void **state)
{
	(void)state;
	list_is("a", "a");
	list_is("a,b-1.c", "a,b-1.c");
	list_is("n[1-3,07-09,12],m2", "n1,n2,n3,n07,n08,n09,n12,m2");
	list_is("n[98-101]", "n98,n99,n100,n101");
	list_is("r[1-2]n[0-1]-ib", "r1n0-ib,r1n1-ib,r2n0-ib,r2n1-ib");
}

static void lists_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {
		"", ",", "a,", "a,,b", "a:2", "a b", "a'b", "-n", "n[", "n[]", "n[1", "n[3-1]", "n[a]",
		"n[1-]", "n[1,]", "n]", "n[0-9999]", "n[0-99]x[0-99]", "n[1-18446744073709551615]",
	};
	struct noise_nodelist list;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (noise_nodelist_read(&list, bad[i]))
			fail_msg("'%s' was read", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_that_are_alike_do_not_differ),
		cmocka_unit_test(one_that_loses_more_time_is_named_with_the_cause),
		cmocka_unit_test(what_all_nodes_have_is_not_blamed),
		cmocka_unit_test(one_long_event_is_enough),
		cmocka_unit_test(two_nodes_cannot_be_told_apart),
		cmocka_unit_test(a_silent_node_is_no_outlier),
		cmocka_unit_test(what_is_no_measurement_is_refused),
		cmocka_unit_test(lists_of_slurm_are_read),
		cmocka_unit_test(lists_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
