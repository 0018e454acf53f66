// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What coll.ko tells of watches is read CPU by CPU: its sources, of which its summary says that they are all. Of
 * one that ceased to be watched meanwhile nothing is given to the reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include "node/watch_module.c"
#include "uapi/coll_noise.h"

/* ---- a module ------------------------------------------------------------------ */

static struct {
	netlink_answer answer;
	void *data;
	void (*dump)(void);
	bool own;			/* only the socket's own watches were asked for */
	int error;			/* by an answer */
} module;

struct nl_msg *netlink_message(struct netlink *netlink, enum coll_command command, int flags)
{
	(void)netlink, (void)flags;
	assert_int_equal(command, COLL_CMD_WATCH_GET);
	return nlmsg_alloc();
}

int netlink_ask(struct netlink *netlink, struct nl_msg *message, netlink_answer answer, void *data)
{
	(void)netlink;
	assert_non_null(message);
	module.own = nlmsg_find_attr(nlmsg_hdr(message), 0, COLL_WATCH_A_OWN);
	nlmsg_free(message);
	module.answer = answer;
	module.data = data;
	module.error = 0;
	module.dump();
	return module.error;
}

int netlink_fail(struct netlink *netlink, int error, const char *format, ...)
{
	(void)netlink, (void)format;
	return error;
}

static void sends(struct nl_msg *message)
{
	struct nlattr *attributes[__COLL_WATCH_A_MAX] = { 0 };
	int error;

	assert_int_equal(nla_parse(attributes, __COLL_WATCH_A_MAX - 1, nlmsg_attrdata(nlmsg_hdr(message), 0),
				   nlmsg_attrlen(nlmsg_hdr(message), 0), NULL), 0);
	error = module.answer(COLL_CMD_WATCH_GET, attributes, module.data);
	module.error = module.error ? module.error : error;
	nlmsg_free(message);
}

static void sends_source(u32 cpu, u32 index, const char *name)
{
	struct nl_msg *message = nlmsg_alloc();
	struct nlattr *nest;

	nla_put_u32(message, COLL_WATCH_A_CPU, cpu);
	nest = nla_nest_start(message, COLL_WATCH_A_SOURCE);
	nla_put_u32(message, COLL_WATCH_A_INDEX, index);
	nla_put_u8(message, COLL_WATCH_A_CAUSE, COLL_NOISE_THREAD);
	nla_put_u32(message, COLL_WATCH_A_NUMBER, 100 + index);
	if (index == 12)
		nla_put_u32(message, COLL_WATCH_A_REUSED, 3);
	nla_put_string(message, COLL_WATCH_A_NAME, name);
	nla_put_u64(message, COLL_WATCH_A_CGROUP, 77);
	nla_put_u64(message, COLL_WATCH_A_BORN, index * 1000000000ull);
	nla_put_u64(message, COLL_WATCH_A_TOTAL, 1000 * index);
	nla_nest_end(message, nest);
	sends(message);
}

static void sends_summary(u32 cpu)
{
	struct nl_msg *message = nlmsg_alloc();

	nla_put_u32(message, COLL_WATCH_A_CPU, cpu);
	nla_put_u64(message, COLL_WATCH_A_WATCHED, 5000);
	nla_put_u64(message, COLL_WATCH_A_COST, 50);
	nla_put_u64(message, COLL_WATCH_A_AWAY, 10 + cpu);
	nla_put_u8(message, COLL_WATCH_A_STATE, cpu == 2 ? COLL_WATCH_DEAR : COLL_WATCH_COUNTS);
	sends(message);
}

/* ---- a reader ------------------------------------------------------------------ */

enum { GIVEN_MOST = 200 };

static struct node_watched given[GIVEN_MOST];
static char given_name[GIVEN_MOST][32];
static u32 givens;
static int refuses;		/* what the reader answers */

static int takes(const struct node_watched *watched, void *argument)
{
	assert_ptr_equal(argument, &refuses);
	assert_true(givens < GIVEN_MOST);
	snprintf(given_name[givens], sizeof(given_name[givens]), "%s", watched->name);
	given[givens++] = *watched;
	return refuses;
}

static int reads(enum node_watch_whose whose, void (*dump)(void))
{
	givens = 0;
	module.dump = dump;
	return node_watch_read(NULL, whose, takes, &refuses);
}

/* ---- tests ---------------------------------------------------------------------- */

static void two_cpus(void)
{
	sends_source(1, 9, "backup");
	sends_source(1, 12, "cron");
	sends_summary(1);
	sends_summary(2);
}

static void a_summary_comes_before_its_sources(void **state)
{
	(void)state;
	assert_int_equal(reads(NODE_WATCH_ALL, two_cpus), 0);
	assert_false(module.own);
	assert_int_equal(givens, 4);
	assert_true(!given[0].is_source && given[0].cpu == 1 && given[0].watched == 5000 && given[0].cost == 50);
	assert_true(given[0].away == 11 && given[3].away == 12);
	assert_true(given[1].is_source && given[1].index == 9 && given[1].total == 9000 && given[1].cgroup == 77);
	assert_string_equal(given_name[1], "backup");
	assert_true(given[2].index == 12 && given[2].number == 112);
	assert_true(given[2].reused == 3 && !given[1].reused);
	assert_string_equal(given_name[2], "cron");
	assert_int_equal(given[2].born, 12 * sysconf(_SC_CLK_TCK));
	assert_true(!given[3].is_source && given[3].cpu == 2 && given[3].dear && !given[0].dear);
	assert_int_equal(reads(NODE_WATCH_OWN, two_cpus), 0);
	assert_true(module.own);
}

static void one_ends_meanwhile(void)
{
	sends_source(0, 9, "backup");	/* without a summary */
	sends_source(1, 9, "cron");
	sends_summary(1);
	sends_source(2, 9, "backup");
	sends_summary(3);
	sends_source(4, 9, "backup");
}

static void half_of_a_cpu_is_not_given(void **state)
{
	(void)state;
	assert_int_equal(reads(NODE_WATCH_OWN, one_ends_meanwhile), 0);
	assert_int_equal(givens, 3);
	assert_true(given[0].cpu == 1 && given[1].cpu == 1 && given[2].cpu == 3);
	assert_string_equal(given_name[1], "cron");
}

static void many(void)
{
	u32 i;

	for (i = 1; i < GIVEN_MOST; i++)
		sends_source(1, i, "one of many");
	sends_summary(1);
}

static void there_may_be_many(void **state)
{
	(void)state;
	assert_int_equal(reads(NODE_WATCH_OWN, many), 0);
	assert_int_equal(givens, GIVEN_MOST);
	assert_true(given[GIVEN_MOST - 1].index == GIVEN_MOST - 1);
	refuses = -ENOMEM;
	assert_int_equal(reads(NODE_WATCH_OWN, many), -ENOMEM);
	assert_int_equal(givens, 1);
	refuses = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_summary_comes_before_its_sources),
		cmocka_unit_test(half_of_a_cpu_is_not_given),
		cmocka_unit_test(there_may_be_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
