// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Who gets a connection to colld by HTTP. The peers are numbers, the connections descriptors that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/common/connections.c"

static struct colld_connections all;
static u64 next;

u64 colld_peer_find(int fd)
{
	(void)fd;
	return next;
}

static struct colld_connection *add(u64 who)
{
	next = who;
	return colld_connections_add(&all, 1 << 30);
}

/* How many it gets. */
static u32 add_all(u64 who)
{
	u32 count = 0;

	while (add(who))
		count++;
	return count;
}

static void one_peer_has_a_few(void **state)
{
	(void)state;
	colld_connections_init(&all);
	assert_int_equal(add_all(colld_peer_user(1000)), COLLD_CONNECTIONS_PEER);
	assert_non_null(add(colld_peer_user(1001)));
	assert_int_equal(all.refused, 1);
	assert_null(add(COLLD_PEER_GONE));
}

/* User numbers cost nothing. */
static void users_leave_some_for_root_and_other_hosts(void **state)
{
	u32 user, count = 0;

	(void)state;
	colld_connections_init(&all);
	for (user = 100000; user < 100100; user++)
		count += add_all(colld_peer_user(user));
	assert_int_equal(count, COLLD_CONNECTIONS - COLLD_CONNECTIONS_KEPT);
	assert_non_null(add(colld_peer_address(htonl(INADDR_LOOPBACK))));
	assert_non_null(add(colld_peer_address(htonl(0x0a000005))));
}

static void what_ends_is_given_again(void **state)
{
	struct colld_connection *one;

	(void)state;
	colld_connections_init(&all);
	one = add(colld_peer_user(1000));
	assert_non_null(one);
	assert_int_equal(colld_connections_count(&all), 1);
	colld_connections_remove(one);
	assert_int_equal(colld_connections_count(&all), 0);
	assert_int_equal(add_all(colld_peer_user(1000)), COLLD_CONNECTIONS_PEER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_peer_has_a_few),
		cmocka_unit_test(users_leave_some_for_root_and_other_hosts),
		cmocka_unit_test(what_ends_is_given_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
