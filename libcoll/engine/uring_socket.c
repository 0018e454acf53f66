// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Sockets in io_uring: sends, receives, and their buffers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/port.h"
#include "memory.h"
#include "uring.h"

enum {
	FILES = 1024,
	BUFFERS = 128,			/* a power of two */
	BUFFER_GROUP = 0,
};

/* ---- buffers and files ------------------------------------------------- */

static void uring_buffer_return(struct coll_uring *uring, unsigned int id)
{
	io_uring_buf_ring_add(uring->buffers, uring->memory + (size_t)id * URING_BUFFER_BYTES,
			      URING_BUFFER_BYTES, id, BUFFERS - 1, 0);
	io_uring_buf_ring_advance(uring->buffers, 1);
}

static void uring_open_buffer_ring(struct coll_uring *uring)
{
	size_t ring_bytes = BUFFERS * sizeof(struct io_uring_buf);
	struct io_uring_buf_reg registration = { .ring_entries = BUFFERS, .bgid = BUFFER_GROUP };
	unsigned int id;
	void *ring = mmap(NULL, ring_bytes + BUFFERS * URING_BUFFER_BYTES, PROT_READ | PROT_WRITE,
			  MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	if (ring == MAP_FAILED)
		return;
	registration.ring_addr = (uintptr_t)ring;
	if (io_uring_register_buf_ring(&uring->ring, &registration, 0)) {
		munmap(ring, ring_bytes + BUFFERS * URING_BUFFER_BYTES);
		return;
	}
	uring->buffers = ring;
	uring->memory = (uint8_t *)ring + ring_bytes;
	io_uring_buf_ring_init(uring->buffers);
	for (id = 0; id < BUFFERS; id++)
		uring_buffer_return(uring, id);
}

void coll_uring_open_buffers(struct coll_uring *uring)
{
	uring_open_buffer_ring(uring);
	if (!io_uring_register_files_sparse(&uring->ring, FILES))
		uring->file_used = calloc(FILES, sizeof(*uring->file_used));
}

void coll_uring_close_buffers(struct coll_uring *uring)
{
	free(uring->file_used);
	if (uring->buffers)
		munmap(uring->buffers,
		       BUFFERS * (sizeof(struct io_uring_buf) + (size_t)URING_BUFFER_BYTES));
}

static int uring_file_register(struct coll_uring *uring, int fd)
{
	int i;

	for (i = 0; uring->file_used && i < FILES; i++)
		if (!uring->file_used[i]) {
			if (io_uring_register_files_update(&uring->ring, i, &fd, 1) != 1)
				return -1;
			uring->file_used[i] = true;
			return i;
		}
	return -1;
}

static void uring_file_unregister(struct coll_uring *uring, int file)
{
	int none = -1;

	if (file < 0)
		return;
	io_uring_register_files_update(&uring->ring, file, &none, 1);
	uring->file_used[file] = false;
}

/* ---- attaching --------------------------------------------------------- */

/* The kernel goes on with what a socket did not take; the kernel's TLS does not know the flag. */
static int send_flags(int fd)
{
	char protocol[16] = "";
	socklen_t bytes = sizeof(protocol);

	return !getsockopt(fd, IPPROTO_TCP, TCP_ULP, protocol, &bytes) && bytes ?
		       MSG_NOSIGNAL : MSG_NOSIGNAL | MSG_WAITALL;
}

int coll_uring_attach(struct coll_socket *socket)
{
	struct coll_uring *uring = coll_uring_of(socket->engine);
	struct coll_uring_socket *own = calloc(1, sizeof(*own));

	if (own && !uring->buffers)
		own->buffer = malloc(URING_BUFFER_BYTES);
	if (!own || (!uring->buffers && !own->buffer)) {
		free(own);
		return -ENOMEM;
	}
	own->socket = socket;
	own->send_flags = send_flags(socket->fd);
	own->file = uring_file_register(uring, socket->fd);
	socket->own = own;
	return 0;
}

static void finish_detach(struct coll_uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	coll_assert(own->detaching && !socket->sending && !socket->receiving);
	uring_file_unregister(coll_uring_of(socket->engine), own->file);
	close(socket->fd);
	free(own->buffer);
	free(own);
	socket->own = NULL;
	socket->ops->detached(socket);
}

void coll_uring_detach(struct coll_socket *socket)
{
	struct coll_uring_socket *own = socket->own;

	own->detaching = true;
	if (!socket->sending && !socket->receiving)
		finish_detach(own);
}

/* ---- submitting -------------------------------------------------------- */

static void finish_socket_sqe(struct io_uring_sqe *sqe, const struct coll_uring_socket *own,
			      enum coll_uring_tag tag)
{
	sqe->fd = own->file >= 0 ? own->file : own->socket->fd;
	if (own->file >= 0)
		sqe->flags |= IOSQE_FIXED_FILE;
	coll_uring_sqe_owner(sqe, own, tag);
}

static void prepare_send(struct coll_uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	coll_assert(!socket->sending && !own->detaching);
	own->send = (struct msghdr){
		.msg_iov = own->send_iov,
		.msg_iovlen = socket->ops->send_iov(socket, own->send_iov, COLL_SEND_IOV_MAX),
	};
	socket->sending = true;
}

static void submit_send(struct coll_engine *engine, struct coll_uring_socket *own)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct io_uring_sqe *sqe = coll_uring_sqe(engine);

	if (own->send.msg_iovlen == 1)
		io_uring_prep_send(sqe, 0, own->send_iov[0].iov_base, own->send_iov[0].iov_len,
				   own->send_flags);
	else
		io_uring_prep_sendmsg(sqe, 0, &own->send, own->send_flags);
	finish_socket_sqe(sqe, own, TAG_SEND);
	own->quiet = own->socket->ops->sends_quietly(own->socket);
	if (own->quiet)
		uring->quiet_sends++;
	else
		uring->others++;
}

static void prepare_recv(struct coll_uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	coll_assert(!socket->receiving && !own->detaching);
	own->whole = false;
	own->parts = socket->ops->recv_iov(socket, own->recv_iov, &own->whole);
	own->recv = (struct msghdr){ .msg_iov = own->recv_iov, .msg_iovlen = own->parts };
	socket->receiving = true;
}

static void submit_recv(struct coll_engine *engine, struct coll_uring_socket *own)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct io_uring_sqe *sqe = coll_uring_sqe(engine);

	if (own->parts > 1) {
		io_uring_prep_recvmsg(sqe, 0, &own->recv, own->whole ? MSG_WAITALL : 0);
	} else if (own->parts == 1) {
		io_uring_prep_recv(sqe, 0, own->recv_iov[0].iov_base, own->recv_iov[0].iov_len,
				   own->whole ? MSG_WAITALL : 0);
	} else if (uring->buffers) {
		io_uring_prep_recv(sqe, 0, NULL, URING_BUFFER_BYTES, 0);
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = BUFFER_GROUP;
	} else {
		io_uring_prep_recv(sqe, 0, own->buffer, URING_BUFFER_BYTES, 0);
	}
	finish_socket_sqe(sqe, own, TAG_RECV);
	uring->others++;
}

/* -ECANCELED: cancelled by pause or let_go, perhaps late. */
static bool is_temporary(int result)
{
	return result == -EAGAIN || result == -EINTR || result == -ENOBUFS || result == -ECANCELED;
}

/* Sends straight to the socket; the rest goes through the ring. */
static void send_now(struct coll_engine *engine, struct coll_uring_socket *own)
{
	ssize_t result = sendmsg(own->socket->fd, &own->send, MSG_NOSIGNAL | MSG_DONTWAIT);

	engine->counters->syscalls++;
	result = result < 0 ? -errno : result;
	if (is_temporary(result))
		submit_send(engine, own);
	else
		own->socket->ops->sent(own->socket, result);
}

void coll_uring_submit_polled(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_uring_socket *own = uring->polled;

	if (!own || !coll_uring_has_capacity(engine, 1))
		return;
	uring->polled = NULL;
	submit_recv(engine, own);
}

void coll_uring_submit_touched(struct coll_engine *engine, bool looks)
{
	struct coll_uring *uring = coll_uring_of(engine);
	const bool alone = looks && engine->touched && !engine->touched->next;
	struct coll_socket *socket;

	while ((socket = engine->touched) && coll_uring_has_capacity(engine, 2)) {
		struct coll_uring_socket *own = socket->own;

		engine->touched = socket->next;
		socket->touched = false;
		if (socket->memory) {
			coll_memory_work(socket);
			continue;
		}
		if (socket->ops->wants_send(socket)) {
			prepare_send(own);
			if (alone)
				send_now(engine, own);
			else
				submit_send(engine, own);
		}
		if (!socket->ops->wants_recv(socket))
			continue;
		prepare_recv(own);
		if (alone && !uring->polled && !own->whole)
			uring->polled = own;
		else
			submit_recv(engine, own);
	}
}

/* ---- completing -------------------------------------------------------- */

void coll_uring_send_complete(struct coll_engine *engine, struct coll_uring_socket *own, int result)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_socket *socket = own->socket;
	bool detaching = own->detaching;

	if (!own->quiet)
		uring->others--;
	else if (!--uring->quiet_sends)
		uring->quiet_stuck = false;
	if (detaching)
		result = -ECANCELED;
	else if (is_temporary(result))
		result = 0;
	socket->ops->sent(socket, result);
	if (detaching && !socket->receiving)
		finish_detach(own);
}

/* A receive has ended. `data` has its bytes if it went to any buffer. */
static void recv_end(struct coll_uring_socket *own, const uint8_t *data, int result)
{
	struct coll_socket *socket = own->socket;
	const bool detaching = own->detaching;

	if (detaching)
		result = -ECANCELED;
	if (!detaching && is_temporary(result))
		socket->ops->received_none(socket);
	else if (own->parts)
		socket->ops->received(socket, result);
	else
		socket->ops->received_in(socket, data, result);
	if (detaching && !socket->sending)
		finish_detach(own);
}

void coll_uring_recv_complete(struct coll_engine *engine, struct coll_uring_socket *own, int result,
			      unsigned int flags)
{
	struct coll_uring *uring = coll_uring_of(engine);
	unsigned int id = flags >> IORING_CQE_BUFFER_SHIFT;
	const uint8_t *data = own->buffer;

	uring->others--;
	if (flags & IORING_CQE_F_BUFFER)
		data = uring->memory + (size_t)id * URING_BUFFER_BYTES;
	recv_end(own, data, result);
	if (flags & IORING_CQE_F_BUFFER)
		uring_buffer_return(uring, id);
}

bool coll_uring_poll_socket(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_uring_socket *own = uring->polled;
	ssize_t result;

	if (!own)
		return false;
	engine->counters->syscalls++;
	if (own->parts)
		result = recvmsg(own->socket->fd, &own->recv, MSG_DONTWAIT);
	else
		result = recv(own->socket->fd, uring->stage, sizeof(uring->stage),
			      MSG_DONTWAIT);
	result = result < 0 ? -errno : result;
	if (is_temporary(result))
		return false;
	uring->polled = NULL;
	recv_end(own, uring->stage, result);
	return true;
}

/* ---- pausing ----------------------------------------------------------- */

/* Ends a send or a receive in flight, with the bytes that have moved. */
static int cancel_one(struct coll_engine *engine, struct coll_uring_socket *own,
		      enum coll_uring_tag tag)
{
	struct coll_uring *uring = coll_uring_of(engine);
	int error;

	if (io_uring_sq_ready(&uring->ring))
		coll_uring_submit(engine);
	error = coll_uring_cancel_now(uring, own, tag);
	/* It has ended, or is about to; or a signal came before it has. */
	if (error == -ENOENT || error == -EALREADY || error == -EINTR)
		error = 0;
	return error;
}

/*
 * This thread may have stood still for longer than the limit: what has ended meanwhile is looked at
 * in any case.
 */
int coll_uring_pause(struct coll_socket *socket)
{
	const uint64_t until = coll_now() + URING_PAUSE_MAX_NS;
	struct coll_engine *engine = socket->engine;
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_uring_socket *own = socket->own;
	bool late = false;
	int error = 0;

	if (uring->polled == own) {
		uring->polled = NULL;
		recv_end(own, NULL, -EAGAIN);
	}
	while (!error && !late && (socket->receiving || socket->sending)) {
		late = coll_now() >= until;
		if (socket->receiving)
			error = cancel_one(engine, own, TAG_RECV);
		if (!error && socket->sending)
			error = cancel_one(engine, own, TAG_SEND);
		io_uring_get_events(&uring->ring);
		coll_uring_reap(engine);
	}
	return error ? error : socket->receiving || socket->sending ? -EBUSY : 0;
}

void coll_uring_resume(struct coll_socket *socket)
{
	(void)socket;	/* the next touch submits */
}
