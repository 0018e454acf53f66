// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A wait in io_uring counts on the sends that nobody waits for (libcoll/engine/uring.c). One that a
 * full socket keeps costs the messages of other peers nothing, but the first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/engine.h"

enum { MESSAGES = 20, SLOW_NS = 8000000, SECOND = 1000000000 };

/* One peer that this rank only sends to, one that it only receives from. */
struct end {
	struct coll_socket socket;
	int far;
	bool sends;			/* it has a message to send */
	int ended;			/* transfers */
};

static struct coll_counters counters;
static struct coll_engine engine;
static struct end full, other;
static char word[8];

static struct end *end_of(const struct coll_socket *socket)
{
	return (struct end *)socket;
}

static bool wants_send(struct coll_socket *socket)
{
	return end_of(socket)->sends && !socket->sending;
}

static int send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	(void)socket;
	(void)max;
	iov[0] = (struct iovec){ word, sizeof(word) };
	return 1;
}

static bool sends_quietly(const struct coll_socket *socket)
{
	(void)socket;
	return true;
}

static void sent(struct coll_socket *socket, ssize_t result)
{
	(void)result;
	socket->sending = false;
	end_of(socket)->sends = false;
	end_of(socket)->ended++;
}

static bool wants_recv(const struct coll_socket *socket)
{
	return socket == &other.socket && !socket->receiving && !socket->paused;
}

static int recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	*whole = false;
	return send_iov(socket, iov, 1);
}

static void received(struct coll_socket *socket, ssize_t result)
{
	(void)result;
	socket->receiving = false;
	end_of(socket)->ended++;
	coll_socket_touch(socket);
}

static void received_none(struct coll_socket *socket)
{
	socket->receiving = false;
}

static void detached(struct coll_socket *socket)
{
	(void)socket;
}

static const struct coll_socket_ops ops = {
	.wants_send = wants_send, .send_iov = send_iov, .sends_quietly = sends_quietly, .sent = sent,
	.wants_recv = wants_recv, .recv_iov = recv_iov, .received = received, .received_none = received_none,
	.detached = detached,
};

static void end_open(struct end *end)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	*end = (struct end){ .socket = { .ops = &ops, .engine = &engine, .fd = fds[0] }, .far = fds[1] };
	assert_int_equal(engine.ops->attach(&end->socket), 0);
}

static void end_close(struct end *end)
{
	end->socket.paused = true;
	shutdown(end->socket.fd, SHUT_RDWR);
	engine.ops->pause(&end->socket);
	engine.ops->detach(&end->socket);
	close(end->far);
}

static int begin(void **state)
{
	(void)state;
	engine = (struct coll_engine){ .ops = &coll_engine_uring, .counters = &counters,
				       .next_check = COLL_FOREVER };
	if (engine.ops->open(&engine))
		skip();			/* io_uring is forbidden here */
	end_open(&full);
	end_open(&other);
	coll_socket_touch(&other.socket);
	return 0;
}

static int end(void **state)
{
	(void)state;
	end_close(&full);
	end_close(&other);
	coll_engine_close(&engine);
	return 0;
}

static void fill(int fd)
{
	static const char bytes[4096];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void drain(int fd)
{
	static char bytes[65536];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* One more message comes from the other peer. How long the wait for it takes. */
static uint64_t message_takes(void)
{
	const uint64_t start = coll_now();
	const int before = other.ended;

	assert_int_equal(send(other.far, word, sizeof(word), 0), sizeof(word));
	while (other.ended == before)
		assert_int_equal(coll_engine_advance(&engine, start + SECOND), 0);
	return coll_now() - start;
}

static int slow_messages(void)
{
	int i, slow = 0;

	for (i = 0; i < MESSAGES; i++)
		slow += message_takes() >= SLOW_NS;
	return slow;
}

static void send_quietly(void)
{
	full.sends = true;
	coll_socket_touch(&full.socket);
}

static void a_full_socket_costs_others_one_wait(void **state)
{
	(void)state;
	fill(full.socket.fd);
	send_quietly();
	assert_in_range(slow_messages(), 1, MESSAGES / 4);	/* also on a machine with noise */
	assert_true(full.socket.sending);
}

/* Then waits count on such sends again: the next one that is kept costs one, too. */
static void when_it_has_ended_sends_are_counted_on_again(void **state)
{
	a_full_socket_costs_others_one_wait(state);
	drain(full.far);
	while (full.socket.sending)
		assert_int_equal(coll_engine_advance(&engine, coll_now() + SECOND), 0);
	a_full_socket_costs_others_one_wait(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_socket_costs_others_one_wait),
		TEST(when_it_has_ended_sends_are_counted_on_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
