// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A socket that was paused goes on, also where the kernel has no memory to watch another one: else
 * nobody would hear its peer any more (libcoll/engine/epoll.c).
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "libcoll/base/clock.h"
#include "listener.h"

enum { SECOND = 1000000000 };

static struct coll_counters counters;
static struct coll_engine engine;
static struct listener owner;
static char word[8];
static int refuses;			/* 1: to watch another descriptor takes memory that there is not */

/* In the place of libc's. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (refuses && op == EPOLL_CTL_ADD) {
		errno = ENOMEM;
		return -1;
	}
	return syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

static int begin(void **state)
{
	(void)state;
	engine = (struct coll_engine){ .ops = &coll_engine_epoll, .counters = &counters,
				       .next_check = COLL_FOREVER };
	refuses = 0;
	assert_int_equal(engine.ops->open(&engine), 0);
	listener_open(&owner, &engine);	/* there is nothing to read */
	return 0;
}

static int end(void **state)
{
	(void)state;
	refuses = 0;
	listener_close(&owner);
	coll_engine_close(&engine);
	return 0;
}

static void pause_owner(void)
{
	owner.socket.paused = true;
	assert_int_equal(coll_socket_pause(&owner.socket), 0);
}

static void resume_owner(void)
{
	coll_socket_resume(&owner.socket);
	owner.socket.paused = false;
	coll_socket_touch(&owner.socket);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
}

static void a_word_comes(void)
{
	assert_int_equal(send(owner.far_end, word, sizeof(word), 0), sizeof(word));
	assert_int_equal(coll_engine_advance(&engine, coll_now() + SECOND), 0);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_socket_goes_on_without_memory_for_another(void **state)
{
	(void)state;
	refuses = 1;
	pause_owner();
	resume_owner();
	a_word_comes();
	assert_int_equal(owner.bytes, sizeof(word));
}

static void it_is_left_alone_meanwhile(void **state)
{
	const int before = owner.asked;

	(void)state;
	pause_owner();
	a_word_comes();
	shutdown(owner.far_end, SHUT_RDWR);
	assert_int_equal(coll_engine_advance(&engine, coll_now() + SECOND), 0);
	assert_int_equal(owner.asked, before);
	resume_owner();
	assert_int_equal(owner.bytes, sizeof(word));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_socket_goes_on_without_memory_for_another),
		TEST(it_is_left_alone_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
