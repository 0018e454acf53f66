// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * pass_descriptors SOCKET USER SECONDS: becomes the user, and passes descriptors to colld whose
 * last close takes so many seconds: one in a message that colld reads, one that is still queued
 * when colld disconnects. Says "refused" if the socket takes none, or not the second.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A connection whose peer reads nothing; its queue is full. */
static int lingering(int seconds)
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
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    accept(listener, NULL, NULL) < 0)
		fail("connection over loopback");
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* One byte, which is no message, with the descriptor; our own is closed. False: refused. */
static int pass(int to, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int passed;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	passed = sendmsg(to, &message, MSG_NOSIGNAL) == 1;
	if (!passed && errno != EPERM && errno != EPIPE)
		fail("sendmsg");
	/* A refused one must not delay this process either. */
	if (!passed)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 0 }, sizeof(struct linger));
	close(fd);
	return passed;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int to = socket(AF_UNIX, SOCK_STREAM, 0);
	uid_t user;
	char byte;

	if (argc != 4)
		return 2;
	user = atoi(argv[2]);
	if (setresgid(user, user, user) || setresuid(user, user, user))
		fail("setresuid");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (connect(to, (struct sockaddr *)&address, sizeof(address)))
		fail(argv[1]);
	if (!pass(to, lingering(atoi(argv[3]))) || !pass(to, lingering(atoi(argv[3])))) {
		puts("refused");
		return 0;
	}
	/* Whoever passes descriptors is disconnected. */
	return recv(to, &byte, 1, 0) > 0;
}
