// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <linux/sockios.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "closer.h"

/* More descriptors wait for one of these, and stay open meanwhile. */
enum { THREADS_MAX = 16 };

struct waiting {
	struct waiting *next;
	int fd;
	bool drain;		/* descriptors may be queued on it */
};

static struct {
	pthread_mutex_t lock;
	struct waiting *first;
	int threads;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int closer_each(struct msghdr *message, void (*take)(int fd))
{
	struct cmsghdr *c;
	int count = 0, fd;
	size_t at;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = 0; CMSG_LEN(at + sizeof(fd)) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			take(fd);
			count++;
		}
	}
	return count;
}

/* ---- in a thread ------------------------------------------------------------ */

static void close_at_once(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 0 }, sizeof(struct linger));
	close(fd);
}

/* What is queued is received, so that none of it lingers. It was shut down: there is an end. */
static void closer_drain(int fd)
{
	union closer_control control;
	char bytes[4096];
	struct iovec data = { bytes, sizeof(bytes) };
	struct msghdr message;

	do {
		message = (struct msghdr){ .msg_iov = &data, .msg_iovlen = 1,
					   .msg_control = &control,
					   .msg_controllen = sizeof(control) };
		if (recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
			return;
		closer_each(&message, close_at_once);
	} while (true);
}

static struct waiting *closer_next(void)
{
	struct waiting *next;

	pthread_mutex_lock(&closer.lock);
	next = closer.first;
	if (next)
		closer.first = next->next;
	else
		closer.threads--;
	pthread_mutex_unlock(&closer.lock);
	return next;
}

static void *closer_main(void *none)
{
	struct waiting *one;

	while ((one = closer_next())) {
		if (one->drain)
			closer_drain(one->fd);
		close_at_once(one->fd);
		free(one);
	}
	return none;
}

/* ---- for the caller ----------------------------------------------------------- */

static bool closer_start(void)
{
	pthread_attr_t detached;
	pthread_t thread;
	int error;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &detached, closer_main, NULL);
	pthread_attr_destroy(&detached);
	return !error;
}

/* Without memory for it the descriptor stays open: that is better than to wait for a stranger. */
static void closer_give(int fd, bool drain)
{
	struct waiting *one = malloc(sizeof(*one));

	if (!one)
		return;
	pthread_mutex_lock(&closer.lock);
	*one = (struct waiting){ closer.first, fd, drain };
	closer.first = one;
	if (closer.threads < THREADS_MAX && closer_start())
		closer.threads++;
	pthread_mutex_unlock(&closer.lock);
}

static void closer_give_right(int fd)
{
	closer_give(fd, false);
}

int closer_take(struct msghdr *message)
{
	return closer_each(message, closer_give_right);
}

void closer_close(int fd)
{
	int queued = 0;

	shutdown(fd, SHUT_RDWR);	/* nothing more is queued */
	if (!ioctl(fd, SIOCINQ, &queued) && queued)
		closer_give(fd, true);
	else
		close(fd);
}
