/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What moves bytes for links. An engine knows sockets and links, nothing of
 * schedules; links tell it where bytes come from and go to (link.h), and it
 * tells them how many did.
 */
#ifndef COLL_ENGINE_H
#define COLL_ENGINE_H

#include "libcoll/internal.h"

struct coll_engine_ops {
	const char *name;
	/* -ENOSYS, -EPERM: not allowed here, try the next engine. */
	int (*open)(struct coll_context *context);
	void (*close)(struct coll_context *context);
	/* A link's socket is connected and introduced; it may be used from now on. */
	int (*attach)(struct coll_link *link);
	/*
	 * Leaves the link's socket to somebody else, until resume(). Bytes that came
	 * may be reported meanwhile, of this link and others. The link wants neither
	 * to send nor to receive by now.
	 */
	int (*pause)(struct coll_link *link);
	void (*resume)(struct coll_link *link);
	/*
	 * The calling thread stops: nothing of it is in the kernel's hands when this
	 * returns. Another goes on where it calls take(). NULL: any thread may always.
	 */
	void (*let_go)(struct coll_context *context);
	void (*take)(struct coll_context *context);
	/*
	 * The link's socket is to be closed. Whatever is in flight ends soon (its
	 * socket has been shut down), and the engine then closes link->fd and
	 * calls coll_link_detached().
	 */
	void (*detach)(struct coll_link *link);
	/*
	 * Hands touched links' work to the kernel, waits until something has
	 * happened, at most until `deadline` (0: does not wait), and reports it.
	 */
	int (*advance)(struct coll_context *context, uint64_t deadline);
	/* Calls watch->ready once when the descriptor has one of `events`. */
	int (*watch)(struct coll_context *context, struct watch *watch, int events);
	void (*unwatch)(struct coll_context *context, struct watch *watch);
	/* Polls readable when advance() would find something. */
	int (*fd)(struct coll_context *context);
	/*
	 * A message for a started receive is complete: report it with
	 * coll_exec_received(), now or (fault injection) later.
	 */
	void (*deliver)(struct coll_link *link, struct coll_exec *exec, uint32_t op);
};

extern const struct coll_engine_ops coll_engine_uring;
extern const struct coll_engine_ops coll_engine_epoll;

#endif
