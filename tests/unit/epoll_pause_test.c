// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A socket that was paused goes on, also where the kernel has no memory to watch another one: else
 * nobody would hear its peer any more (libcoll/engine/epoll.c).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"

enum { SECOND = 1000000000 };

static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_socket owner;
static char word[8];
static int far_end, received_bytes, looked, detached;
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

/* ---- a socket that only receives ------------------------------------------------------------ */

static bool wants_send(struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static bool wants_recv(const struct coll_socket *socket)
{
	return !socket->paused;
}

static int recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	(void)socket;
	iov[0] = (struct iovec){ word, sizeof(word) };
	*whole = false;
	looked++;
	return 1;
}

static void received(struct coll_socket *socket, ssize_t result)
{
	(void)socket;
	received_bytes += result;
}

static void received_none(struct coll_socket *socket)
{
	(void)socket;
}

static void socket_detached(struct coll_socket *socket)
{
	(void)socket;
	detached++;
}

static const struct coll_socket_ops ops = {
	.wants_send = wants_send,
	.wants_recv = wants_recv,
	.recv_iov = recv_iov,
	.received = received,
	.received_none = received_none,
	.detached = socket_detached,
};

static int begin(void **state)
{
	int ends[2];

	(void)state;
	engine = (struct coll_engine){ .ops = &coll_engine_epoll, .counters = &counters,
				       .next_check = COLL_FOREVER };
	received_bytes = looked = detached = refuses = 0;
	assert_int_equal(engine.ops->open(&engine), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	far_end = ends[1];
	owner = (struct coll_socket){ .ops = &ops, .engine = &engine, .fd = ends[0] };
	assert_int_equal(coll_socket_attach(&owner), 0);
	coll_socket_touch(&owner);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);	/* there is nothing to read */
	return 0;
}

static int end(void **state)
{
	(void)state;
	refuses = 0;
	coll_socket_detach(&owner);
	assert_int_equal(detached, 1);
	coll_engine_close(&engine);
	close(far_end);
	return 0;
}

static void pause_owner(void)
{
	owner.paused = true;
	assert_int_equal(coll_socket_pause(&owner), 0);
}

static void resume_owner(void)
{
	coll_socket_resume(&owner);
	owner.paused = false;
	coll_socket_touch(&owner);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
}

static void a_word_comes(void)
{
	assert_int_equal(send(far_end, word, sizeof(word), 0), sizeof(word));
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
	assert_int_equal(received_bytes, sizeof(word));
}

static void it_is_left_alone_meanwhile(void **state)
{
	const int before = looked;

	(void)state;
	pause_owner();
	a_word_comes();
	shutdown(far_end, SHUT_RDWR);
	assert_int_equal(coll_engine_advance(&engine, coll_now() + SECOND), 0);
	assert_int_equal(looked, before);
	resume_owner();
	assert_int_equal(received_bytes, sizeof(word));
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
