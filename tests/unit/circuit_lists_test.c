// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The user numbers that /etc/subuid gives to a user have one user's share of colld's lists and jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/circuit/clients.h"
#include "daemon/common/subuid.h"

enum { ALICES = 100000, BOBS = 165536, MANY = 65536, LISTS = 16, LISTS_ALL = 60 };

static char path[] = "/tmp/coll-subuid-XXXXXX";
static struct circuit_manager *manager;
static int ends[1024], opened;

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	colld_subuid_read(path);
}

static int begin(void **state)
{
	(void)state;
	manager = calloc(1, sizeof(*manager));
	manager->clients = calloc(1, sizeof(*manager->clients));
	manager->clients->epoll = epoll_create1(EPOLL_CLOEXEC);
	manager->operator = COLL_CIRCUIT_NONE;
	manager->core = (struct coll_circuit_manager){
		.node = manager->node, .circuit = manager->circuit, .lease = manager->lease,
		.holder = manager->holder, .circuits = CIRCUITS_MAX, .leases = CIRCUIT_LEASES_MAX,
		.holders = CIRCUIT_HOLDERS_MAX, .policy = coll_circuit_policy_default,
	};
	coll_circuit_manager_init(&manager->core);
	opened = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	while (manager->clients->first)
		circuit_client_disconnect(manager, manager->clients->first);
	while (opened)
		close(ends[--opened]);
	close(manager->clients->epoll);
	while (manager->clients->account) {
		struct circuit_account *next = manager->clients->account->next;

		free(manager->clients->account);
		manager->clients->account = next;
	}
	free(manager->clients);
	free(manager);
	return 0;
}

static struct circuit_peer *connected(uid_t user)
{
	struct circuit_peer *client;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ends[opened++] = pair[1];
	client = circuit_client_new(manager->clients, pair[0], user);
	assert_non_null(client);
	return client;
}

/* How many get a long queue to watch, of so many users of one connection each. */
static u32 watching(uid_t first, u32 users)
{
	u32 i, large = 0;

	for (i = 0; i < users; i++) {
		struct circuit_peer *client = connected(first + i);

		client->watches = circuit_client_enlarge(manager, client);
		large += client->watches;
	}
	return large;
}

static u32 jobs(uid_t first, u32 users)
{
	static const u8 key[COLL_CIRCUIT_KEY];
	u32 i, joined = 0;

	for (i = 0; i < users; i++)
		joined += circuit_manager_join(manager, "job", key, first + i, 0) != COLL_CIRCUIT_NONE;
	return joined;
}

static void a_range_has_the_lists_of_one_user(void **state)
{
	(void)state;
	write_file("alice:100000:65536\nbob:165536:65536\n");
	assert_int_equal(watching(ALICES, 100), LISTS);
	assert_int_equal(watching(ALICES + MANY - 1, 1), 0);
	assert_int_equal(watching(BOBS, 20), LISTS);
	assert_int_equal(watching(1000, 1), 1);
}

static void numbers_of_no_range_have_all_lists_together(void **state)
{
	(void)state;
	write_file("");
	assert_int_equal(watching(ALICES, 100), LISTS_ALL);
	assert_int_equal(watching(0, 1), 1);
}

static void a_range_has_the_jobs_of_one_user(void **state)
{
	(void)state;
	write_file("alice:100000:65536\n");
	assert_in_range(jobs(ALICES, 1000), 1, CIRCUIT_HOLDERS_MAX / 2);
	assert_in_range(jobs(1000, 1000), CIRCUIT_HOLDERS_MAX / 4, CIRCUIT_HOLDERS_MAX);
}

static void no_range_counts_as_root(void **state)
{
	(void)state;
	write_file("root:0:65536\nroot:1000:1\nhalf:2000\nword:x:5\nmore:3000:5:7\nnone:4000:0\nlong:5000:99999999999\n"
		   "within:100010:5\nalice:100000:100\nacross:100050:100\n");
	assert_int_equal(colld_subuid_counts_as(0), 0);
	assert_int_equal(colld_subuid_counts_as(17), 17);
	assert_int_equal(colld_subuid_counts_as(1000), 1000);
	assert_int_equal(colld_subuid_counts_as(1001), 1001);
	assert_int_equal(colld_subuid_counts_as(2001), 2001);
	assert_int_equal(colld_subuid_counts_as(3001), 3001);
	assert_int_equal(colld_subuid_counts_as(5001), 5001);
	assert_int_equal(colld_subuid_counts_as(99999), 99999);
	assert_int_equal(colld_subuid_counts_as(100012), 100000);
	assert_int_equal(colld_subuid_counts_as(100149), 100000);
	assert_int_equal(colld_subuid_counts_as(100150), 100150);
	unlink(path);
	colld_subuid_read(path);
	assert_int_equal(colld_subuid_counts_as(100012), 100012);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_range_has_the_lists_of_one_user, begin, end),
		cmocka_unit_test_setup_teardown(numbers_of_no_range_have_all_lists_together, begin, end),
		cmocka_unit_test_setup_teardown(a_range_has_the_jobs_of_one_user, begin, end),
		cmocka_unit_test(no_range_counts_as_root),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
