// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Connections that are accepted and nobody's yet (libcoll/transport/pending.h), and how many are
 * accepted at a time. A fake engine reports what a test says.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/transport/listen.h"
#include "libcoll/transport/pending.h"

enum { MANY = 100, AT_A_TIME = 16 };

static struct coll_context context;
static struct coll_boot boot;
static int strangers[MANY];

/* ---- below: an engine; above: a store ----------------------------------------------- */

static int fake_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	(void)events;
	watch->engine = engine;
	watch->armed = true;
	return 0;
}

static void fake_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	(void)engine;
	watch->armed = false;
}

static const struct coll_engine_ops engine = { .name = "fake", .watch = fake_watch,
					       .unwatch = fake_unwatch };

static void ready(struct coll_watch *watch)
{
	assert_true(watch->armed);
	watch->armed = false;
	watch->ready(watch, POLLIN);
}

static int fake_put(struct coll_boot *of, const char *key, const void *value, size_t bytes)
{
	(void)of;
	(void)key;
	(void)value;
	(void)bytes;
	return 0;
}

static const struct coll_boot_ops store = { .name = "fake", .put = fake_put };

static int begin(void **state)
{
	(void)state;
	memset(&context, 0, sizeof(context));
	boot = (struct coll_boot){ .ops = &store, .rank = 1, .ranks = 2, .local_ranks = 2 };
	context.boot = &boot;
	context.engine = (struct coll_engine){ .ops = &engine, .next_check = COLL_FOREVER,
					       .counters = &context.counters };
	strcpy(context.options.memory, "auto");
	strcpy(context.options.protect, "proof");
	assert_int_equal(coll_listen(&context), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_listen_stop(&context);
	assert_int_equal(context.pending_count, 0);
	assert_int_equal(context.silent, 0);
	return 0;
}

/* A connection to a listener of the context. */
static int connect_to(const struct coll_watch *listener)
{
	struct sockaddr_storage address;
	socklen_t bytes = sizeof(address);
	int fd;

	assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&address, &bytes), 0);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
	return fd;
}

/* Silent ones beyond a number are refused for the next. */
static uint64_t accepted(void)
{
	return context.pending_count + context.counters.refused;
}

/* ---- tests --------------------------------------------------------------------------- */

/* Somebody may connect without end: the engine goes on between. */
static void few_are_accepted_at_a_time(void **state)
{
	uint64_t before;
	uint32_t which;
	int i;

	for (which = 0; which < 2; which++) {
		struct coll_watch *listener = &context.listener[which];

		end(state);
		begin(state);
		assert_int_equal(context.listeners, 2);
		for (i = 0; i < MANY; i++)
			strangers[i] = connect_to(listener);
		while (accepted() < MANY) {
			before = accepted();
			ready(listener);
			assert_in_range(accepted() - before, 1, AT_A_TIME);
			assert_int_equal(listener->armed, !context.listen_again);
			coll_listen_check(&context);
			assert_true(listener->armed);
		}
		ready(listener);		/* there are no more */
		assert_true(listener->armed);
		assert_int_equal(context.listen_again, 0);
		for (i = 0; i < MANY; i++)
			close(strangers[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_are_accepted_at_a_time, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
