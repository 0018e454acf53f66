// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which unauthenticated connection the store drops for another. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/boot/store_server.h"

static void assert_source(const char *address, const char *other, bool same)
{
	const char *text[] = { address, other };
	uint8_t source[2][COLL_STORE_SOURCE_BYTES];
	int i;

	for (i = 0; i < 2; i++) {
		struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
		struct sockaddr_in four = { .sin_family = AF_INET };

		if (inet_pton(AF_INET, text[i], &four.sin_addr) == 1)
			coll_store_source(source[i], (const struct sockaddr *)&four);
		else if (inet_pton(AF_INET6, text[i], &six.sin6_addr) == 1)
			coll_store_source(source[i], (const struct sockaddr *)&six);
		else
			fail_msg("%s", text[i]);
	}
	assert_int_equal(!memcmp(source[0], source[1], sizeof(source[0])), same);
}

static void a_host_is_one_source(void **state)
{
	(void)state;
	assert_source("10.0.0.1", "10.0.0.2", false);
	assert_source("10.0.0.1", "::ffff:10.0.0.1", true);
	assert_source("127.0.0.1", "127.9.9.9", true);
	assert_source("127.0.0.1", "::1", true);
	assert_source("::ffff:127.0.0.2", "::1", true);
	assert_source("127.0.0.1", "10.0.0.1", false);
	assert_source("fd00:0:0:1::1", "fd00:0:0:1:ff::2", true);
	assert_source("fd00:0:0:1::1", "fd00:0:0:2::1", false);
}

/* Four of one host, which are older, and a host that sends more. */
static void the_largest_crowd_pays(void **state)
{
	struct coll_store_connection all[10] = { { .fd = -1 } }, *list[10];
	struct coll_store store = { .connection = list };
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		all[i] = (struct coll_store_connection){ .fd = 0, .rank = -1,
							 .source = { i < 4 ? 1 : 2 } };
		list[i] = &all[i];
	}
	assert_null(coll_store_crowded(&store));
	store.connections = 4;
	assert_ptr_equal(coll_store_crowded(&store), &all[0]);
	store.connections = 10;
	assert_ptr_equal(coll_store_crowded(&store), &all[4]);
	all[4].rank = 3;
	assert_ptr_equal(coll_store_crowded(&store), &all[5]);
	all[5].fd = -1;
	all[6].challenged = true;
	assert_ptr_equal(coll_store_crowded(&store), &all[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_one_source),
		cmocka_unit_test(the_largest_crowd_pays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
