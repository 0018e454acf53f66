// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/port.h"
#include "memory.h"
#include "ring.h"

enum { RECVS_MAX = 64 };		/* from one socket, before the others */

struct coll_memory {
	struct coll_socket *socket;
	struct coll_memory *next;	/* of the engine */
	void *map;
	size_t bytes;
	struct coll_ring out, in;
	struct coll_watch watch;	/* of the socket below */
	bool blocked;			/* the ring is full, and there is more to send */
	bool ended;			/* so has the socket below: the peer writes nothing more */
	int error;			/* why; 0: its end */
	bool told;			/* the owner knows that */
};

/* ---- making ---------------------------------------------------------------- */

/* The second ring begins on a line of its own. */
static size_t ring_stride(uint64_t size)
{
	return (coll_ring_bytes(size) + 127) & ~(size_t)127;
}

size_t coll_memory_bytes(uint64_t size)
{
	return 2 * ring_stride(size);
}

struct coll_memory *coll_memory_make(void *map, uint64_t size, bool first)
{
	struct coll_memory *memory = calloc(1, sizeof(*memory));
	uint8_t *second = (uint8_t *)map + ring_stride(size);

	if (!memory)
		return NULL;
	memory->map = map;
	memory->bytes = coll_memory_bytes(size);
	coll_ring_init(&memory->out, first ? map : second, size);
	coll_ring_init(&memory->in, first ? second : map, size);
	/* A child that is forked writes nothing there, and needs no copy of the page tables. */
	madvise(map, memory->bytes, MADV_DONTFORK);
	return memory;
}

void coll_memory_free(struct coll_memory *memory)
{
	if (!memory)
		return;
	munmap(memory->map, memory->bytes);
	free(memory);
}

/* ---- waking ---------------------------------------------------------------- */

/* A full buffer has bytes that wake the peer already. */
static void ring_bell(const struct coll_memory *memory)
{
	struct coll_engine *engine = memory->socket->engine;

	engine->counters->syscalls++;
	send(memory->socket->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The socket below: a byte wakes this process; its end is the peer's. */
static void memory_bell(struct coll_watch *watch, int events)
{
	struct coll_memory *memory = watch->owner;
	char bytes[64];
	ssize_t got = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	(void)events;
	memory->socket->engine->counters->syscalls++;
	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) {
		if (coll_engine_watch(watch->engine, watch, POLLIN)) {
			memory->ended = true;
			memory->error = -ENOMEM;
		}
	} else {
		memory->ended = true;
		memory->error = got < 0 ? -errno : 0;
	}
	coll_socket_touch(memory->socket);
}

/* ---- attaching ------------------------------------------------------------- */

static int memory_attach(struct coll_socket *socket)
{
	struct coll_memory *memory = socket->memory;
	struct coll_engine *engine = socket->engine;
	int error;

	memory->socket = socket;
	memory->watch = (struct coll_watch){ .ready = memory_bell, .owner = memory,
					     .fd = socket->fd };
	error = coll_engine_watch(engine, &memory->watch, POLLIN);
	if (error)
		return error;
	memory->next = engine->memories;
	engine->memories = memory;
	return 0;
}

static void memory_detach(struct coll_socket *socket)
{
	struct coll_memory *memory = socket->memory, **slot = &socket->engine->memories;

	while (*slot != memory)
		slot = &(*slot)->next;
	*slot = memory->next;
	if (memory->watch.armed)
		coll_engine_unwatch(socket->engine, &memory->watch);
	close(socket->fd);
	coll_memory_free(memory);
	socket->memory = NULL;
	socket->ops->detached(socket);
}

int coll_socket_attach(struct coll_socket *socket)
{
	return socket->memory ? memory_attach(socket) : socket->engine->ops->attach(socket);
}

void coll_socket_detach(struct coll_socket *socket)
{
	if (socket->memory)
		memory_detach(socket);
	else
		socket->engine->ops->detach(socket);
}

int coll_socket_pause(struct coll_socket *socket)
{
	return socket->memory ? 0 : socket->engine->ops->pause(socket);
}

void coll_socket_resume(struct coll_socket *socket)
{
	if (!socket->memory)
		socket->engine->ops->resume(socket);
}

/* What is in the ring stays there for the peer, also if this process ends. */
bool coll_socket_is_delivered(const struct coll_socket *socket)
{
	int left;

	return socket->memory || ioctl(socket->fd, SIOCOUTQ, &left) || !left;
}

bool coll_socket_has_unread(const struct coll_socket *socket)
{
	int left;

	if (socket->memory)
		return coll_ring_available(&socket->memory->in) > 0;
	return !ioctl(socket->fd, FIONREAD, &left) && left;
}

/* ---- moving bytes ---------------------------------------------------------- */

/* A counter of the peer's is impossible. */
static void memory_fail(struct coll_memory *memory)
{
	memory->ended = true;
	memory->error = -EPROTO;
}

static bool memory_send(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	bool moved = false;

	memory->blocked = false;
	while (socket->ops->wants_send(socket)) {
		struct iovec iov[COLL_SEND_IOV_MAX];
		const int64_t space = memory->ended ? 0 : coll_ring_space(&memory->out);
		ssize_t sent;

		if (space < 0)
			memory_fail(memory);
		if (memory->ended) {		/* what the peer has sent before is read first */
			if (coll_ring_available(&memory->in) <= 0 ||
			    !socket->ops->wants_recv(socket))
				socket->ops->sent(socket, -EPIPE);
			return true;
		}
		if (!space) {
			memory->blocked = true;
			return moved;
		}
		sent = coll_ring_write(&memory->out, iov,
				       socket->ops->send_iov(socket, iov, COLL_SEND_IOV_MAX));
		if (sent >= 0 && coll_ring_wakes_reader(&memory->out))
			ring_bell(memory);
		socket->ops->sent(socket, sent);
		moved = true;
	}
	return moved;
}

/* The peer writes nothing more, and all is read. */
static bool memory_tell_end(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;

	if (!memory->ended || memory->told)
		return false;
	memory->told = true;
	socket->ops->received_in(socket, NULL, memory->error);
	return true;
}

/*
 * The owner copies from the ring to where the bytes belong: it is not asked for memory. It may
 * close the socket meanwhile, which is detached later.
 */
static void memory_recv_some(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	const uint8_t *data;
	const ssize_t got = coll_ring_peek(&memory->in, &data);

	if (got < 0)
		memory_fail(memory);
	socket->ops->received_in(socket, data, got);
	if (got > 0)
		coll_ring_consume(&memory->in, got);
}

static bool memory_recv(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	int recvs = 0;

	while (coll_ring_available(&memory->in) && socket->ops->wants_recv(socket)) {
		if (recvs++ == RECVS_MAX)
			break;		/* the rest is served next time */
		memory_recv_some(memory);
		if (memory->error == -EPROTO)
			return true;
	}
	if (recvs && coll_ring_wakes_writer(&memory->in))
		ring_bell(memory);
	if (memory->ended && !coll_ring_available(&memory->in) && socket->ops->wants_recv(socket))
		return memory_tell_end(memory);
	return recvs;
}

void coll_memory_work(struct coll_socket *socket)
{
	memory_send(socket->memory);
	socket->engine->received |= memory_recv(socket->memory);
}

bool coll_memory_send_now(struct coll_socket *socket, const struct iovec *iov, int count)
{
	struct coll_memory *memory = socket->memory;
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (memory->blocked || memory->ended || socket->engine->short_io ||
	    coll_ring_space(&memory->out) < (int64_t)bytes)
		return false;
	if (coll_ring_write(&memory->out, iov, count) != (ssize_t)bytes)
		return false;		/* the counter was impossible: nothing was written */
	if (coll_ring_wakes_reader(&memory->out))
		ring_bell(memory);
	return true;
}

bool coll_memory_serve(struct coll_engine *engine)
{
	struct coll_memory *memory;
	bool moved = false;

	for (memory = engine->memories; memory; memory = memory->next) {
		if (memory->blocked && coll_ring_space(&memory->out))
			moved |= memory_send(memory);
		if (coll_ring_available(&memory->in))
			moved |= memory_recv(memory);
	}
	return moved;
}

/* ---- sleeping -------------------------------------------------------------- */

static bool memory_may_sleep(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;

	if (memory->blocked && !coll_ring_await_space(&memory->out))
		return false;
	/* What the owner does not want to receive need not wake it. */
	return !socket->ops->wants_recv(socket) || coll_ring_await_bytes(&memory->in);
}

void coll_memory_sleep_elsewhere(struct coll_engine *engine)
{
	while (engine->slept_elsewhere && !coll_memory_sleep(engine))
		coll_memory_serve(engine);
}

bool coll_memory_sleep(struct coll_engine *engine)
{
	struct coll_memory *memory;

	for (memory = engine->memories; memory; memory = memory->next)
		if (!memory_may_sleep(memory)) {
			coll_memory_wake(engine);
			return false;
		}
	return true;
}

void coll_memory_wake(struct coll_engine *engine)
{
	struct coll_memory *memory;

	for (memory = engine->memories; memory; memory = memory->next) {
		coll_ring_writer_awake(&memory->out);
		coll_ring_reader_awake(&memory->in);
	}
}
