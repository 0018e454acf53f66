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

/* After a transfer that has failed: 0: it may be tried again now. */
static int stream_failed(int fd, short events, uint64_t deadline)
{
	if (errno == EINTR)
		return 0;
	if (errno == EAGAIN)
		return coll_stream_wait(fd, events, deadline);
	return errno == EPIPE ? -ECONNRESET : -errno;
}

int coll_stream_connect(int fd, const void *to, socklen_t bytes, uint64_t deadline)
{
	socklen_t length = sizeof(int);
	int error;

	if (!connect(fd, to, bytes))
		return 0;
	error = errno == EINPROGRESS ? coll_stream_wait(fd, POLLOUT, deadline) : -errno;
	if (!error && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = -error;
	return error;
}

int coll_stream_send(int fd, const void *data, size_t bytes, uint64_t deadline)
{
	size_t sent = 0;
	int error = 0;

	while (!error && sent < bytes) {
		const ssize_t n = send(fd, (const char *)data + sent, bytes - sent,
				       MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			sent += n;
		else
			error = stream_failed(fd, POLLOUT, deadline);
	}
	return error;
}

int coll_stream_receive_rest(int fd, void *data, size_t bytes, size_t *got, uint64_t deadline)
{
	int error = 0;

	while (!error && *got < bytes) {
		const ssize_t n = recv(fd, (char *)data + *got, bytes - *got, MSG_DONTWAIT);

		if (n > 0)
			*got += n;
		else
			error = n ? stream_failed(fd, POLLIN, deadline) : -ECONNRESET;
	}
	return error;
}

int coll_stream_receive(int fd, void *data, size_t bytes, uint64_t deadline)
{
	size_t got = 0;

	return coll_stream_receive_rest(fd, data, bytes, &got, deadline);
}
