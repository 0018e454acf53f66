/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What moves bytes. An engine knows connected sockets, and descriptors that somebody
 * waits for; it knows nothing of links, messages or schedules. It asks a socket's owner
 * where bytes come from and go to, and tells it how many did: struct coll_socket_ops is
 * the only way up from here.
 *
 * One thread at a time uses an engine and all that hangs on it.
 */
#ifndef COLL_ENGINE_H
#define COLL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "libcoll/base/clock.h"
#include "libcoll/coll.h"

enum {
	/* One system call moves no more than this (its length has 32 bits). */
	COLL_TRANSFER_MAX = 1 << 30,
	/* Entries of an iov to send. */
	COLL_SEND_IOV_MAX = 16,
};

struct coll_engine;
struct coll_socket;

/* What a socket's owner answers and hears. Called by the engine, on its thread. */
struct coll_socket_ops {
	/* Whether there is something to send and nobody is sending it. */
	bool (*wants_send)(struct coll_socket *socket);
	/* Fills iov with the bytes to send next; returns how many entries. */
	int (*send_iov)(struct coll_socket *socket, struct iovec *iov, int max);
	/* Whether nobody waits to hear that these bytes are gone. */
	bool (*sends_quietly)(const struct coll_socket *socket);
	/* So many of them are gone, or a negative errno. */
	void (*sent)(struct coll_socket *socket, ssize_t result);

	/* Whether bytes are to be received and nobody is receiving them. */
	bool (*wants_recv)(const struct coll_socket *socket);
	/*
	 * Where the next bytes go. Returns the number of iov entries (at most 2), or 0:
	 * any buffer will do (received_in). *whole: all of it is sure to come, waiting
	 * for all is safe.
	 */
	int (*recv_iov)(struct coll_socket *socket, struct iovec *iov, bool *whole);
	/* So many bytes came to where recv_iov() said; 0: end; or a negative errno. */
	void (*received)(struct coll_socket *socket, ssize_t result);
	/* So many bytes came into a buffer of the engine's, free again on return. */
	void (*received_in)(struct coll_socket *socket, const uint8_t *data, ssize_t result);
	/* Nothing came after all; the same is to be received again. */
	void (*received_none)(struct coll_socket *socket);

	/* The engine has let go of the socket and closed it. */
	void (*detached)(struct coll_socket *socket);
};

/* A connected socket; lives in its owner. */
struct coll_socket {
	const struct coll_socket_ops *ops;
	struct coll_engine *engine;
	int fd;
	bool sending;			/* the engine has bytes of it to send */
	bool receiving;			/* the engine has a receive in flight */
	bool touched;			/* in the engine's list of sockets to look at */
	struct coll_socket *next;	/* there */
	void *own;			/* the engine's own part */
};

/* Interest in one readiness of a descriptor; called once, then free again. */
struct coll_watch {
	void (*ready)(struct coll_watch *watch, int events);	/* poll(2) events */
	void *owner;
	int fd;
	bool armed;
	struct coll_engine *engine;
	void *own;			/* the engine's own part */
};

struct coll_engine_ops {
	const char *name;
	/* -ENOSYS, -EPERM: not allowed here, try the next engine. */
	int (*open)(struct coll_engine *engine);
	void (*close)(struct coll_engine *engine);
	/* A socket is connected and introduced; it may be used from now on. */
	int (*attach)(struct coll_socket *socket);
	/*
	 * Leaves the socket to somebody else, until resume(). Bytes that came may be
	 * reported meanwhile, of this socket and others. It wants neither to send nor to
	 * receive by now.
	 */
	int (*pause)(struct coll_socket *socket);
	void (*resume)(struct coll_socket *socket);
	/*
	 * The calling thread stops: nothing of it is in the kernel's hands when this
	 * returns. Another goes on where it calls take(). NULL: any thread may always.
	 */
	void (*let_go)(struct coll_engine *engine);
	void (*take)(struct coll_engine *engine);
	/*
	 * The socket is to be closed. Whatever is in flight ends soon (it has been shut
	 * down), and the engine then closes socket->fd and calls detached().
	 */
	void (*detach)(struct coll_socket *socket);
	/*
	 * Hands touched sockets' work to the kernel, waits until something has happened,
	 * at most until `deadline` (0: does not wait), and reports it.
	 */
	int (*advance)(struct coll_engine *engine, uint64_t deadline);
	/* Calls watch->ready once when the descriptor has one of `events`. */
	int (*watch)(struct coll_engine *engine, struct coll_watch *watch, int events);
	void (*unwatch)(struct coll_engine *engine, struct coll_watch *watch);
	/* Polls readable when advance() would find something. */
	int (*fd)(struct coll_engine *engine);
};

struct coll_engine {
	const struct coll_engine_ops *ops;	/* NULL: not open */
	void *state;			/* the implementation's */
	struct coll_socket *touched;	/* sockets with work */
	struct coll_counters *counters;	/* the context's */
	uint64_t next_check;		/* when the floors above are to look at deadlines */
	uint64_t spin_ns;		/* how long to poll before sleeping */
	bool crowded;			/* more ranks than cores on this node */
	struct coll_short_io *short_io;	/* injected: transfers are cut; or NULL */
	bool moves;			/* threads take turns: let_go() and take() are used */
};

extern const struct coll_engine_ops coll_engine_uring;
extern const struct coll_engine_ops coll_engine_epoll;

/* Puts the socket on the list that advance() looks at. */
static inline void coll_socket_touch(struct coll_socket *socket)
{
	if (socket->touched)
		return;
	socket->touched = true;
	socket->next = socket->engine->touched;
	socket->engine->touched = socket;
}

/* Takes it off. Costs the length of the list. */
static inline void coll_socket_untouch(struct coll_socket *socket)
{
	struct coll_socket **slot = &socket->engine->touched;

	if (!socket->touched)
		return;
	while (*slot != socket)
		slot = &(*slot)->next;
	*slot = socket->next;
	socket->touched = false;
}

static inline void coll_engine_close(struct coll_engine *engine)
{
	engine->ops->close(engine);
}

static inline int coll_engine_advance(struct coll_engine *engine, uint64_t deadline)
{
	return engine->ops->advance(engine, deadline);
}

static inline int coll_engine_watch(struct coll_engine *engine, struct coll_watch *watch,
				    int events)
{
	return engine->ops->watch(engine, watch, events);
}

static inline void coll_engine_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	engine->ops->unwatch(engine, watch);
}

static inline int coll_engine_fd(struct coll_engine *engine)
{
	return engine->ops->fd(engine);
}

/* This thread stops using the engine, and another begins to. */
static inline void coll_engine_let_go(struct coll_engine *engine)
{
	if (engine->ops->let_go)
		engine->ops->let_go(engine);
}

static inline void coll_engine_take(struct coll_engine *engine)
{
	if (engine->ops->take)
		engine->ops->take(engine);
}

/* The floors above look at deadlines then, or earlier. */
static inline void coll_engine_check_at(struct coll_engine *engine, uint64_t when)
{
	if (when < engine->next_check)
		engine->next_check = when;
}

#endif
