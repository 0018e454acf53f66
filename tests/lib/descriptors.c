// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"

void files_leave(int limit, int free)
{
	struct rlimit files = { .rlim_cur = limit, .rlim_max = limit };
	int taken[limit], count = 0, i;

	if (setrlimit(RLIMIT_NOFILE, &files))
		abort();
	while (count < limit && (taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	if (count < free)
		abort();
	for (i = 0; i < free; i++)
		close(taken[i]);
}

int files_lingering(int seconds, int *peer)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const struct linger linger = { 1, seconds };
	socklen_t bytes = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const char full[1 << 16];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	*peer = accept(listener, NULL, NULL);
	if (*peer < 0)
		return -1;
	close(listener);
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

bool files_pass(int to, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int error;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	error = sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : errno;
	/* One that was not sent must not delay this process either. */
	if (error)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 0 }, sizeof(struct linger));
	close(fd);
	errno = error;
	return !error;
}

int files_listener(int *port)
{
	struct sockaddr_storage address;
	socklen_t bytes;
	int fd, listens;

	for (fd = 0; fd < 1024; fd++) {
		bytes = sizeof(listens);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) || !listens)
			continue;
		bytes = sizeof(address);
		if (getsockname(fd, (struct sockaddr *)&address, &bytes) ||
		    (address.ss_family != AF_INET && address.ss_family != AF_INET6))
			continue;
		*port = ntohs(address.ss_family == AF_INET6 ?
				      ((struct sockaddr_in6 *)&address)->sin6_port :
				      ((struct sockaddr_in *)&address)->sin_port);
		return fd;
	}
	return -1;
}
