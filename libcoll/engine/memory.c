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
#include "exposed.h"
#include "memory.h"
#include "ring.h"

enum {
	RECVS_MAX = 64,			/* from one socket, before the others */
	EXPOSED_PIECE = 128 << 10,	/* read by one system call */
	EXPOSED_MAX = 4 << 20,		/* docs/results/performance.md */
};

struct coll_memory {
	struct coll_socket *socket;
	struct coll_memory *next;	/* of the engine */
	void *map;
	size_t bytes;
	struct coll_ring out, in;
	struct coll_exposed exposed_out, exposed_in;
	struct coll_watch watch;	/* of the socket below */
	struct coll_bell bell;		/* which the peer rings */
	bool blocked;			/* the ring is full, and there is more to send */
	bool exposes;			/* the peer is to take bytes from this process */
	const uint8_t *exposed;		/* ... these, of the owner or in `copy` */
	uint64_t exposed_bytes;
	uint8_t *copy;			/* the owner has its memory back; NULL: it has not */
	uint64_t copy_sent, copy_bytes;	/* goes through the ring: the peer refused it */
	uint8_t *buffer;		/* for exposed bytes that have no place yet, or NULL */
	bool unwoken;			/* on the engine's list: */
	struct coll_memory *next_unwoken;
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
	free(memory->copy);
	free(memory->buffer);
	free(memory);
}

/* ---- waking ---------------------------------------------------------------- */

/* A full buffer has bytes that wake the peer already. */
static void wake_peer(struct coll_memory *memory, enum coll_ring_sleep sleep)
{
	if (sleep == COLL_RING_AWAKE)
		return;
	memory->socket->engine->counters->syscalls++;
	if (sleep == COLL_RING_AWAITS_BELL)
		coll_ring_ring_bell(&memory->out);
	else
		send(memory->socket->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* After bytes were written, or exposed. */
static void wake_reader(struct coll_memory *memory)
{
	coll_processor_barrier();
	wake_peer(memory, coll_ring_wakes_reader(&memory->out));
}

/* The reader is woken, if it sleeps, with those of other writes. */
static void wake_reader_soon(struct coll_memory *memory)
{
	struct coll_engine *engine = memory->socket->engine;

	if (memory->unwoken)
		return;
	memory->unwoken = true;
	memory->next_unwoken = engine->unwoken;
	engine->unwoken = memory;
}

void coll_memory_wake_readers(struct coll_engine *engine)
{
	struct coll_memory *memory;

	coll_processor_barrier();
	while ((memory = engine->unwoken)) {
		engine->unwoken = memory->next_unwoken;
		memory->unwoken = false;
		wake_peer(memory, coll_ring_wakes_reader(&memory->out));
	}
}

/* The first error is kept: a lack of memory here is not the peer's end. 0: it has closed. */
static void memory_end(struct coll_memory *memory, int error)
{
	if (!memory->error)
		memory->error = error;
	memory->ended = true;
}

/* Why nothing can be sent any more. */
static int memory_loss(const struct coll_memory *memory)
{
	return memory->error ? memory->error : -EPIPE;
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
		if (coll_engine_watch(watch->engine, watch, POLLIN))
			memory_end(memory, -ENOMEM);
	} else {
		memory_end(memory, got < 0 ? -errno : 0);
	}
	coll_socket_touch(memory->socket);
}

/* A counter of the peer's is impossible. */
static void memory_fail(struct coll_memory *memory)
{
	memory_end(memory, -EPROTO);
}

/* Bytes that wait in the ring, or exposed. */
static bool memory_has_bytes(struct coll_memory *memory)
{
	return coll_ring_available(&memory->in) || coll_exposed_waits(&memory->exposed_in);
}

/* ---- exposing --------------------------------------------------------------- */

/*
 * What the ring could not hold, so that the owner waits for the peer in any case. Not what comes
 * from outside of the caches: there the kernel alone copies slower than two cores with a ring.
 */
static bool memory_may_expose(const struct coll_memory *memory, const struct iovec *iov)
{
	return memory->socket->engine->exposes && iov->iov_len > memory->out.size &&
	       iov->iov_len <= EXPOSED_MAX && !memory->exposed_out.refused;
}

static void memory_expose(struct coll_memory *memory, const struct iovec *iov)
{
	memory->exposes = true;
	memory->exposed = iov->iov_base;
	memory->exposed_bytes = iov->iov_len;
	memory->socket->sending = true;
	coll_exposed_begin(&memory->exposed_out, iov->iov_base, iov->iov_len);
	memory->socket->engine->counters->exposed_bytes += iov->iov_len;
	wake_reader(memory);
}

/* The owner has its memory back, of which `result` bytes are sent. */
static void exposed_end(struct coll_memory *memory, ssize_t result)
{
	memory->exposes = false;
	if (memory->copy) {
		free(memory->copy);
		memory->copy = NULL;
		return;
	}
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, result);
}

/* The peer has taken it all, or refused, or is gone. False: it has yet to take something. */
static bool exposed_is_over(struct coll_memory *memory)
{
	bool refused;
	const int64_t taken = coll_exposed_taken(&memory->exposed_out, &refused);

	if (taken < 0)
		memory_fail(memory);
	if (memory->ended && taken != (int64_t)memory->exposed_bytes) {
		/* What the peer has sent before is read first. */
		if (memory_has_bytes(memory) && memory->socket->ops->wants_recv(memory->socket))
			return false;
		coll_exposed_withdraw(&memory->exposed_out);
		exposed_end(memory, memory_loss(memory));
		return true;
	}
	if (!refused && taken < (int64_t)memory->exposed_bytes)
		return false;
	if (refused && memory->copy) {
		memory->exposes = false;	/* the rest of the copy goes through the ring */
		memory->copy_sent = taken;
		memory->copy_bytes = memory->exposed_bytes;
		return true;
	}
	exposed_end(memory, taken);
	return true;
}

/* The owner has its memory back. Nothing more is sent. */
static void exposed_abandon(struct coll_memory *memory, int error)
{
	coll_exposed_withdraw(&memory->exposed_out);
	memory_end(memory, error);
	exposed_end(memory, error);
}

/* The owner wants its memory: a copy stands for it. Without memory for one the connection ends. */
static void memory_give_back(struct coll_memory *memory)
{
	bool refused;
	int64_t taken;
	uint8_t *copy;

	if (exposed_is_over(memory))
		return;
	taken = coll_exposed_taken(&memory->exposed_out, &refused);
	copy = taken < 0 ? NULL : malloc(memory->exposed_bytes);
	if (!copy) {
		exposed_abandon(memory, taken < 0 ? taken : -ENOMEM);
		return;
	}
	memcpy(copy + taken, memory->exposed + taken, memory->exposed_bytes - taken);
	coll_exposed_move(&memory->exposed_out, taken, copy + taken);
	/* A reader that looked meanwhile saw nothing to read, and may sleep. */
	wake_reader(memory);
	memory->copy = copy;		/* before the owner may send more */
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, memory->exposed_bytes);
}

/* What the peer refused of a copy. True: all of it has gone. */
static bool memory_send_copy(struct coll_memory *memory)
{
	struct iovec iov = { memory->copy + memory->copy_sent,
			     memory->copy_bytes - memory->copy_sent };
	const ssize_t sent = coll_ring_write(&memory->out, &iov, 1);

	if (sent < 0)
		memory_fail(memory);
	else
		memory->copy_sent += sent;
	if (sent > 0)
		wake_reader(memory);
	memory->blocked = memory->copy_sent < memory->copy_bytes && !memory->ended;
	if (memory->blocked)
		return false;
	free(memory->copy);
	memory->copy = NULL;
	return true;
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
	coll_exposed_attach(&memory->exposed_in, &memory->in, peer_pid(socket->fd));
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
	if (socket->engine->unwoken)
		coll_memory_wake_readers(socket->engine);
	coll_exposed_withdraw(&memory->exposed_out);
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
		memory_give_back(socket->memory);
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
		return memory_has_bytes(socket->memory);
	return !ioctl(socket->fd, FIONREAD, &left) && left;
}

/* ---- moving bytes ---------------------------------------------------------- */

static bool memory_send(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	bool moved = false;

	memory->blocked = false;
	socket->ops->wants_send(socket);	/* the owner serves what was touched, also now */
	if (memory->exposes && !exposed_is_over(memory))
		return false;
	if (memory->copy && !memory_send_copy(memory))
		return false;
	while (socket->ops->wants_send(socket)) {
		struct iovec iov[COLL_SEND_IOV_MAX];
		const int64_t space = memory->ended ? 0 : coll_ring_space(&memory->out);
		ssize_t sent;
		int count, i;

		if (space < 0)
			memory_fail(memory);
		if (memory->ended) {		/* what the peer has sent before is read first */
			if (!memory_has_bytes(memory) || !socket->ops->wants_recv(socket))
				socket->ops->sent(socket, memory_loss(memory));
			return true;
		}
		if (!space) {
			memory->blocked = true;
			return moved;
		}
		count = socket->ops->send_iov(socket, iov, COLL_SEND_IOV_MAX);
		if (memory_may_expose(memory, iov)) {
			memory_expose(memory, iov);
			return true;
		}
		for (i = 1; i < count && !memory_may_expose(memory, &iov[i]); i++)
			;
		sent = coll_ring_write(&memory->out, iov, i);
		if (sent >= 0)
			wake_reader(memory);
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
static void memory_recv_ring(struct coll_memory *memory)
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

/* Straight to where the owner wants them, if it knows. */
static void memory_recv_exposed(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	struct iovec iov[COLL_RECV_IOV_MAX];
	bool whole;
	int count = socket->ops->recv_iov(socket, iov, &whole);
	int64_t got;

	if (!count && !memory->buffer)
		memory->buffer = malloc(EXPOSED_PIECE);
	if (!count && !memory->buffer) {
		memory_end(memory, -ENOMEM);
		memory_tell_end(memory);
		return;
	}
	if (!count)
		iov[0] = (struct iovec){ memory->buffer, EXPOSED_PIECE };
	socket->engine->counters->syscalls++;
	got = coll_exposed_read(&memory->exposed_in, iov, count ? count : 1, EXPOSED_PIECE);
	if (got < 0)
		memory_fail(memory);
	if (count && got)
		socket->ops->received(socket, got);
	else if (count)
		socket->ops->received_none(socket);
	else if (got)
		socket->ops->received_in(socket, memory->buffer, got);
}

static void memory_recv_some(struct coll_memory *memory)
{
	if (coll_ring_available(&memory->in))
		memory_recv_ring(memory);
	else
		memory_recv_exposed(memory);
}

static bool memory_recv(struct coll_memory *memory)
{
	struct coll_socket *socket = memory->socket;
	int recvs = 0;

	while (memory_has_bytes(memory) && socket->ops->wants_recv(socket)) {
		if (recvs++ == RECVS_MAX)
			break;		/* the rest is served next time */
		memory_recv_some(memory);
		if (memory->error == -EPROTO || memory->error == -ENOMEM)
			return true;
	}
	if (recvs)
		wake_peer(memory, coll_ring_wakes_writer(&memory->in));
	if (memory->ended && !memory_has_bytes(memory) && socket->ops->wants_recv(socket))
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
	if (memory->blocked || memory->exposes || memory->copy || memory->ended || socket->engine->short_io ||
	    coll_ring_space(&memory->out) < (int64_t)bytes)
		return false;
	if (coll_ring_write(&memory->out, iov, count) != (ssize_t)bytes)
		return false;		/* the counter was impossible: nothing was written */
	wake_reader_soon(memory);
	return true;
}

bool coll_memory_serve(struct coll_engine *engine)
{
	struct coll_memory *memory;
	bool moved = false;

	if (engine->unwoken)
		coll_memory_wake_readers(engine);
	engine->looks++;
	for (memory = engine->memories; memory; memory = memory->next) {
		if (memory->exposes ? exposed_is_over(memory) :
				      memory->blocked && coll_ring_space(&memory->out)) {
			memory_send(memory);
			moved = true;
		}
		if (memory_has_bytes(memory) || (memory->ended && !memory->told))
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
	return !socket->ops->wants_recv(socket) ||
	       (coll_ring_await_bytes(&memory->in, sleep) && !coll_exposed_waits(&memory->exposed_in));
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
