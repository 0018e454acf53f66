// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What colld's log says of coll.ko's counting, which a user can make begin and end all the time; and which CPUs the
 * ranks of two users run on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "daemon/common/clock.h"

static int fake_access(const char *path, int mode);
static uint64_t fake_now(void);

/* Whether the module is there, and the time: the test's. */
#define access		fake_access
#define colld_now	fake_now
#include "daemon/policy/counter.c"

/* ---- a node ---------------------------------------------------------------------- */

static struct {
	u64 now;
	bool loaded;
	int begin_error, read_error;
	u32 opens;			/* sockets that are open */
	double share;			/* of the latest begin */
	struct observer_counts counts;
	u32 lines;			/* of the log */
	char line[256];			/* the latest one */
} node;

static int fake_access(const char *path, int mode)
{
	(void)path, (void)mode;
	return node.loaded ? 0 : -1;
}

static uint64_t fake_now(void)
{
	return node.now;
}

char *node_rules_glob(const char *name, char *glob, size_t size)
{
	snprintf(glob, size, "%s", name);
	return glob;
}

void colld_log(int level, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	vsnprintf(node.line, sizeof(node.line), format, arguments);
	va_end(arguments);
	node.lines++;
}

int netlink_open(struct netlink **netlink)
{
	*netlink = (struct netlink *)&node;
	node.opens++;
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	node.opens -= netlink != NULL;
}

const char *netlink_reason(const struct netlink *netlink)
{
	(void)netlink;
	return "the reason";
}

int node_watch_begin(struct netlink *netlink, const struct node_cpus *cpus, const struct node_watch_order *order)
{
	(void)netlink, (void)cpus;
	assert_true(order->yields);
	node.share = order->share;
	return node.begin_error;
}

int node_watch_end(struct netlink *netlink, const struct node_cpus *cpus)
{
	(void)netlink, (void)cpus;
	return 0;
}

int node_watch_read(struct netlink *netlink, enum node_watch_whose whose, node_watch_each each, void *argument)
{
	(void)netlink, (void)whose, (void)each, (void)argument;
	return node.read_error;
}

struct observer_counts node_observer_counts(const struct observer *observer)
{
	(void)observer;
	return node.counts;
}

/* ---- one user, and another ----------------------------------------------------------- */

static struct colld_counting counting;
static struct colld_counter *one, *other;

static int begin(void **state)
{
	(void)state;
	memset(&node, 0, sizeof(node));
	node.now = 100 * NODE_S;
	node.loaded = true;
	node.counts = (struct observer_counts){ .ranks = 2, .cpus = 2, .fit = 2 };
	counting = (struct colld_counting){ .most = 0.01 };
	one = colld_counter_open(&counting);
	other = colld_counter_open(&counting);
	return one && other ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	colld_counter_stop(one);
	colld_counter_stop(other);
	colld_counter_close(one);
	colld_counter_close(other);
	assert_null(counting.users);
	assert_int_equal(node.opens, 0);
	return 0;
}

static int begins(struct colld_counter *counter)
{
	const struct node_cpus cpus = { .bits = { 1 } };

	return counter->table.begin(counter, &cpus, 7, 7);
}

static void loses(struct colld_counter *counter, bool dear)
{
	counter->table.lost(counter, "job", 3, dear);
}

/* ---- tests ------------------------------------------------------------------------- */

static void the_module_has_the_bound(void **state)
{
	(void)state;
	assert_int_equal(begins(one), 0);
	assert_true(node.share == 0.01);
}

static void a_line_when_counting_begins_and_one_an_hour_when_it_ends(void **state)
{
	u32 i;

	(void)state;
	assert_int_equal(begins(one), 0);
	for (i = 0; i < 100; i++) {
		colld_counter_look(one, NULL);
		loses(one, true);
		loses(one, false);
		node.now += NODE_S / 2;
	}
	assert_int_equal(node.lines, 3);
	assert_int_equal(counting.dear, 100);
	assert_int_equal(counting.yielded, 100);
	node.now += 3600 * NODE_S;
	loses(one, true);
	assert_int_equal(node.lines, 4);
	assert_non_null(strstr(node.line, "job job, rank 3: it costs more than 1 % of a CPU (--watch-cost)"));
	assert_non_null(strstr(node.line, "; so 99 times more"));
	loses(one, true);
	assert_int_equal(node.lines, 4);
	assert_int_equal(begins(other), 0);	/* another user's is as little news */
	loses(other, true);
	assert_int_equal(node.lines, 4);
	colld_counter_look(other, NULL);	/* an hour after the first one's */
	assert_int_equal(node.lines, 5);
}

/* As an array of short jobs does: each one's user begins anew. */
static void many_jobs_are_no_news(void **state)
{
	struct colld_counter *counter;
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		counter = colld_counter_open(&counting);
		assert_int_equal(begins(counter), 0);
		colld_counter_look(counter, NULL);
		loses(counter, true);
		colld_counter_stop(counter);
		colld_counter_close(counter);
		node.now += 10 * NODE_S;
	}
	assert_int_equal(node.lines, 2);
}

/* Whatever the error: it is not that others have the CPU. */
static void what_cannot_be_read_is_not_said_to_be_anothers(void **state)
{
	(void)state;
	assert_int_equal(begins(one), 0);
	node.read_error = -EPROTO;
	assert_int_equal(one->table.read(one, NULL, NULL), -EPROTO);
	assert_int_equal(node.opens, 0);
	loses(one, false);
	assert_int_equal(node.lines, 1);
	assert_non_null(strstr(node.line, "watch: the reason: "));
	assert_int_equal(counting.yielded, 0);
	assert_int_equal(begins(one), -EAGAIN);	/* not at once */
	node.now += OPEN_NS;
	assert_int_equal(begins(one), 0);
}

static void a_module_that_was_never_there_is_not_told_of(void **state)
{
	(void)state;
	node.loaded = false;
	assert_int_equal(begins(one), -ENOENT);
	assert_int_equal(node.lines, 0);
	node.loaded = true;
	node.now += OPEN_NS;
	assert_int_equal(begins(one), 0);
	colld_counter_look(one, NULL);
	node.read_error = -ENOENT;
	assert_int_equal(one->table.read(one, NULL, NULL), -ENOENT);
	assert_int_equal(node.lines, 2);
	assert_non_null(strstr(node.line, "coll.ko is not loaded"));
}

static void who_is_refused_the_cpu_is_told_as_one_that_lost_it(void **state)
{
	(void)state;
	node.begin_error = -EBUSY;
	assert_int_equal(begins(one), -EBUSY);
	loses(one, false);
	assert_int_equal(node.lines, 1);
	assert_int_equal(node.opens, 1);	/* it may have others */
}

static void each_user_is_told_where_the_others_ranks_run(void **state)
{
	const struct node_cpus ours = { .bits = { 3 } }, theirs = { .bits = { 6 } }, none = { .bits = { 0 } };
	struct node_cpus others = none;

	(void)state;
	one->table.claim(one, &ours, &others);
	assert_int_equal(node_cpus_count(&others), 0);
	other->table.claim(other, &theirs, &others);
	assert_true(node_cpus_same(&others, &ours));
	others = none;
	one->table.claim(one, &ours, &others);
	assert_true(node_cpus_same(&others, &theirs));
	others = none;
	other->table.claim(other, &none, &others);	/* its ranks sleep, or have ended */
	others = none;
	one->table.claim(one, &ours, &others);
	assert_int_equal(node_cpus_count(&others), 0);
}

static void zero_counts_nothing(void **state)
{
	struct colld_counting none = { .most = 0 };

	(void)state;
	assert_null(colld_counter_open(&none));
	assert_null(colld_counter_table(NULL));
	colld_counter_stop(NULL);
	colld_counter_close(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* One that is not quoted makes all of the text unreadable. */
static void a_label_is_quoted(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	(void)state;
	colld_metrics_count(to, "ports", "node", "a\"b\\c\nd", 1);
	fclose(to);
	assert_string_equal(text, "ports{node=\"a\\\"b\\\\c\\nd\"} 1\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_module_has_the_bound),
		TEST(a_line_when_counting_begins_and_one_an_hour_when_it_ends),
		TEST(many_jobs_are_no_news),
		TEST(what_cannot_be_read_is_not_said_to_be_anothers),
		TEST(a_module_that_was_never_there_is_not_told_of),
		TEST(who_is_refused_the_cpu_is_told_as_one_that_lost_it),
		TEST(each_user_is_told_where_the_others_ranks_run),
		TEST(zero_counts_nothing),
		cmocka_unit_test(a_label_is_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
