// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "clock.h"
#include "stream.h"

int coll_ms_until(uint64_t deadline)
{
	uint64_t now = coll_now(), ms;

	if (deadline <= now)
		return 0;
	ms = (deadline - now - 1) / 1000000 + 1;
	return ms > 1000000000 ? 1000000000 : ms;
}

int coll_stream_wait(int fd, short events, uint64_t deadline)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&poll_fd, 1, coll_ms_until(deadline));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

int coll_stream_send(int fd, const void *data, size_t bytes, uint64_t deadline)
{
	const char *at = data;
	ssize_t n;
	int err;

	while (bytes) {
		n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			at += n;
			bytes -= n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return errno == EPIPE ? -ECONNRESET : -errno;
		err = coll_stream_wait(fd, POLLOUT, deadline);
		if (err)
			return err;
	}
	return 0;
}

int coll_stream_receive(int fd, void *data, size_t bytes, uint64_t deadline)
{
	char *at = data;
	ssize_t n;
	int err;

	while (bytes) {
		n = recv(fd, at, bytes, MSG_DONTWAIT);
		if (!n)
			return -ECONNRESET;
		if (n > 0) {
			at += n;
			bytes -= n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = coll_stream_wait(fd, POLLIN, deadline);
		if (err)
			return err;
	}
	return 0;
}
