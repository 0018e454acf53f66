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
#include "libcoll/base/descriptors.h"
#include "memory.h"
#include "memory_parts.h"

enum {
	/* From one socket, before the others. */
	RECVS_MAX = 64,
	RECV_BYTES_MAX = 4 << 20,
	/* ... and before it is seen whether its peer has taken what is exposed, and waits to be given more. */
	RECV_BYTES_EXPOSING = 1 << 20,
	ROUNDS_MAX = 8,			/* of peers that do not let a caller sleep */
	/* Read by one system call: to be reduced while they are in a cache, or to their place. */
	EXPOSED_PIECE = 128 << 10,
	EXPOSED_AT_ONCE = 1 << 20,
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
	coll_exposed_init(&memory->exposed_out, &memory->out);
	memory->bell.word = coll_ring_bell(&memory->in);
	/* A child that is forked writes nothing there, and needs no copy of the page tables. */
	madvise(map, memory->bytes, MADV_DONTFORK);
	return memory;
}

void coll_memory_free(struct coll_memory *memory)
{
	if (!memory)
		return;
	munmap(memory->map, memory->bytes);
	coll_regions_end(&memory->regions);
	free(memory->copy);
	free(memory->buffer);
	free(memory);
}

/* ---- the socket below -------------------------------------------------------- */

/* A byte wakes this process; its end is the peer's. */
static void memory_bell(struct coll_watch *watch, int events)
{
	struct coll_memory *memory = watch->owner;

	(void)events;
	if (!memory->held)
		coll_memory_listen(memory);
	if (!memory->ended && coll_engine_watch(watch->engine, watch, POLLIN))
		coll_memory_end(memory, -ENOMEM);
	coll_socket_touch(memory->socket);
}

/* ---- attaching ------------------------------------------------------------- */

/* 0: it is in a PID namespace that this process does not see. */
static int peer_pid(int fd)
{
	struct ucred peer = { 0 };
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ? 0 : peer.pid;
}

static int memory_attach(struct coll_socket *socket)
{
	struct coll_memory *memory = socket->memory;
	struct coll_engine *engine = socket->engine;
	int error;

	memory->socket = socket;
	coll_exposed_attach(&memory->exposed_in, &memory->in,
			    engine->exposes ? peer_pid(socket->fd) : 0);
	coll_connection_accepts_descriptors(socket->fd, engine->exposes);
	if (engine->exposes)
		coll_exposed_map_regions(&memory->exposed_in, &memory->regions);
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
	if (socket->engine->ops->unhear)
		socket->engine->ops->unhear(socket->engine, &memory->bell);
	coll_memory_wake_readers(socket->engine);
	coll_memory_leave_slots(memory);
	socket->engine->boards.ended++;
	coll_exposed_withdraw(&memory->exposed_out);
	if (memory->exposes && !memory->copy && !memory->ended)
		coll_exposed_await_reader(&memory->exposed_out, &socket->engine->owed_until);
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
	if (!socket->memory)
		return socket->engine->ops->pause(socket);
	if (socket->memory->exposes && !socket->memory->copy)
		coll_memory_give_back(socket->memory);
	return 0;
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

	if (socket->memory)
		return !socket->memory->exposes && !socket->memory->copy;
	return ioctl(socket->fd, SIOCOUTQ, &left) || !left;
}

bool coll_socket_has_unread(const struct coll_socket *socket)
{
	int left;

	if (socket->memory)
		return coll_memory_has_bytes(socket->memory);
	return !ioctl(socket->fd, FIONREAD, &left) && left;
}

/* ---- moving bytes ---------------------------------------------------------- */

static bool memory_send(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	bool moved = false;

	memory->blocked = false;
	socket->ops->wants_send(socket);	/* the owner serves what was touched, also now */
	if (memory->exposes && !coll_memory_exposed_is_over(memory))
		return false;
	if (memory->copy && !coll_memory_send_copy(memory))
		return false;
	while (socket->ops->wants_send(socket)) {
		struct iovec iov[COLL_SEND_IOV_MAX];
		const int64_t space = memory->ended ? 0 : coll_ring_space(&memory->out);
		ssize_t sent;
		int count;

		if (space < 0)
			coll_memory_fail(memory);
		if (memory->ended) {		/* what the peer has sent before is read first */
			if (!coll_memory_has_bytes(memory) || !socket->ops->wants_recv(socket))
				socket->ops->sent(socket, coll_memory_loss(memory));
			return true;
		}
		if (!space) {
			memory->blocked = true;
			return moved;
		}
		count = socket->ops->send_iov(socket, iov, COLL_SEND_IOV_MAX);
		if (coll_memory_may_expose(memory, iov)) {
			coll_memory_expose(memory, iov);
			return true;
		}
		sent = coll_memory_write(memory, iov, coll_memory_ring_count(memory, iov, count));
		if (sent >= 0)
			coll_memory_wake_reader(memory);
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

/* These bytes of the ring are next. A long message that begins in a short piece is not seen. */
static void long_in_begins(struct coll_memory *memory, uint64_t bytes)
{
	const uint64_t count = memory->in.count;
	struct coll_ring_long latest;

	if (memory->long_in.since || bytes < COLL_COPY_LEAST / 2)
		return;
	latest = coll_ring_latest(&memory->in);
	if (latest.begin - count >= bytes || latest.end - latest.begin < COLL_COPY_LEAST)
		return;
	memory->long_in.since = coll_now();
	memory->long_in.bytes = latest.end - latest.begin;
	memory->long_in.end = latest.end;
	memory->long_in.busy = latest.busy;
}

static void long_in_goes_on(struct coll_memory *memory)
{
	uint32_t *ring = memory->in.shared->costs.ring[memory->long_in.busy];

	if (!memory->long_in.since || memory->in.count < memory->long_in.end)
		return;
	coll_copy_met(&ring[coll_copy_octave(memory->long_in.bytes)],
		      coll_now() - memory->long_in.since, memory->long_in.bytes);
	memory->long_in.since = 0;
}

/*
 * The owner copies from the ring to where the bytes belong: it is not asked for memory. It may
 * close the socket meanwhile, which is detached later.
 */
static int64_t memory_recv_ring(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	const uint8_t *data;
	const ssize_t got = coll_ring_peek(&memory->in, &data);

	if (got >= COLL_COPY_LEAST / 2)
		coll_memory_await_area(memory);
	if (got < 0)
		coll_memory_fail(memory);
	else
		long_in_begins(memory, got);
	socket->ops->received_in(socket, data, got);
	if (got > 0) {
		coll_ring_consume(&memory->in, got);
		long_in_goes_on(memory);
	}
	return got;
}

/* As from a ring: the owner copies from where this process has them mapped, or reduces there. */
static int64_t memory_recv_mapped(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	const uint8_t *data;
	int64_t got;

	coll_memory_await_area(memory);
	coll_memory_await_region(memory);
	got = coll_exposed_hold(&memory->exposed_in, EXPOSED_PIECE, &data);
	if (!got)
		return 0;
	if (got < 0)
		coll_memory_fail(memory);
	memory->held = true;
	socket->ops->received_in(socket, data, got);
	memory->held = false;
	if (got < 0 || coll_exposed_took(&memory->exposed_in, got))
		return got;
	coll_memory_end(memory, -ECONNRESET);
	return -ECONNRESET;
}

/* Straight to where the owner wants them, if it knows. */
static int64_t memory_recv_exposed(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	struct iovec iov[COLL_RECV_IOV_MAX];
	bool whole;
	const int count = socket->ops->recv_iov(socket, iov, &whole);
	uint64_t calls;
	int64_t got;

	if (!count && !memory->buffer)
		memory->buffer = malloc(EXPOSED_PIECE);
	if (!count && !memory->buffer) {
		coll_memory_end(memory, -ENOMEM);
		memory_tell_end(memory);
		return -ENOMEM;
	}
	if (!count)
		iov[0] = (struct iovec){ memory->buffer, EXPOSED_PIECE };
	calls = memory->exposed_in.calls;
	got = coll_exposed_read(&memory->exposed_in, iov, count ? count : 1,
				count ? EXPOSED_AT_ONCE : EXPOSED_PIECE);
	socket->engine->counters->syscalls += memory->exposed_in.calls - calls;
	if (got < 0)
		coll_memory_fail(memory);
	if (count && got)
		socket->ops->received(socket, got);
	else if (count)
		socket->ops->received_none(socket);
	else if (got)
		socket->ops->received_in(socket, memory->buffer, got);
	return got;
}

/* Bytes; 0: none just now. */
static int64_t memory_recv_some(struct coll_memory *memory)
{
	int64_t got;

	if (coll_ring_available(&memory->in))
		return memory_recv_ring(memory);
	got = memory_recv_mapped(memory);
	return got ? got : memory_recv_exposed(memory);
}

static bool memory_recv(struct coll_memory *memory)
{
	const int64_t most = memory->exposes ? RECV_BYTES_EXPOSING : RECV_BYTES_MAX;
	struct coll_socket *socket = memory->socket;
	int64_t got = 1, bytes = 0;
	int recvs = 0;

	/* The rest is served next time, and what cannot be read now. */
	while (got && bytes < most && recvs < RECVS_MAX &&
	       coll_memory_has_bytes(memory) && socket->ops->wants_recv(socket)) {
		recvs++;
		got = memory_recv_some(memory);
		if (got < 0 || memory->error == -EPROTO || memory->error == -ENOMEM)
			return true;
		bytes += got;
	}
	if (recvs)
		coll_memory_wake_peer(memory, coll_ring_wakes_writer(&memory->in));
	if (memory->ended && !coll_memory_has_bytes(memory) && socket->ops->wants_recv(socket))
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
	if (memory->blocked || memory->exposes || memory->copy || memory->ended ||
	    socket->engine->short_io)
		return false;
	/* Around the end of the ring in two parts. A peer that lies of what it has read gets nothing, or
	   bytes that are for it alone. */
	if (!coll_ring_put(&memory->out, iov, count, bytes) &&
	    (coll_ring_space(&memory->out) < (int64_t)bytes ||
	     coll_ring_write(&memory->out, iov, count) != (ssize_t)bytes))
		return false;
	coll_memory_wake_reader_soon(memory);
	return true;
}

ssize_t coll_memory_look(struct coll_socket *socket, const uint8_t **data)
{
	const ssize_t bytes = coll_ring_peek(&socket->memory->in, data);

	return bytes && socket->engine->short_io ? -EAGAIN : bytes;
}

void coll_memory_took(struct coll_socket *socket, uint64_t bytes)
{
	struct coll_memory *memory = socket->memory;

	coll_ring_consume(&memory->in, bytes);
	coll_memory_wake_peer(memory, coll_ring_wakes_writer(&memory->in));
}

bool coll_memory_serve(struct coll_engine *engine)
{
	struct coll_memory *memory;
	bool moved = false;

	coll_memory_wake_readers(engine);
	engine->looks++;
	for (memory = engine->memories; memory; memory = memory->next) {
		if (memory->exposes ? coll_memory_exposed_is_over(memory) :
				      memory->blocked && coll_ring_space(&memory->out)) {
			memory_send(memory);
			moved = true;
		}
		if (coll_memory_has_bytes(memory) || (memory->ended && !memory->told))
			moved |= memory_recv(memory);
	}
	return moved;
}

/* ---- sleeping -------------------------------------------------------------- */

/* A caller that sleeps on the engine's descriptor has not handed over what a bell asks for. */
static enum coll_ring_sleep sleep_of(struct coll_memory *memory)
{
	struct coll_engine *engine = memory->socket->engine;

	return !engine->slept_elsewhere && engine->ops->hear &&
	       engine->ops->hear(engine, &memory->bell) ? COLL_RING_AWAITS_BELL :
							   COLL_RING_AWAITS_BYTE;
}

static bool memory_may_sleep(struct coll_memory *memory)
{
	const enum coll_ring_sleep sleep = sleep_of(memory);	/* before any flag is set */
	struct coll_socket *socket = memory->socket;
	bool refused;

	if (memory->blocked && !coll_ring_await_space(&memory->out, sleep))
		return false;
	if (memory->exposes) {
		coll_ring_await_reader(&memory->out, sleep);
		if (coll_exposed_taken(&memory->exposed_out, &refused) ==
			    (int64_t)memory->exposed_bytes || refused)
			return false;
	}
	/* What the owner does not want to receive need not wake it. */
	if (!socket->ops->wants_recv(socket))
		return true;
	if (!coll_ring_await_bytes(&memory->in, sleep))
		return false;
	coll_processor_barrier();	/* what is exposed is looked at after the flag, too */
	return !coll_exposed_waits(&memory->exposed_in);
}

void coll_memory_sleep_elsewhere(struct coll_engine *engine)
{
	int rounds;

	engine->kept_awake = false;
	for (rounds = 0; engine->slept_elsewhere && !coll_memory_sleep(engine); rounds++) {
		engine->kept_awake = rounds == ROUNDS_MAX;
		if (engine->kept_awake)
			return;
		coll_memory_serve(engine);
	}
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
