// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A receive that io_uring has is ended by a pause, also if the thread gets no core meanwhile, or a
 * signal comes: else a sound connection would count as lost (libcoll/transport/mux_end.c). And what
 * the kernel refuses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <liburing.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"

static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_socket owner;
static char place[64];
static int far_end, ended, detached;
static int interrupts, stands_still_us;	/* what the next cancels meet */
static int refuses;			/* 1: the kernel takes no requests now */
static int lacking;			/* 1: a kernel before 6.0, which has no such cancels */

/* In the place of liburing's. */
int io_uring_register_sync_cancel(struct io_uring *ring, struct io_uring_sync_cancel_reg *reg)
{
	int result;

	if (lacking)
		return -EINVAL;
	if (interrupts) {
		interrupts--;
		return -EINTR;
	}
	result = syscall(SYS_io_uring_register, ring->ring_fd, IORING_REGISTER_SYNC_CANCEL, reg, 1);
	usleep(stands_still_us);
	return result < 0 ? -errno : result;
}

/* As without memory. */
int io_uring_submit_and_get_events(struct io_uring *ring)
{
	return refuses ? -EAGAIN : io_uring_submit_and_wait(ring, 0);
}

/* ---- a socket that only receives ------------------------------------------------------------ */

static bool wants_send(struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static bool wants_recv(const struct coll_socket *socket)
{
	return !socket->receiving && !socket->paused;
}

static int recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	(void)socket;
	iov[0] = (struct iovec){ place, sizeof(place) };
	*whole = false;
	return 1;
}

static void received(struct coll_socket *socket, ssize_t result)
{
	(void)result;
	socket->receiving = false;
	ended++;
}

static void received_none(struct coll_socket *socket)
{
	received(socket, 0);
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
	counters = (struct coll_counters){ 0 };
	engine = (struct coll_engine){ .ops = &coll_engine_uring, .counters = &counters,
				       .next_check = COLL_FOREVER };
	ended = detached = interrupts = stands_still_us = 0;
	if (engine.ops->open(&engine)) {
		engine.ops = NULL;
		skip();			/* io_uring is forbidden here */
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	far_end = ends[1];
	owner = (struct coll_socket){ .ops = &ops, .engine = &engine, .fd = ends[0] };
	assert_int_equal(coll_socket_attach(&owner), 0);
	coll_socket_touch(&owner);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
	assert_true(owner.receiving);
	owner.paused = true;
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (!engine.ops)
		return 0;
	interrupts = stands_still_us = 0;
	coll_socket_pause(&owner);
	coll_socket_detach(&owner);
	assert_int_equal(detached, 1);
	coll_engine_close(&engine);
	close(far_end);
	return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_pause_ends_the_receive(void **state)
{
	(void)state;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_false(owner.receiving);
	assert_int_equal(ended, 1);
}

static void it_does_if_the_thread_gets_no_core_for_long(void **state)
{
	(void)state;
	stands_still_us = 150000;	/* longer than a pause may take */
	a_pause_ends_the_receive(state);
}

static void it_does_if_a_signal_interrupts_it(void **state)
{
	(void)state;
	interrupts = 2;
	a_pause_ends_the_receive(state);
	assert_int_equal(interrupts, 0);
}

/* Each closed group would end the connections that it shares with others. */
static void a_kernel_that_cannot_pause_is_none_for_it(void **state)
{
	struct coll_engine other = { .ops = &coll_engine_uring, .counters = &counters };

	(void)state;
	lacking = 1;
	assert_int_equal(other.ops->open(&other), -ENOSYS);
	lacking = 0;
	assert_int_equal(other.ops->open(&other), 0);
	coll_engine_close(&other);
}

/* A call that only tests returns, and who sleeps on the descriptor calls again. */
static void nobody_waits_for_a_kernel_that_takes_no_requests(void **state)
{
	(void)state;
	assert_int_equal(coll_socket_pause(&owner), 0);
	owner.paused = false;
	coll_socket_touch(&owner);
	refuses = 1;
	alarm(20);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
	alarm(0);
	assert_true(engine.kept_awake);
	refuses = 0;
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
	assert_false(engine.kept_awake);
	assert_true(owner.receiving);
	owner.paused = true;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pause_ends_the_receive),
		TEST(it_does_if_the_thread_gets_no_core_for_long),
		TEST(it_does_if_a_signal_interrupts_it),
		TEST(nobody_waits_for_a_kernel_that_takes_no_requests),
		TEST(a_kernel_that_cannot_pause_is_none_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
