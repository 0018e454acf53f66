// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Sockets through memory (libcoll/engine/memory.h), of which the peer is hostile: what it stores
 * is impossible, or late. A fake owner sends one message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/memory.h"
#include "libcoll/engine/ring.h"

enum { SIZE = 16 << 10, LONG = 4 * SIZE, LATE_US = 200 };

static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_socket owner;
static struct coll_ring peer_in, peer_out;
static int peer;
static uint8_t data[LONG];
static size_t length;			/* of the message */
static ssize_t sent;			/* what the owner was told; 0: nothing yet */
static bool detached;

/* ---- an owner, and an engine ---------------------------------------------------------- */

static bool owner_wants_send(struct coll_socket *socket)
{
	return !socket->sending && !sent;
}

static int owner_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	(void)socket;
	(void)max;
	iov[0] = (struct iovec){ data, length };
	return 1;
}

static void owner_sent(struct coll_socket *socket, ssize_t result)
{
	(void)socket;
	assert_int_equal(sent, 0);
	sent = result;
}

static bool owner_wants_recv(const struct coll_socket *socket)
{
	(void)socket;
	return true;
}

static void owner_detached(struct coll_socket *socket)
{
	(void)socket;
	detached = true;
}

static const struct coll_socket_ops owner_ops = {
	.wants_send = owner_wants_send,
	.send_iov = owner_send_iov,
	.sent = owner_sent,
	.wants_recv = owner_wants_recv,
	.detached = owner_detached,
};

static int fake_watch(struct coll_engine *of, struct coll_watch *watch, int events)
{
	(void)of;
	(void)events;
	watch->armed = true;
	return 0;
}

static void fake_unwatch(struct coll_engine *of, struct coll_watch *watch)
{
	(void)of;
	watch->armed = false;
}

static const struct coll_engine_ops engine_ops = { .name = "fake", .watch = fake_watch,
						   .unwatch = fake_unwatch };

/* The owner has one message, of so many bytes. */
static void owner_attach(size_t bytes_to_send)
{
	const size_t bytes = coll_memory_bytes(SIZE);
	uint8_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2];

	assert_true(map != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	peer = fds[1];
	sent = 0;
	length = bytes_to_send;
	detached = false;
	counters.exposed_bytes = 0;
	engine = (struct coll_engine){ .ops = &engine_ops, .counters = &counters, .exposes = true,
				       .waits = true };
	owner = (struct coll_socket){ .ops = &owner_ops, .engine = &engine, .fd = fds[0],
				      .memory = coll_memory_make(map, SIZE, true) };
	assert_non_null(owner.memory);
	coll_ring_init(&peer_in, map, SIZE);
	coll_ring_init(&peer_out, map + bytes / 2, SIZE);
	assert_int_equal(coll_socket_attach(&owner), 0);
	coll_memory_work(&owner);
	/* The first message of a length goes this way (copy_costs.h). */
	assert_int_equal(counters.exposed_bytes, length);
	assert_true(owner.sending);
}

/* The owner's message is exposed, and the peer may take it. */
static int begin(void **state)
{
	(void)state;
	owner_attach(LONG);
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_socket_detach(&owner);
	assert_true(detached);
	close(peer);
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------- */

/* The rest is in a copy, which the peer takes. */
static void the_owner_has_its_memory_back(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = LONG / 4;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, LONG);
	assert_false(owner.sending);
	assert_false(coll_socket_is_delivered(&owner));
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	assert_true(coll_socket_is_delivered(&owner));
}

/* What the peer has sent before would be read first: the owner wants its memory at once. */
static void it_has_it_back_from_a_peer_that_lies(void **state)
{
	const struct iovec some = { data, 10 };

	(void)state;
	assert_int_equal(coll_ring_write(&peer_out, &some, 1), 10);
	peer_in.shared->reader.taken = LONG + 1;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, -EPROTO);
	assert_false(owner.sending);
	assert_true(coll_socket_is_delivered(&owner));	/* there is nothing left to take */
}

/* The second message of a length: it goes by turns until both ways are known. */
static void the_next_goes_through_the_ring(void **state)
{
	const uint8_t *there;

	(void)state;
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	assert_int_equal(sent, LONG);
	assert_int_equal(coll_ring_peek(&peer_in, &there), 0);
	sent = 0;
	coll_memory_work(&owner);
	assert_int_equal(counters.exposed_bytes, LONG);
	assert_in_range(coll_ring_peek(&peer_in, &there), 1, SIZE);
	assert_memory_equal(there, data, 1);
}

/* It could not go on in any case. */
static void an_owner_of_more_than_the_ring_waits(void **state)
{
	(void)state;
	usleep(LATE_US);
	assert_false(coll_memory_serve(&engine));
	assert_true(coll_memory_sleep(&engine));
	coll_memory_wake(&engine);
	assert_int_equal(sent, 0);
}

static int begin_short(void **state)
{
	(void)state;
	owner_attach(SIZE);
	return 0;
}

static void the_copy_is_read(void)
{
	assert_int_equal(sent, SIZE);
	assert_false(owner.sending);
	assert_false(coll_socket_is_delivered(&owner));
	assert_ptr_not_equal((void *)(uintptr_t)peer_in.shared->writer.address, data);
	assert_memory_equal((void *)(uintptr_t)peer_in.shared->writer.address, data, SIZE);
	peer_in.shared->reader.taken = SIZE;
	coll_memory_work(&owner);
	assert_true(coll_socket_is_delivered(&owner));
}

static void nobody_waits_for_a_late_reader(void **state)
{
	(void)state;
	usleep(LATE_US);
	assert_true(coll_memory_serve(&engine));
	the_copy_is_read();
}

static void nobody_sleeps_for_a_late_reader(void **state)
{
	(void)state;
	assert_false(coll_memory_sleep(&engine));
	the_copy_is_read();
}

/* It has begun, and is soon done. */
static void who_reads_is_waited_for(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = 1;
	usleep(LATE_US);
	assert_false(coll_memory_serve(&engine));
	assert_true(coll_memory_sleep(&engine));
	coll_memory_wake(&engine);
	assert_int_equal(sent, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_owner_has_its_memory_back, begin, end),
		cmocka_unit_test_setup_teardown(it_has_it_back_from_a_peer_that_lies, begin, end),
		cmocka_unit_test_setup_teardown(the_next_goes_through_the_ring, begin, end),
		cmocka_unit_test_setup_teardown(an_owner_of_more_than_the_ring_waits, begin, end),
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_late_reader, begin_short, end),
		cmocka_unit_test_setup_teardown(nobody_sleeps_for_a_late_reader, begin_short, end),
		cmocka_unit_test_setup_teardown(who_reads_is_waited_for, begin_short, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
