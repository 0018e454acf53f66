// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The engine for hosts that forbid io_uring: non-blocking sockets and edge-triggered epoll,
 * so that interest never changes. A socket counts as readable or writable until a call
 * returns EAGAIN.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/port.h"
#include "engine.h"
#include "memory.h"

enum {
	EVENTS = 64,
	RECVS_MAX = 32,			/* from one socket, before the others */
	BUFFER_BYTES = 16384,
	SERVED_MAX = 16,		/* advances that memory ends, before sockets are looked at */
	TAG_WATCH = 1,
};

struct epoll_socket {
	struct coll_socket *socket;
	bool readable, writable;
	bool more;			/* in the list of sockets that may have more to read */
	struct epoll_socket *next_more;
};

struct epoll {
	int fd;
	uint64_t detached;		/* sockets detached so far */
	uint32_t served;		/* advances that memory has ended */
	struct epoll_event *event;	/* `events` that are not handled yet */
	int events;
	struct epoll_socket *more;
	uint8_t buffer[BUFFER_BYTES];
};

static struct epoll *epoll_of(const struct coll_engine *engine)
{
	return engine->state;
}

static int epoll_open(struct coll_engine *engine)
{
	struct epoll *epoll = calloc(1, sizeof(*epoll));

	if (!epoll)
		return -ENOMEM;
	epoll->fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll->fd < 0) {
		free(epoll);
		return -errno;
	}
	engine->state = epoll;
	return 0;
}

static void epoll_close(struct coll_engine *engine)
{
	close(epoll_of(engine)->fd);
	free(epoll_of(engine));
	engine->state = NULL;
}

/*
 * A descriptor that is there already, as that of a watch that has fired, is only told what to wait
 * for: that takes no memory, so it cannot fail.
 */
static int descriptor_await(struct epoll *epoll, int fd, struct epoll_event *event)
{
	if (!epoll_ctl(epoll->fd, EPOLL_CTL_MOD, fd, event))
		return 0;
	return epoll_ctl(epoll->fd, EPOLL_CTL_ADD, fd, event) ? -errno : 0;
}

/* ---- links -------------------------------------------------------------- */

enum { SOCKET_EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP };

static int epoll_add(struct coll_socket *socket)
{
	struct epoll_event event = { .events = SOCKET_EVENTS | EPOLLET, .data.ptr = socket };

	return descriptor_await(epoll_of(socket->engine), socket->fd, &event);
}

static int epoll_attach(struct coll_socket *socket)
{
	struct epoll_socket *own = calloc(1, sizeof(*own));
	int error;

	if (!own)
		return -ENOMEM;
	own->socket = socket;
	own->readable = own->writable = true;	/* until a call returns EAGAIN */
	error = epoll_add(socket);
	if (error) {
		free(own);
		return error;
	}
	socket->own = own;
	return 0;
}

static void readable_add(struct epoll *epoll, struct epoll_socket *own)
{
	if (own->more)
		return;
	own->more = true;
	own->next_more = epoll->more;
	epoll->more = own;
}

static void readable_remove(struct epoll *epoll, struct epoll_socket *own)
{
	struct epoll_socket **slot = &epoll->more;

	if (!own->more)
		return;
	while (*slot != own)
		slot = &(*slot)->next_more;
	*slot = own->next_more;
	own->more = false;
}

/* Of a socket in the set, which takes no memory. */
static void epoll_ask(struct coll_socket *socket, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLET, .data.ptr = socket };

	epoll_ctl(epoll_of(socket->engine)->fd, EPOLL_CTL_MOD, socket->fd, &event);
}

/*
 * Nothing is in flight here between two calls. It stays in the set, which might have no memory to take it again,
 * and is asked for nothing: each message that comes meanwhile would wake who sleeps here.
 */
static int epoll_pause(struct coll_socket *socket)
{
	readable_remove(epoll_of(socket->engine), socket->own);
	epoll_ask(socket, 0);
	return 0;
}

static void epoll_resume(struct coll_socket *socket)
{
	struct epoll_socket *own = socket->own;

	own->readable = own->writable = true;	/* until a call returns EAGAIN */
	epoll_ask(socket, SOCKET_EVENTS);
}

/* An event that is not handled yet must not name what is gone: its memory may be freed. */
static void forget_events(struct epoll *epoll, uint64_t data)
{
	int i;

	for (i = 0; i < epoll->events; i++)
		if (epoll->event[i].data.u64 == data)
			epoll->event[i].events = 0;
}

static void epoll_detach(struct coll_socket *socket)
{
	forget_events(epoll_of(socket->engine), (uintptr_t)socket);
	readable_remove(epoll_of(socket->engine), socket->own);
	/* Closing is not enough if a child process has the socket too. */
	epoll_ctl(epoll_of(socket->engine)->fd, EPOLL_CTL_DEL, socket->fd, NULL);
	close(socket->fd);
	free(socket->own);
	epoll_of(socket->engine)->detached++;
	socket->own = NULL;
	socket->sending = socket->receiving = false;
	socket->ops->detached(socket);
}

static void socket_send(struct coll_socket *socket)
{
	struct coll_engine *engine = socket->engine;

	while (socket->ops->wants_send(socket) && ((struct epoll_socket *)socket->own)->writable) {
		struct iovec iov[COLL_SEND_IOV_MAX];
		struct msghdr message = { .msg_iov = iov };
		ssize_t result;

		message.msg_iovlen = socket->ops->send_iov(socket, iov, COLL_SEND_IOV_MAX);
		engine->counters->syscalls++;
		result = sendmsg(socket->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (result < 0 && errno == EINTR)
			continue;
		if (result < 0 && errno == EAGAIN)
			((struct epoll_socket *)socket->own)->writable = false;
		else
			socket->ops->sent(socket, result < 0 ? -errno : result);
	}
}

static void socket_recv(struct coll_socket *socket)
{
	struct coll_engine *engine = socket->engine;
	struct epoll *epoll = epoll_of(engine);
	int recvs = 0;

	while (socket->ops->wants_recv(socket) && ((struct epoll_socket *)socket->own)->readable) {
		struct iovec iov[COLL_RECV_IOV_MAX];
		struct msghdr message = { .msg_iov = iov };
		bool whole, direct;
		ssize_t result;

		if (recvs++ == RECVS_MAX) {
			readable_add(epoll, socket->own);
			return;
		}
		message.msg_iovlen = socket->ops->recv_iov(socket, iov, &whole);
		direct = message.msg_iovlen;
		if (!direct) {
			iov[0] = (struct iovec){ epoll->buffer, sizeof(epoll->buffer) };
			message.msg_iovlen = 1;
		}
		engine->counters->syscalls++;
		result = recvmsg(socket->fd, &message, MSG_DONTWAIT);
		if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (errno == EAGAIN)
				((struct epoll_socket *)socket->own)->readable = false;
			socket->ops->received_none(socket);
		} else if (direct) {
			socket->ops->received(socket, result < 0 ? -errno : result);
		} else {
			socket->ops->received_in(socket, epoll->buffer,
						 result < 0 ? -errno : result);
		}
	}
}

static void touch_readable(struct epoll *epoll)
{
	while (epoll->more) {
		struct epoll_socket *own = epoll->more;

		readable_remove(epoll, own);
		coll_socket_touch(own->socket);
	}
}

static void work_touched(struct coll_engine *engine)
{
	struct coll_socket *socket;

	while ((socket = engine->touched)) {
		engine->touched = socket->next;
		socket->touched = false;
		if (socket->memory) {
			coll_memory_work(socket);
			continue;
		}
		socket_send(socket);
		socket_recv(socket);
	}
}

/* ---- waiting ------------------------------------------------------------ */

static int sleep_for(const struct epoll *epoll, struct epoll_event *events, uint64_t ns)
{
	struct timespec timeout;
	int count;

	timeout = (struct timespec){ ns / COLL_SECOND, ns % COLL_SECOND };
	count = epoll_pwait2(epoll->fd, events, EVENTS, &timeout, NULL);
	/* Before Linux 5.11; or a filter of system calls is older and answers EPERM to what it does not know. */
	if (count < 0 && (errno == ENOSYS || errno == EPERM))
		count = epoll_wait(epoll->fd, events, EVENTS,
				   timeout.tv_sec * 1000 + (timeout.tv_nsec + 999999) / 1000000);
	return count < 0 ? -errno : count;
}

/* A long wait sleeps in naps: what it knows of its time is what it looked at. */
static int wait_events(struct coll_engine *engine, struct epoll_event *events, uint64_t deadline)
{
	struct epoll *epoll = epoll_of(engine);
	uint64_t now = coll_engine_look(engine), before = now;
	uint64_t until = deadline ? coll_engine_polls_until(engine, now) : now;
	const uint64_t offer = coll_engine_yields_from(engine, now);
	uint64_t start, ns;
	bool served;
	int count = 0;

	if (until > deadline)
		until = deadline;
	while (!(served = coll_memory_serve(engine)) &&
	       !(count = epoll_wait(epoll->fd, events, EVENTS, 0)) && deadline && now < until) {
		now = coll_engine_empty(engine);
		if (now >= offer && now < until)
			before = now = coll_engine_yield(engine, before);
	}
	/* Memory that is always busy must not keep a socket from its turn. */
	if (served && !(epoll->served++ % SERVED_MAX))
		count = epoll_wait(epoll->fd, events, EVENTS, 0);
	if (served || count || !deadline)
		return count < 0 ? -errno : count;
	if (!coll_memory_sleep(engine))
		return 0;
	start = now;
	do {
		ns = coll_engine_nap(engine, start, now, deadline > now ? deadline - now : 0);
		count = sleep_for(epoll, events, ns);
		coll_engine_woke(engine, now, ns, !count);
		now = engine->now;
	} while (!count && now < deadline);
	coll_memory_wake(engine);
	return count;
}

static void event_ready(const struct epoll_event *event)
{
	struct coll_socket *socket = event->data.ptr;
	struct coll_watch *watch;
	struct epoll_socket *own;

	if (!event->events)
		return;
	if (event->data.u64 & TAG_WATCH) {
		watch = (struct coll_watch *)(uintptr_t)(event->data.u64 & ~(uint64_t)TAG_WATCH);
		coll_assert(watch->armed);
		watch->armed = false;		/* EPOLLONESHOT: it is silent until it is armed again */
		watch->ready(watch, event->events);
		return;
	}
	own = socket->own;
	coll_assert(own);
	if (event->events & ~EPOLLOUT)
		own->readable = true;
	if (event->events & ~EPOLLIN)
		own->writable = true;
	coll_socket_touch(socket);
}

static int epoll_advance(struct coll_engine *engine, uint64_t deadline)
{
	struct epoll_event events[EVENTS];
	struct epoll *epoll = epoll_of(engine);
	uint64_t runs = engine->counters->runs, check = engine->next_check;
	uint64_t detached = epoll->detached;
	int count;

	engine->received = false;
	touch_readable(epoll);
	work_touched(engine);
	/*
	 * The event that the caller waits for may have happened: the end of a run or a
	 * link, a failure.
	 */
	if (engine->counters->runs != runs || epoll->detached != detached || epoll->more ||
	    engine->received || engine->next_check < check)
		deadline = 0;
	engine->counters->enters++;
	engine->counters->syscalls++;
	count = wait_events(engine, events, deadline);
	if (count < 0)
		return count == -EINTR ? 0 : count;
	epoll->event = events;
	epoll->events = count;
	while (epoll->events) {
		epoll->events--;
		event_ready(epoll->event++);
	}
	work_touched(engine);
	/* What sockets have still is not told again to who sleeps elsewhere. */
	while (engine->slept_elsewhere && epoll->more) {
		touch_readable(epoll);
		work_touched(engine);
	}
	coll_memory_sleep_elsewhere(engine);
	return 0;
}

/* ---- watches ------------------------------------------------------------ */

static int epoll_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	/* EPOLLIN and POLLIN are the same bit, and so are the others. */
	struct epoll_event event = { .events = events | EPOLLONESHOT,
				     .data.u64 = (uintptr_t)watch | TAG_WATCH };

	int error;

	coll_assert(!watch->armed);
	error = descriptor_await(epoll_of(engine), watch->fd, &event);
	if (error)
		return error;
	watch->engine = engine;
	watch->armed = true;
	return 0;
}

static void epoll_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	forget_events(epoll_of(engine), (uintptr_t)watch | TAG_WATCH);
	epoll_ctl(epoll_of(engine)->fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->armed = false;
}

static int epoll_fd(struct coll_engine *engine)
{
	return epoll_of(engine)->fd;
}

const struct coll_engine_ops coll_engine_epoll = {
	.name = "epoll",
	.open = epoll_open,
	.close = epoll_close,
	.attach = epoll_attach,
	.pause = epoll_pause,
	.resume = epoll_resume,
	.detach = epoll_detach,
	.advance = epoll_advance,
	.watch = epoll_watch,
	.unwatch = epoll_unwatch,
	.fd = epoll_fd,
};
