// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Watched descriptors, as polls of io_uring. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "core/port.h"
#include "uring.h"

static void list_free(struct coll_uring_watched *own)
{
	while (own) {
		struct coll_uring_watched *next = own->next;

		free(own);
		own = next;
	}
}

void coll_uring_watches_free(struct coll_uring *uring)
{
	list_free(uring->polls);
	list_free(uring->spare_polls);
	uring->polls = uring->spare_polls = NULL;
}

/* A watch that has fired leaves one behind: to arm it again takes no memory. */
static struct coll_uring_watched *watch_alloc(struct coll_uring *uring)
{
	struct coll_uring_watched *own = uring->spare_polls;

	if (own)
		uring->spare_polls = own->next;
	else
		own = malloc(sizeof(*own));
	return own;
}

static void watch_release(struct coll_uring *uring, struct coll_uring_watched *own)
{
	own->next = uring->spare_polls;
	uring->spare_polls = own;
}

static void watch_keep(struct coll_uring *uring, struct coll_uring_watched *own)
{
	own->slot = &uring->polls;
	own->next = uring->polls;
	if (own->next)
		own->next->slot = &own->next;
	uring->polls = own;
}

static void watch_forget(struct coll_uring *uring, struct coll_uring_watched *own)
{
	*own->slot = own->next;
	if (own->next)
		own->next->slot = own->slot;
	watch_release(uring, own);
}

void coll_uring_watch_again(struct coll_engine *engine, struct coll_uring_watched *own)
{
	struct io_uring_sqe *sqe;

	if (!coll_uring_has_capacity(engine, 1))
		return;
	own->stopped = false;
	sqe = coll_uring_sqe(engine);
	io_uring_prep_poll_add(sqe, own->watch->fd, own->events);
	coll_uring_sqe_owner(sqe, own, TAG_WATCH);
}

void coll_uring_watch_complete(struct coll_engine *engine, struct coll_uring_watched *own,
			       int result)
{
	struct coll_watch *watch = own->watch;

	if (watch && result == -ECANCELED) {
		own->stopped = true;
		if (!coll_uring_of(engine)->letting_go)
			coll_uring_watch_again(engine, own);
		return;
	}
	watch_forget(coll_uring_of(engine), own);
	if (!watch)
		return;
	watch->armed = false;
	watch->ready(watch, result < 0 ? POLLERR : result);
}

/* Submitted at once: a thread that polls coll_fd() may enter again only for this event. */
int coll_uring_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	struct coll_uring_watched *own;
	struct io_uring_sqe *sqe;

	coll_assert(!watch->armed);
	own = coll_uring_has_capacity(engine, 1) ? watch_alloc(coll_uring_of(engine)) : NULL;
	if (!own)
		return -ENOMEM;
	own->watch = watch;
	watch_keep(coll_uring_of(engine), own);
	sqe = coll_uring_sqe(engine);
	io_uring_prep_poll_add(sqe, watch->fd, events);
	coll_uring_sqe_owner(sqe, own, TAG_WATCH);
	own->stopped = false;
	own->events = events;
	watch->engine = engine;
	watch->armed = true;
	watch->own = own;
	coll_uring_submit(engine);
	return 0;
}

void coll_uring_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	struct coll_uring_watched *own = watch->own;

	own->watch = NULL;
	watch->armed = false;
	if (own->stopped) {
		watch_forget(coll_uring_of(engine), own);
		return;
	}
	coll_uring_cancel(engine, own, TAG_WATCH);
}
