// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Descriptors whose last close blocks do not block the one who got them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/common/closer.h"
#include "libcoll/base/clock.h"
#include "tests/lib/descriptors.h"

enum { LINGER = 20 };

/* The receiver has the only descriptor then. */
static void pass(int to, int *peer)
{
	const int fd = files_lingering(LINGER, peer);

	assert_true(fd >= 0);
	assert_true(files_pass(to, fd));
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
	pass(pair[0], &peer);
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
		pass(pair[0], &peer[i]);
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
