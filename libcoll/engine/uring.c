// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The io_uring engine. One ring a engine; all sends and receives of a step go
 * to the kernel in one io_uring_enter, which also waits. One send and one
 * receive are in flight a link at most, so bytes keep their order.
 *
 * How many completions to wait for: a send completes while it is submitted,
 * unless the socket's buffer is full, and nobody waits to hear of a message that
 * was sent from its own copy (MESSAGE_INLINE_MAX). So the wait is for all such
 * sends and one completion more, which makes one enter a round. If a buffer was
 * full after all, a short time-out ends that wait.
 *
 * Where only one link has work, and we look around before we sleep, its bytes go
 * by sendmsg() and recvmsg() at once: an arrival costs the ring a poll that fires
 * and an enter that receives. A receive that is looked for in this way is handed
 * to the ring before anybody sleeps.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"

enum {
	ENTRIES = 256,
	COMPLETIONS = 4096,
	FILES = 1024,
	BUFFERS = 128,			/* a power of two */
	BUFFER_BYTES = 8192,
	BUFFER_GROUP = 0,
	QUIET_WAIT_NS = 10000000,
	/* A message between two cores takes about this: not worth giving one away. */
	KEEP_CORE_NS = 5000,
	/* A canceled receive ends at once; this is only so that nothing hangs. */
	PAUSE_MAX_NS = 100000000,
};

enum tag {
	TAG_NONE,
	TAG_SEND,
	TAG_RECV,
	TAG_WATCH,
	TAG_MASK = 3,
};

/* A watch in the kernel's hands; outlives the watch if that is withdrawn. */
struct uring_poll {
	struct coll_watch *watch;		/* NULL: withdrawn */
	bool stopped;			/* by let_go() */
	int events;
	struct uring_poll *next, **slot;	/* all of them, for the end */
};

struct uring_socket {
	struct coll_socket *socket;
	int file;			/* index in the ring's table, or -1 */
	bool quiet;			/* nobody waits for the send in flight */
	int parts;			/* of the receive in flight: 0: to any buffer */
	bool whole;			/* all of it is sure to come */
	bool detaching;
	uint8_t *buffer;		/* where the kernel has no buffer rings */
	struct msghdr send, recv;
	struct iovec send_iov[COLL_SEND_IOV_MAX], recv_iov[2];
};

struct uring {
	struct io_uring ring;
	struct io_uring_buf_ring *buffers;
	uint8_t *memory;		/* of the buffers */
	bool *file_used;		/* NULL: no table of files */
	uint32_t quiet_sends;		/* in flight */
	uint32_t others;		/* other sends and receives in flight */
	struct uring_socket *looked_at;	/* whose receive is not in the ring yet, or NULL */
	uint8_t stage[BUFFER_BYTES];	/* where that one's small messages come */
	uint64_t spin_ns;
	pthread_t thread;		/* the ring serves this one only */
	struct uring_poll *polls;
	int event_fd;			/* for coll_fd(); -1: nobody asked */
	bool letting_go;		/* what ends now goes on in another thread */
};

static struct uring *uring_of(const struct coll_engine *engine)
{
	return engine->state;
}

/* ---- opening ------------------------------------------------------------ */

/*
 * The best ring this kernel gives. Completions wait for us to enter the ring
 * (DEFER) or come with any system call (COOP). Where ranks outnumber cores and
 * we look around before sleeping, each look is a sched_yield(), so COOP brings
 * completions without an enter of their own; else DEFER is cheaper.
 */
static int open_ring(struct io_uring *ring, bool yields, bool moves)
{
	static const unsigned int all[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		0,
	};
	const unsigned int skip = moves ? 2 : yields;
	const unsigned int *flags = all + skip;
	const unsigned int count = sizeof(all) / sizeof(*all) - skip;
	unsigned int i;
	int error = -ENOSYS;

	for (i = 0; i < count; i++) {
		struct io_uring_params params = {
			.flags = flags[i] | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
			.cq_entries = COMPLETIONS,
		};

		error = io_uring_queue_init_params(ENTRIES, ring, &params);
		if (error != -EINVAL)
			break;
	}
	if (error)
		return error;
	if (!(ring->features & IORING_FEAT_FAST_POLL) || !(ring->features & IORING_FEAT_EXT_ARG)) {
		io_uring_queue_exit(ring);
		return -ENOSYS;
	}
	if (!moves)
		io_uring_register_ring_fd(ring);	/* cheaper enters; fine without */
	return 0;
}

static void buffer_give(struct uring *uring, unsigned int id)
{
	io_uring_buf_ring_add(uring->buffers, uring->memory + (size_t)id * BUFFER_BYTES,
			      BUFFER_BYTES, id, BUFFERS - 1, 0);
	io_uring_buf_ring_advance(uring->buffers, 1);
}

/* A ring of buffers for small messages. Without one, links have their own. */
static void open_buffers(struct uring *uring)
{
	size_t ring_bytes = BUFFERS * sizeof(struct io_uring_buf);
	struct io_uring_buf_reg registration = { .ring_entries = BUFFERS, .bgid = BUFFER_GROUP };
	unsigned int id;
	void *ring = mmap(NULL, ring_bytes + BUFFERS * BUFFER_BYTES, PROT_READ | PROT_WRITE,
			  MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	if (ring == MAP_FAILED)
		return;
	registration.ring_addr = (uintptr_t)ring;
	if (io_uring_register_buf_ring(&uring->ring, &registration, 0)) {
		munmap(ring, ring_bytes + BUFFERS * BUFFER_BYTES);
		return;
	}
	uring->buffers = ring;
	uring->memory = (uint8_t *)ring + ring_bytes;
	io_uring_buf_ring_init(uring->buffers);
	for (id = 0; id < BUFFERS; id++)
		buffer_give(uring, id);
}

static int uring_open(struct coll_engine *engine)
{
	struct uring *uring = calloc(1, sizeof(*uring));
	int error;

	if (!uring)
		return -ENOMEM;
	uring->spin_ns = engine->spin_ns;
	error = open_ring(&uring->ring, engine->crowded && uring->spin_ns,
			  engine->moves);
	if (error) {
		free(uring);
		return error;
	}
	open_buffers(uring);
	if (!io_uring_register_files_sparse(&uring->ring, FILES))
		uring->file_used = calloc(FILES, sizeof(*uring->file_used));
	uring->event_fd = -1;
	uring->thread = pthread_self();
	engine->state = uring;
	return 0;
}

/* Withdrawn ones, of which the ring had not told any more. */
static void polls_free(struct uring *uring)
{
	while (uring->polls) {
		struct uring_poll *next = uring->polls->next;

		free(uring->polls);
		uring->polls = next;
	}
}

static void uring_close(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);

	io_uring_queue_exit(&uring->ring);
	polls_free(uring);
	if (uring->event_fd >= 0)
		close(uring->event_fd);
	if (uring->buffers)
		munmap(uring->buffers,
		       BUFFERS * (sizeof(struct io_uring_buf) + (size_t)BUFFER_BYTES));
	free(uring->file_used);
	free(uring);
	engine->state = NULL;
}

/* ---- submitting --------------------------------------------------------- */

static void uring_submit(struct coll_engine *engine)
{
	engine->counters->enters++;
	io_uring_submit(&uring_of(engine)->ring);
}

/* Whether so many entries are free; a full queue is handed over first. */
static bool have_room(struct coll_engine *engine, unsigned int entries)
{
	struct io_uring *ring = &uring_of(engine)->ring;

	if (io_uring_sq_space_left(ring) < entries)
		uring_submit(engine);
	return io_uring_sq_space_left(ring) >= entries;
}

/* After have_room(). */
static struct io_uring_sqe *get_sqe(struct coll_engine *engine)
{
	return io_uring_get_sqe(&uring_of(engine)->ring);
}

/* After the operation is prepared, which clears what is set here. */
static void finish_sqe(struct io_uring_sqe *sqe, const void *owner, enum tag tag)
{
	sqe->user_data = (uintptr_t)owner | tag;
}

static void finish_socket_sqe(struct io_uring_sqe *sqe, const struct uring_socket *own,
			      enum tag tag)
{
	sqe->fd = own->file >= 0 ? own->file : own->socket->fd;
	if (own->file >= 0)
		sqe->flags |= IOSQE_FIXED_FILE;
	finish_sqe(sqe, own, tag);
}

static void prepare_send(struct uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	own->send = (struct msghdr){
		.msg_iov = own->send_iov,
		.msg_iovlen = socket->ops->send_iov(socket, own->send_iov, COLL_SEND_IOV_MAX),
	};
	socket->sending = true;
}

static void submit_send(struct coll_engine *engine, struct uring_socket *own)
{
	struct uring *uring = uring_of(engine);
	struct io_uring_sqe *sqe = get_sqe(engine);
	const int flags = MSG_NOSIGNAL | MSG_WAITALL;

	if (own->send.msg_iovlen == 1)
		io_uring_prep_send(sqe, 0, own->send_iov[0].iov_base, own->send_iov[0].iov_len,
				   flags);
	else
		io_uring_prep_sendmsg(sqe, 0, &own->send, flags);
	finish_socket_sqe(sqe, own, TAG_SEND);
	own->quiet = own->socket->ops->sends_quietly(own->socket);
	if (own->quiet)
		uring->quiet_sends++;
	else
		uring->others++;
}

static void prepare_recv(struct uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	own->whole = false;
	own->parts = socket->ops->recv_iov(socket, own->recv_iov, &own->whole);
	own->recv = (struct msghdr){ .msg_iov = own->recv_iov, .msg_iovlen = own->parts };
	socket->receiving = true;
}

static void submit_recv(struct coll_engine *engine, struct uring_socket *own)
{
	struct uring *uring = uring_of(engine);
	struct io_uring_sqe *sqe = get_sqe(engine);

	if (own->parts == 2) {
		io_uring_prep_recvmsg(sqe, 0, &own->recv, own->whole ? MSG_WAITALL : 0);
	} else if (own->parts == 1) {
		io_uring_prep_recv(sqe, 0, own->recv_iov[0].iov_base, own->recv_iov[0].iov_len,
				   own->whole ? MSG_WAITALL : 0);
	} else if (uring->buffers) {
		io_uring_prep_recv(sqe, 0, NULL, BUFFER_BYTES, 0);
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = BUFFER_GROUP;
	} else {
		io_uring_prep_recv(sqe, 0, own->buffer, BUFFER_BYTES, 0);
	}
	finish_socket_sqe(sqe, own, TAG_RECV);
	uring->others++;
}

/* Canceled is what we cancel ourselves, to pause or to let go, even if it ends late. */
static bool try_again(int result)
{
	return result == -EAGAIN || result == -EINTR || result == -ENOBUFS || result == -ECANCELED;
}

/* Straight to the socket; what it does not take goes by the ring. */
static void send_now(struct coll_engine *engine, struct uring_socket *own)
{
	ssize_t result = sendmsg(own->socket->fd, &own->send, MSG_NOSIGNAL | MSG_DONTWAIT);

	engine->counters->syscalls++;
	result = result < 0 ? -errno : result;
	if (try_again(result))
		submit_send(engine, own);
	else
		own->socket->ops->sent(own->socket, result);
}

/* What is looked for at the socket is the ring's from now on: we may sleep. */
static void submit_looked_at(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	struct uring_socket *own = uring->looked_at;

	if (!own || !have_room(engine, 1))
		return;
	uring->looked_at = NULL;
	submit_recv(engine, own);
}

/*
 * Hands the touched links' work to the submission queue; where it is one link's
 * only, and somebody looks for what comes, to its socket.
 */
static void submit_touched(struct coll_engine *engine, bool looks)
{
	struct uring *uring = uring_of(engine);
	const bool alone = looks && engine->touched && !engine->touched->next;
	struct coll_socket *socket;

	while ((socket = engine->touched) && have_room(engine, 2)) {
		struct uring_socket *own = socket->own;

		engine->touched = socket->next;
		socket->touched = false;
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
		if (alone && !uring->looked_at && !own->whole)
			uring->looked_at = own;
		else
			submit_recv(engine, own);
	}
}

/* ---- links -------------------------------------------------------------- */

static int file_take(struct uring *uring, int fd)
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

static void file_give(struct uring *uring, int file)
{
	int none = -1;

	if (file < 0)
		return;
	io_uring_register_files_update(&uring->ring, file, &none, 1);
	uring->file_used[file] = false;
}

static int uring_attach(struct coll_socket *socket)
{
	struct uring *uring = uring_of(socket->engine);
	struct uring_socket *own = calloc(1, sizeof(*own));

	if (own && !uring->buffers)
		own->buffer = malloc(BUFFER_BYTES);
	if (!own || (!uring->buffers && !own->buffer)) {
		free(own);
		return -ENOMEM;
	}
	own->socket = socket;
	own->file = file_take(uring, socket->fd);
	socket->own = own;
	return 0;
}

static void finish_detach(struct uring_socket *own)
{
	struct coll_socket *socket = own->socket;

	file_give(uring_of(socket->engine), own->file);
	close(socket->fd);
	free(own->buffer);
	free(own);
	socket->own = NULL;
	socket->ops->detached(socket);
}

static void uring_detach(struct coll_socket *socket)
{
	struct uring_socket *own = socket->own;

	own->detaching = true;
	if (!socket->sending && !socket->receiving)
		finish_detach(own);
}

/* ---- completing --------------------------------------------------------- */

static void send_complete(struct coll_engine *engine, struct uring_socket *own, int result)
{
	struct uring *uring = uring_of(engine);
	struct coll_socket *socket = own->socket;
	bool detaching = own->detaching;

	if (own->quiet)
		uring->quiet_sends--;
	else
		uring->others--;
	if (detaching)
		result = -ECANCELED;
	else if (try_again(result))
		result = 0;
	socket->ops->sent(socket, result);
	if (detaching && !socket->receiving)
		finish_detach(own);
}

/* The receive has ended; `data` is where its bytes are if any buffer would do. */
static void recv_end(struct uring_socket *own, const uint8_t *data, int result)
{
	struct coll_socket *socket = own->socket;
	const bool detaching = own->detaching;

	if (detaching)
		result = -ECANCELED;
	if (!detaching && try_again(result))
		socket->ops->received_none(socket);
	else if (own->parts)
		socket->ops->received(socket, result);
	else
		socket->ops->received_in(socket, data, result);
	if (detaching && !socket->sending)
		finish_detach(own);
}

static void recv_complete(struct coll_engine *engine, struct uring_socket *own, int result,
			  unsigned int flags)
{
	struct uring *uring = uring_of(engine);
	unsigned int id = flags >> IORING_CQE_BUFFER_SHIFT;
	const uint8_t *data = own->buffer;

	uring->others--;
	if (flags & IORING_CQE_F_BUFFER)
		data = uring->memory + (size_t)id * BUFFER_BYTES;
	recv_end(own, data, result);
	if (flags & IORING_CQE_F_BUFFER)
		buffer_give(uring, id);
}

/* Whether something has come that is looked for at its socket. */
static bool uring_look(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	struct uring_socket *own = uring->looked_at;
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
	if (try_again(result))
		return false;
	uring->looked_at = NULL;
	recv_end(own, uring->stage, result);
	return true;
}

static void poll_keep(struct uring *uring, struct uring_poll *own)
{
	own->slot = &uring->polls;
	own->next = uring->polls;
	if (own->next)
		own->next->slot = &own->next;
	uring->polls = own;
}

static void poll_free(struct uring_poll *own)
{
	*own->slot = own->next;
	if (own->next)
		own->next->slot = own->slot;
	free(own);
}

/* It was canceled, and somebody still wants it. */
static void poll_again(struct coll_engine *engine, struct uring_poll *own)
{
	struct io_uring_sqe *sqe;

	if (!have_room(engine, 1))
		return;
	own->stopped = false;
	sqe = get_sqe(engine);
	io_uring_prep_poll_add(sqe, own->watch->fd, own->events);
	finish_sqe(sqe, own, TAG_WATCH);
}

static void poll_complete(struct uring_poll *own, int result)
{
	struct coll_watch *watch = own->watch;

	if (watch && result == -ECANCELED) {
		own->stopped = true;
		if (!uring_of(watch->engine)->letting_go)
			poll_again(watch->engine, own);
		return;
	}
	poll_free(own);
	if (!watch)
		return;
	watch->armed = false;
	watch->ready(watch, result < 0 ? POLLERR : result);
}

static void uring_complete(struct coll_engine *engine, const struct io_uring_cqe *cqe)
{
	void *owner = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)TAG_MASK);

	switch (cqe->user_data & TAG_MASK) {
	case TAG_SEND:
		send_complete(engine, owner, cqe->res);
		break;
	case TAG_RECV:
		recv_complete(engine, owner, cqe->res, cqe->flags);
		break;
	case TAG_WATCH:
		poll_complete(owner, cqe->res);
		break;
	}
}

static void uring_reap(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	struct io_uring_cqe *cqe;

	/* One by one: what a completion leads to may submit, even enter. */
	while (!io_uring_peek_cqe(&uring->ring, &cqe)) {
		struct io_uring_cqe copy = { .user_data = cqe->user_data, .res = cqe->res,
					     .flags = cqe->flags };

		io_uring_cqe_seen(&uring->ring, cqe);
		uring_complete(engine, &copy);
	}
}

/* ---- pausing ------------------------------------------------------------ */

/* The receive in flight ends, with what it has or without. */
static int cancel_recv(struct coll_engine *engine, struct uring_socket *own)
{
	struct uring *uring = uring_of(engine);
	struct io_uring_sync_cancel_reg cancel = {
		.addr = (uintptr_t)own | TAG_RECV,
		.fd = -1,
		.timeout = { -1, -1 },
	};
	int error;

	if (io_uring_sq_ready(&uring->ring))
		uring_submit(engine);
	error = io_uring_register_sync_cancel(&uring->ring, &cancel);
	if (error == -ENOENT || error == -EALREADY)	/* it has ended, or is about to */
		error = 0;
	return error;
}

static int uring_pause(struct coll_socket *socket)
{
	const uint64_t until = coll_now() + PAUSE_MAX_NS;
	struct coll_engine *engine = socket->engine;
	struct uring *uring = uring_of(engine);
	struct uring_socket *own = socket->own;
	int error = 0;

	if (uring->looked_at == own) {
		uring->looked_at = NULL;
		recv_end(own, NULL, -EAGAIN);
	}
	if (socket->receiving)
		error = cancel_recv(engine, own);
	while (!error && socket->receiving && coll_now() < until) {
		io_uring_get_events(&uring->ring);
		uring_reap(engine);
	}
	return error ? error : socket->receiving ? -EBUSY : 0;
}

static void uring_resume(struct coll_socket *socket)
{
	(void)socket;	/* the next touch submits */
}

/* ---- waiting ------------------------------------------------------------ */

/* Whether the kernel has something that it hands over when the ring is entered. */
static bool work_pending(const struct io_uring *ring)
{
	return IO_URING_READ_ONCE(*ring->sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Whether it does so at that time only; else any system call brings it. */
static bool enters_bring(const struct io_uring *ring)
{
	return ring->flags & IORING_SETUP_DEFER_TASKRUN;
}

/* For who calls in often: no system call where the kernel says by a flag if one is due. */
static bool nothing_due(const struct coll_engine *engine)
{
	const struct uring *uring = uring_of(engine);
	const struct io_uring *ring = &uring->ring;

	return ring->flags & IORING_SETUP_TASKRUN_FLAG && !engine->touched && !uring->looked_at &&
	       !io_uring_sq_ready(ring) && !io_uring_cq_ready(ring) && !work_pending(ring);
}

/*
 * Submits, and looks for a while before anybody sleeps: at memory that the
 * kernel writes, or at the one socket that matters. Whom we wait for may want this
 * very core, so it is offered each time, soon also where each rank has its own; a
 * core that ran out of work would take long to wake up, in a virtual machine
 * above all.
 */
static bool uring_spin(struct coll_engine *engine, unsigned int wanted, uint64_t deadline)
{
	struct uring *uring = uring_of(engine);
	struct io_uring *ring = &uring->ring;
	const uint64_t start = coll_now(), until = start + uring->spin_ns;
	const uint64_t offer = engine->crowded ? start : start + KEEP_CORE_NS;
	uint64_t now;

	if (io_uring_sq_ready(ring))
		uring_submit(engine);
	while (!uring_look(engine) && io_uring_cq_ready(ring) < wanted) {
		now = coll_now();
		if (now >= until || now >= deadline)
			return false;
		if (enters_bring(ring) && work_pending(ring)) {
			engine->counters->enters++;
			io_uring_get_events(ring);
		} else if (now >= offer) {
			sched_yield();
		}
	}
	return true;
}

static int wait_until(struct coll_engine *engine, uint64_t deadline)
{
	struct uring *uring = uring_of(engine);
	unsigned int wanted = uring->quiet_sends + (uring->others || uring->looked_at);
	struct __kernel_timespec timeout;
	struct io_uring_cqe *cqe;
	uint64_t now, ns;
	int result;

	wanted = wanted ? wanted : 1;
	if (uring->spin_ns && uring_spin(engine, wanted, deadline))
		return 0;
	submit_looked_at(engine);
	now = coll_now();
	ns = deadline > now ? deadline - now : 0;
	if (uring->quiet_sends && ns > QUIET_WAIT_NS)
		ns = QUIET_WAIT_NS;
	if (ns > 3600 * COLL_SECOND)
		ns = 3600 * COLL_SECOND;
	timeout.tv_sec = ns / COLL_SECOND;
	timeout.tv_nsec = ns % COLL_SECOND;
	engine->counters->enters++;
	result = io_uring_submit_and_wait_timeout(&uring->ring, &cqe, wanted, &timeout, NULL);
	return result == -ETIME || result == -EINTR || result == -EAGAIN || result >= 0 ? 0 :
											   result;
}

/* Before the completions are looked at, so that none is missed. */
static void event_clear(const struct uring *uring)
{
	uint64_t events;

	if (uring->event_fd >= 0 && read(uring->event_fd, &events, sizeof(events)) < 0)
		return;		/* there were none */
}

static int submit_and_reap(struct coll_engine *engine)
{
	int result;

	engine->counters->enters++;
	result = io_uring_submit_and_get_events(&uring_of(engine)->ring);
	uring_reap(engine);
	return result > 0 || result == -EINTR || result == -EAGAIN ? 0 : result;
}

/* Without waiting, whoever called may now sleep elsewhere: nothing is kept back. */
static int advance_at_once(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	int error;

	if (nothing_due(engine))
		return 0;
	do {
		submit_looked_at(engine);
		submit_touched(engine, false);
		error = submit_and_reap(engine);
	} while (!error && (engine->touched || io_uring_sq_ready(&uring->ring)));
	return error;
}

/* What this turn's sends led to may be what the caller waits for. */
static int advance_and_wait(struct coll_engine *engine, uint64_t deadline)
{
	struct uring *uring = uring_of(engine);
	const uint64_t runs = engine->counters->runs, check = engine->next_check;
	int error = 0;

	submit_touched(engine, uring->spin_ns);
	if (io_uring_cq_ready(&uring->ring)) {
		error = submit_and_reap(engine);
	} else if (engine->counters->runs == runs && engine->next_check >= check) {
		error = wait_until(engine, deadline);
		uring_reap(engine);
	} else if (io_uring_sq_ready(&uring->ring)) {
		uring_submit(engine);
	}
	/* Whoever called may sleep elsewhere. */
	if (uring->event_fd >= 0 && uring->looked_at && !error)
		error = advance_at_once(engine);
	return error;
}

static int uring_advance(struct coll_engine *engine, uint64_t deadline)
{
	struct uring *uring = uring_of(engine);
	const uint64_t enters = engine->counters->enters;
	int error;

	if (!pthread_equal(uring->thread, pthread_self()))
		return -EPERM;
	event_clear(uring);
	error = deadline ? advance_and_wait(engine, deadline) : advance_at_once(engine);
	engine->counters->syscalls += engine->counters->enters - enters;
	return error;
}

/* ---- watches ------------------------------------------------------------ */

/* At once with the kernel: who polls coll_fd() next may call us for this only. */
static int uring_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	struct uring_poll *own = malloc(sizeof(*own));
	struct io_uring_sqe *sqe;

	if (!own || !have_room(engine, 1)) {
		free(own);
		return -ENOMEM;
	}
	own->watch = watch;
	poll_keep(uring_of(engine), own);
	sqe = get_sqe(engine);
	io_uring_prep_poll_add(sqe, watch->fd, events);
	finish_sqe(sqe, own, TAG_WATCH);
	own->stopped = false;
	own->events = events;
	watch->engine = engine;
	watch->armed = true;
	watch->own = own;
	uring_submit(engine);
	return 0;
}

static void uring_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	struct uring_poll *own = watch->own;
	struct io_uring_sqe *sqe;

	own->watch = NULL;
	watch->armed = false;
	if (own->stopped) {
		poll_free(own);
		return;
	}
	if (!have_room(engine, 1))	/* it ends with the ring, then */
		return;
	sqe = get_sqe(engine);
	io_uring_prep_cancel64(sqe, (uintptr_t)own | TAG_WATCH, 0);
	finish_sqe(sqe, NULL, TAG_NONE);
}

/*
 * The ring's own descriptor does not wake who polls it: with DEFER_TASKRUN a
 * completion is there only once the ring is entered.
 */
static int uring_fd(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	int fd, error;

	if (uring->event_fd >= 0)
		return uring->event_fd;
	fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);	/* there may be work already */
	if (fd < 0)
		return -errno;
	error = io_uring_register_eventfd(&uring->ring, fd);
	if (error) {
		close(fd);
		return error;
	}
	return uring->event_fd = fd;
}

/* ---- changing threads --------------------------------------------------- */

static bool all_ended(const struct uring *uring)
{
	const struct uring_poll *poll;

	for (poll = uring->polls; poll; poll = poll->next)
		if (!poll->stopped)
			return false;
	return !uring->others && !uring->quiet_sends;
}

/*
 * What a thread has submitted completes on that thread, which may now compute for
 * long: so all of it ends here, with what it has done, and begins again there.
 */
static void uring_let_go(struct coll_engine *engine)
{
	const uint64_t until = coll_now() + PAUSE_MAX_NS;
	struct uring *uring = uring_of(engine);
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.fd = -1,
		.timeout = { -1, -1 },
	};

	uring->letting_go = true;
	submit_looked_at(engine);
	uring_submit(engine);
	io_uring_register_sync_cancel(&uring->ring, &all);
	uring_reap(engine);
	while (!all_ended(uring) && coll_now() < until) {
		if (io_uring_sq_ready(&uring->ring))	/* what the ends led to */
			uring_submit(engine);
		io_uring_register_sync_cancel(&uring->ring, &all);
		io_uring_get_events(&uring->ring);
		uring_reap(engine);
	}
	uring->letting_go = false;
}

static void uring_take(struct coll_engine *engine)
{
	struct uring *uring = uring_of(engine);
	struct uring_poll *poll;

	uring->thread = pthread_self();
	for (poll = uring->polls; poll; poll = poll->next)
		if (poll->stopped)
			poll_again(engine, poll);
	uring_submit(engine);
}

const struct coll_engine_ops coll_engine_uring = {
	.name = "uring",
	.open = uring_open,
	.close = uring_close,
	.attach = uring_attach,
	.pause = uring_pause,
	.resume = uring_resume,
	.let_go = uring_let_go,
	.take = uring_take,
	.detach = uring_detach,
	.advance = uring_advance,
	.watch = uring_watch,
	.unwatch = uring_unwatch,
	.fd = uring_fd,
};
