// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The engine where io_uring is forbidden: non-blocking sockets and epoll, edge
 * triggered, so that interest never changes. Whether a socket can be read or
 * written is remembered until it says otherwise.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/link/link.h"

enum {
	EVENTS = 64,
	RECVS_MAX = 32,			/* from one link, before others have their turn */
	BUFFER_BYTES = 16384,
	TAG_WATCH = 1,
};

struct epoll_link {
	struct coll_link *link;
	bool readable, writable;
	bool more;			/* in the list of those that may have more to read */
	struct epoll_link *next_more;
};

struct epoll {
	int fd;
	uint64_t spin_ns;
	uint64_t detached;		/* links let go so far */
	struct epoll_link *more;
	uint8_t buffer[BUFFER_BYTES];
};

static struct epoll *epoll_of(const struct coll_context *context)
{
	return context->engine_state;
}

static int epoll_open(struct coll_context *context)
{
	struct epoll *epoll = calloc(1, sizeof(*epoll));

	if (!epoll)
		return -ENOMEM;
	epoll->fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll->fd < 0) {
		free(epoll);
		return -errno;
	}
	epoll->spin_ns = context->options.spin_ns;
	context->engine_state = epoll;
	return 0;
}

static void epoll_close(struct coll_context *context)
{
	close(epoll_of(context)->fd);
	free(epoll_of(context));
	context->engine_state = NULL;
}

/* ---- links -------------------------------------------------------------- */

static int epoll_add(struct coll_link *link)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				     .data.ptr = link };

	return epoll_ctl(epoll_of(link->group->context)->fd, EPOLL_CTL_ADD, link->fd, &event) ?
		       -errno : 0;
}

static int epoll_attach(struct coll_link *link)
{
	struct epoll_link *own = calloc(1, sizeof(*own));
	int error;

	if (!own)
		return -ENOMEM;
	own->link = link;
	own->readable = own->writable = true;	/* until they say otherwise */
	error = epoll_add(link);
	if (error) {
		free(own);
		return error;
	}
	link->engine = own;
	return 0;
}

static void more_later(struct epoll *epoll, struct epoll_link *own)
{
	if (own->more)
		return;
	own->more = true;
	own->next_more = epoll->more;
	epoll->more = own;
}

static void more_never(struct epoll *epoll, struct epoll_link *own)
{
	struct epoll_link **slot = &epoll->more;

	if (!own->more)
		return;
	while (*slot != own)
		slot = &(*slot)->next_more;
	*slot = own->next_more;
	own->more = false;
}

/* Nothing is ever in flight here between two calls. */
static int epoll_pause(struct coll_link *link)
{
	more_never(epoll_of(link->group->context), link->engine);
	epoll_ctl(epoll_of(link->group->context)->fd, EPOLL_CTL_DEL, link->fd, NULL);
	return 0;
}

static void epoll_resume(struct coll_link *link)
{
	struct epoll_link *own = link->engine;

	own->readable = own->writable = true;
	epoll_add(link);
}

static void epoll_detach(struct coll_link *link)
{
	more_never(epoll_of(link->group->context), link->engine);
	/* Closing is not enough where a child process has the socket as well. */
	epoll_ctl(epoll_of(link->group->context)->fd, EPOLL_CTL_DEL, link->fd, NULL);
	close(link->fd);
	free(link->engine);
	epoll_of(link->group->context)->detached++;
	link->engine = NULL;
	link->sending = link->receiving = false;
	coll_link_detached(link);
}

static void link_send(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	while (coll_link_wants_send(link) && ((struct epoll_link *)link->engine)->writable) {
		struct iovec iov[SEND_IOV_MAX];
		struct msghdr message = { .msg_iov = iov };
		ssize_t result;

		message.msg_iovlen = coll_link_send_iov(link, iov, SEND_IOV_MAX);
		context->counters.syscalls++;
		result = sendmsg(link->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (result < 0 && errno == EINTR)
			continue;
		if (result < 0 && errno == EAGAIN)
			((struct epoll_link *)link->engine)->writable = false;
		else
			coll_link_sent(link, result < 0 ? -errno : result);
	}
}

static void link_recv(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	struct epoll *epoll = epoll_of(context);
	int recvs = 0;

	while (coll_link_wants_recv(link) && ((struct epoll_link *)link->engine)->readable) {
		struct iovec iov[2];
		struct msghdr message = { .msg_iov = iov };
		bool whole, direct;
		ssize_t result;

		if (recvs++ == RECVS_MAX) {
			more_later(epoll, link->engine);
			return;
		}
		message.msg_iovlen = coll_link_recv_iov(link, iov, &whole);
		direct = message.msg_iovlen;
		if (!direct) {
			iov[0] = (struct iovec){ epoll->buffer, sizeof(epoll->buffer) };
			message.msg_iovlen = 1;
		}
		context->counters.syscalls++;
		result = recvmsg(link->fd, &message, MSG_DONTWAIT);
		if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (errno == EAGAIN)
				((struct epoll_link *)link->engine)->readable = false;
			coll_link_received_none(link);
		} else if (direct) {
			coll_link_received(link, result < 0 ? -errno : result);
		} else {
			coll_link_received_in(link, epoll->buffer, result < 0 ? -errno : result);
		}
	}
}

static void touch_more(struct epoll *epoll)
{
	while (epoll->more) {
		struct epoll_link *own = epoll->more;

		more_never(epoll, own);
		coll_link_touch(own->link);
	}
}

static void work_touched(struct coll_context *context)
{
	struct coll_link *link;

	while ((link = context->touched)) {
		context->touched = link->next_touched;
		link->touched = false;
		link_send(link);
		link_recv(link);
	}
}

/* ---- waiting ------------------------------------------------------------ */

static int wait_events(struct epoll *epoll, struct epoll_event *events, uint64_t deadline)
{
	uint64_t now = coll_now();
	uint64_t until = deadline < now + epoll->spin_ns ? deadline : now + epoll->spin_ns;
	struct timespec timeout = { 0, 0 };
	int count;

	/* Whom we wait for may want this very core: it is offered between looks. */
	while (!(count = epoll_wait(epoll->fd, events, EVENTS, 0)) && deadline && now < until) {
		sched_yield();
		now = coll_now();
	}
	if (count || !deadline)
		return count < 0 ? -errno : count;
	if (deadline > now) {
		uint64_t ns = deadline - now < 3600 * COLL_SECOND ? deadline - now :
								    3600 * COLL_SECOND;

		timeout.tv_sec = ns / COLL_SECOND;
		timeout.tv_nsec = ns % COLL_SECOND;
	}
	count = epoll_pwait2(epoll->fd, events, EVENTS, &timeout, NULL);
	if (count < 0 && errno == ENOSYS)	/* before Linux 5.11 */
		count = epoll_wait(epoll->fd, events, EVENTS,
				   timeout.tv_sec * 1000 + (timeout.tv_nsec + 999999) / 1000000);
	return count < 0 ? -errno : count;
}

static void event_ready(const struct epoll_event *event)
{
	struct coll_link *link = event->data.ptr;
	struct watch *watch;
	struct epoll_link *own;

	if (event->data.u64 & TAG_WATCH) {
		watch = (struct watch *)(uintptr_t)(event->data.u64 & ~(uint64_t)TAG_WATCH);
		if (watch->armed) {
			watch->armed = false;
			epoll_ctl(epoll_of(watch->context)->fd, EPOLL_CTL_DEL, watch->fd, NULL);
			watch->ready(watch, event->events);
		}
		return;
	}
	own = link->engine;
	if (!own)
		return;
	if (event->events & ~EPOLLOUT)
		own->readable = true;
	if (event->events & ~EPOLLIN)
		own->writable = true;
	coll_link_touch(link);
}

static int epoll_advance(struct coll_context *context, uint64_t deadline)
{
	struct epoll_event events[EVENTS];
	struct epoll *epoll = epoll_of(context);
	uint64_t runs = context->counters.runs, check = context->next_check;
	uint64_t detached = epoll->detached;
	int count, i;

	touch_more(epoll);
	work_touched(context);
	/* What the caller waits for may have happened: a run's end, a link's, a failure. */
	if (context->counters.runs != runs || epoll->detached != detached || epoll->more ||
	    context->next_check < check)
		deadline = 0;
	context->counters.enters++;
	context->counters.syscalls++;
	count = wait_events(epoll, events, deadline);
	if (count < 0)
		return count == -EINTR ? 0 : count;
	for (i = 0; i < count; i++)
		event_ready(&events[i]);
	work_touched(context);
	return 0;
}

/* ---- watches ------------------------------------------------------------ */

static int epoll_watch(struct coll_context *context, struct watch *watch, int events)
{
	/* EPOLLIN and POLLIN are the same bits, and so on. */
	struct epoll_event event = { .events = events | EPOLLONESHOT,
				     .data.u64 = (uintptr_t)watch | TAG_WATCH };

	if (epoll_ctl(epoll_of(context)->fd, EPOLL_CTL_ADD, watch->fd, &event))
		return -errno;
	watch->context = context;
	watch->armed = true;
	return 0;
}

static void epoll_unwatch(struct coll_context *context, struct watch *watch)
{
	epoll_ctl(epoll_of(context)->fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->armed = false;
}

static int epoll_fd(struct coll_context *context)
{
	return epoll_of(context)->fd;
}

static void epoll_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op)
{
	(void)link;
	coll_exec_received(exec, op);
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
	.deliver = epoll_deliver,
};
