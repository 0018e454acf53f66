/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A connection through memory of two processes, which are one here. */
#ifndef COLL_FAKE_CONNECTION_H
#define COLL_FAKE_CONNECTION_H

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/port.h"
#include "libcoll/engine/memory.h"

/* Both ends map the same file, each for itself. */
struct fake_connection {
	int fd[2];
	uint8_t *map[2];		/* two rings of `size`; [0] made them */
	uint64_t size;
};

static inline struct fake_connection fake_connect(uint64_t size)
{
	const int file = memfd_create("ring", MFD_CLOEXEC);
	const size_t bytes = coll_memory_bytes(size);
	struct fake_connection c = { .size = size };
	int side;

	coll_assert(!ftruncate(file, bytes));
	for (side = 0; side < 2; side++) {
		c.map[side] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		coll_assert((void *)c.map[side] != MAP_FAILED);
	}
	close(file);
	coll_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c.fd));
	return c;
}

/* An engine's end of it, of this owner. What the end had is the engine's. */
static inline void fake_attach(struct coll_socket *socket, const struct coll_socket_ops *owner, struct coll_engine *engine,
			       const struct fake_connection *c, int side)
{
	*socket = (struct coll_socket){ .ops = owner, .engine = engine, .fd = c->fd[side],
					.memory = coll_memory_make(c->map[side], c->size, !side) };
	coll_assert(socket->memory);
	coll_assert(!coll_socket_attach(socket));
}

/* Of an owner that takes all that comes. */
static inline bool fake_wants_recv(const struct coll_socket *socket)
{
	(void)socket;
	return true;
}

#endif
