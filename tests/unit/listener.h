/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A socket of an engine that only receives, and what has come of it. The other end is a descriptor. */
#ifndef TESTS_LISTENER_H
#define TESTS_LISTENER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"

struct listener {
	struct coll_socket socket;
	int far_end;
	int asked, ended, detached;	/* calls: where to receive; a receive has ended; it is detached */
	ssize_t bytes;			/* received */
	char place[64];
};

static bool listener_wants_send(struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static bool listener_wants_recv(const struct coll_socket *socket)
{
	return !socket->receiving && !socket->paused;
}

static int listener_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	struct listener *listener = (struct listener *)socket;

	iov[0] = (struct iovec){ listener->place, sizeof(listener->place) };
	*whole = false;
	listener->asked++;
	return 1;
}

static void listener_received(struct coll_socket *socket, ssize_t result)
{
	struct listener *listener = (struct listener *)socket;

	socket->receiving = false;
	listener->ended++;
	listener->bytes += result > 0 ? result : 0;
}

static void listener_received_none(struct coll_socket *socket)
{
	listener_received(socket, 0);
}

static void listener_detached(struct coll_socket *socket)
{
	((struct listener *)socket)->detached++;
}

static const struct coll_socket_ops listener_ops = {
	.wants_send = listener_wants_send,
	.wants_recv = listener_wants_recv,
	.recv_iov = listener_recv_iov,
	.received = listener_received,
	.received_none = listener_received_none,
	.detached = listener_detached,
};

/* Attached to the engine, which has been asked to receive. */
static void listener_open(struct listener *listener, struct coll_engine *engine)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	*listener = (struct listener){ .socket = { .ops = &listener_ops, .engine = engine, .fd = ends[0] },
				       .far_end = ends[1] };
	assert_int_equal(coll_socket_attach(&listener->socket), 0);
	coll_socket_touch(&listener->socket);
	assert_int_equal(coll_engine_advance(engine, 0), 0);
}

static void listener_close(struct listener *listener)
{
	coll_socket_detach(&listener->socket);
	assert_int_equal(listener->detached, 1);
	close(listener->far_end);
}

#endif
