// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sockets.h"

static struct fake_socket {
	bool open, ended;
	size_t at, end;
	unsigned char data[SOCKET_BYTES];	/* of the peer */
} fake[SOCKETS_MAX];

static int made, waiting = -1;

void (*sockets_sent)(int fd, const void *data, size_t bytes);

static struct fake_socket *fake_of(int fd)
{
	return fd >= SOCKETS_FIRST && fd < SOCKETS_FIRST + SOCKETS_MAX ? &fake[fd - SOCKETS_FIRST] :
									 NULL;
}

void sockets_begin(void)
{
	made = 0;
	waiting = -1;
	sockets_sent = NULL;
}

int sockets_make(void)
{
	struct fake_socket *s = &fake[made];

	if (made == SOCKETS_MAX) {
		errno = ENFILE;
		return -1;
	}
	s->open = true;
	s->ended = false;
	s->at = s->end = 0;
	return SOCKETS_FIRST + made++;
}

void sockets_feed(int fd, const void *data, size_t bytes)
{
	struct fake_socket *s = fake_of(fd);

	if (!s || bytes > sizeof(s->data) - s->end)
		return;
	memcpy(s->data + s->end, data, bytes);
	s->end += bytes;
}

void sockets_end(int fd)
{
	if (fake_of(fd))
		fake_of(fd)->ended = true;
}

size_t sockets_unread(int fd)
{
	return fake_of(fd)->end - fake_of(fd)->at;
}

bool sockets_is_open(int fd)
{
	return fake_of(fd)->open;
}

int sockets_connect(void)
{
	return waiting = sockets_make();
}

/* ---- the C library's -------------------------------------------------------- */

int socket(int family, int type, int protocol)
{
	(void)family;
	(void)type;
	(void)protocol;
	return sockets_make();
}

int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	(void)fd;
	(void)to;
	(void)bytes;
	return 0;
}

int bind(int fd, const struct sockaddr *at, socklen_t bytes)
{
	(void)fd;
	(void)at;
	(void)bytes;
	return 0;
}

int listen(int fd, int backlog)
{
	(void)fd;
	(void)backlog;
	return 0;
}

int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict bytes, int flags)
{
	const int accepted = waiting;

	(void)fd;
	(void)from;
	(void)bytes;
	(void)flags;
	waiting = -1;
	if (accepted < 0)
		errno = EAGAIN;
	return accepted;
}

ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
	struct fake_socket *s = fake_of(fd);
	const size_t left = s ? s->end - s->at : 0, part = bytes < left ? bytes : left;

	(void)flags;
	if (part) {
		memcpy(data, s->data + s->at, part);
		s->at += part;
		return part;
	}
	if (!s || s->ended || !bytes)
		return 0;
	errno = EAGAIN;
	return -1;
}

/* No descriptors come with it. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	message->msg_controllen = 0;
	return recv(fd, message->msg_iov->iov_base, message->msg_iov->iov_len, flags);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	(void)flags;
	if (sockets_sent)
		sockets_sent(fd, data, bytes);
	return bytes;
}

/* By another name: poll.h says that it only writes the entries. */
int fake_poll(struct pollfd *entries, nfds_t count, int timeout) __asm__("poll");
int fake_poll(struct pollfd *entries, nfds_t count, int timeout)
{
	const struct fake_socket *s = fake_of(entries->fd);

	(void)count;
	(void)timeout;
	if (!s)
		return 0;
	entries->revents = entries->events & POLLOUT;
	if (s->at < s->end || s->ended)
		entries->revents |= entries->events & POLLIN;
	return !!entries->revents;
}

int close(int fd)
{
	struct fake_socket *s = fake_of(fd);

	if (!s)
		return syscall(SYS_close, fd);
	s->open = false;
	return 0;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	(void)epoll;
	(void)operation;
	(void)fd;
	(void)event;
	return 0;
}

int shutdown(int fd, int how)
{
	(void)fd;
	(void)how;
	return 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
	(void)fd;
	(void)level;
	(void)option;
	(void)value;
	(void)bytes;
	errno = ENOPROTOOPT;
	return -1;
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict bytes)
{
	(void)fd;
	(void)level;
	(void)option;
	memset(value, 0, *bytes);
	return 0;
}

/* All peers are on this machine. */
static int loopback(struct sockaddr *to, socklen_t *bytes)
{
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(4711),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memcpy(to, &address, *bytes < sizeof(address) ? *bytes : sizeof(address));
	*bytes = sizeof(address);
	return 0;
}

int getpeername(int fd, struct sockaddr *restrict peer, socklen_t *restrict bytes)
{
	(void)fd;
	return loopback(peer, bytes);
}

int getsockname(int fd, struct sockaddr *restrict own, socklen_t *restrict bytes)
{
	(void)fd;
	return loopback(own, bytes);
}
