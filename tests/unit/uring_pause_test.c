// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A receive that io_uring has is ended by a pause, also if the thread gets no core meanwhile, or a
 * signal comes: else a sound connection would count as lost (libcoll/transport/mux_end.c). And what
 * the kernel refuses.
 */
#include <errno.h>
#include <liburing.h>
#include <sys/syscall.h>

#include "listener.h"

static struct coll_counters counters;
static struct coll_engine engine;
static struct listener owner;
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

static int begin(void **state)
{
	(void)state;
	counters = (struct coll_counters){ 0 };
	engine = (struct coll_engine){ .ops = &coll_engine_uring, .counters = &counters,
				       .next_check = COLL_FOREVER };
	interrupts = stands_still_us = 0;
	if (engine.ops->open(&engine)) {
		engine.ops = NULL;
		skip();			/* io_uring is forbidden here */
	}
	listener_open(&owner, &engine);
	assert_true(owner.socket.receiving);
	owner.socket.paused = true;
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (!engine.ops)
		return 0;
	interrupts = stands_still_us = 0;
	coll_socket_pause(&owner.socket);
	listener_close(&owner);
	coll_engine_close(&engine);
	return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_pause_ends_the_receive(void **state)
{
	(void)state;
	assert_int_equal(coll_socket_pause(&owner.socket), 0);
	assert_false(owner.socket.receiving);
	assert_int_equal(owner.ended, 1);
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
	assert_int_equal(coll_socket_pause(&owner.socket), 0);
	owner.socket.paused = false;
	coll_socket_touch(&owner.socket);
	refuses = 1;
	alarm(20);
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
	alarm(0);
	assert_true(engine.kept_awake);
	refuses = 0;
	assert_int_equal(coll_engine_advance(&engine, 0), 0);
	assert_false(engine.kept_awake);
	assert_true(owner.socket.receiving);
	owner.socket.paused = true;
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
