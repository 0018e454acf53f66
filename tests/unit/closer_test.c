// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Descriptors whose last close blocks do not block the one who got them. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/common/closer.h"
#include "libcoll/base/clock.h"

enum { LINGER = 20 };

/* Its queue is full, and its peer reads nothing. */
static int lingering(int *peer)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const struct linger linger = { 1, LINGER };
	socklen_t bytes = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const char full[1 << 16];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	*peer = accept(listener, NULL, NULL);
	close(listener);
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* The receiver has the only descriptor then. */
static void pass(int to, int fd)
{
	union closer_control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(fd)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS } };
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(sizeof(fd)) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	assert_int_equal(sendmsg(to, &message, 0), 1);
	close(fd);
}

/* The connection that was passed is closed within seconds, though nobody waits for that. */
static void assert_closed(int peer)
{
	const struct timeval patience = { .tv_sec = LINGER / 2 };
	static char bytes[1 << 16];
	ssize_t got;

	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while ((got = recv(peer, bytes, sizeof(bytes), 0)) > 0)
		;
	assert_int_equal(got, 0);
	close(peer);
}

static void what_was_received_is_closed_aside(void **state)
{
	union closer_control control;
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	uint64_t start;
	int pair[2], peer;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pass(pair[0], lingering(&peer));
	start = coll_now();
	assert_int_equal(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC), 1);
	assert_int_equal(closer_take(&message), 1);
	closer_close(pair[1]);
	assert_true(coll_now() - start < LINGER / 2 * COLL_SECOND);
	assert_closed(peer);
	close(pair[0]);
}

static void what_is_queued_does_not_delay_the_close(void **state)
{
	int pair[2], peer[3], i;
	uint64_t start;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (i = 0; i < 3; i++)
		pass(pair[0], lingering(&peer[i]));
	start = coll_now();
	closer_close(pair[1]);
	assert_true(coll_now() - start < LINGER / 2 * COLL_SECOND);
	for (i = 0; i < 3; i++)
		assert_closed(peer[i]);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_received_is_closed_aside),
		cmocka_unit_test(what_is_queued_does_not_delay_the_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
