/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An engine moves bytes. It knows connected sockets and watched descriptors; it knows
 * nothing of links, messages or schedules. It asks a socket's owner where bytes come from
 * and go to, and reports how many moved. struct coll_socket_ops, and ready() of a watch, are
 * the only ways up from here.
 *
 * One thread at a time uses an engine and all that belongs to it.
 */
#ifndef COLL_ENGINE_H
#define COLL_ENGINE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "board.h"
#include "shared_arena.h"
#include "libcoll/base/clock.h"
#include "libcoll/coll.h"
#include "neighbour.h"
#include "published.h"

enum {
	/* The most that one system call moves (its length has 32 bits). */
	COLL_TRANSFER_MAX = 1 << 30,
	/* Entries of an iov to send, and of one to receive. */
	COLL_SEND_IOV_MAX = 16,
	COLL_RECV_IOV_MAX = 3,
	/* A message between two cores takes about this long: yielding earlier does not pay. */
	COLL_KEEP_CORE_NS = 5000,
	/* A rank that did not look for so long was not there. */
	COLL_GAP_NS = 100000,
	/* Of a wait that is measured: its first sleep. Each later one doubles the time slept: a long wait has few. */
	COLL_NAP_NS = 150000,
};

struct coll_engine;
struct coll_memory;
struct coll_seal;
struct coll_socket;

/* A socket's owner: asked and told by the engine, on its thread. */
struct coll_socket_ops {
	/* Whether there are bytes to send and no send is in flight. */
	bool (*wants_send)(struct coll_socket *socket);
	/* Fills iov with the bytes to send next. Returns the number of entries. */
	int (*send_iov)(struct coll_socket *socket, struct iovec *iov, int max);
	/* Whether nothing waits for the end of this send. */
	bool (*sends_quietly)(const struct coll_socket *socket);
	/* Bytes that were sent, or a negative errno. */
	void (*sent)(struct coll_socket *socket, ssize_t result);

	/* Whether bytes are to be received and no receive is in flight. */
	bool (*wants_recv)(const struct coll_socket *socket);
	/*
	 * Where the next bytes go. Returns the number of iov entries (at most COLL_RECV_IOV_MAX),
	 * or 0: to any buffer (received_in). *whole: all bytes are sure to come, so the receive may
	 * wait for all.
	 */
	int (*recv_iov)(struct coll_socket *socket, struct iovec *iov, bool *whole);
	/* Bytes that were received to the iov; 0: end; or a negative errno. */
	void (*received)(struct coll_socket *socket, ssize_t result);
	/* Bytes that were received into the engine's buffer, which is free again on return. */
	void (*received_in)(struct coll_socket *socket, const uint8_t *data, ssize_t result);
	/* The receive ended without bytes and is to be repeated. */
	void (*received_none)(struct coll_socket *socket);

	/* The engine has closed the socket. */
	void (*detached)(struct coll_socket *socket);
};

/* A connected socket; lives in its owner. */
struct coll_socket {
	const struct coll_socket_ops *ops;
	struct coll_engine *engine;
	int fd;
	bool sending;			/* a send is in flight */
	bool receiving;			/* a receive is in flight */
	bool paused;			/* by its owner: it wants neither to send nor to receive */
	struct coll_memory *memory;	/* its bytes go there (memory.h), or NULL */
	struct coll_published_process *reader;	/* the peer's process (published.h); NULL: its end is not seen */
	struct coll_seal *seal;		/* between owner and engine (transport/seal.h), or NULL */
	bool touched;			/* in the engine's list of sockets with work */
	struct coll_socket *next;	/* in that list */
	void *own;			/* of the engine */
};

/* A descriptor watched for readiness, once: ready() is called, then it is free again. */
struct coll_watch {
	void (*ready)(struct coll_watch *watch, int events);	/* poll(2) events */
	void *owner;
	int fd;
	bool armed;
	struct coll_engine *engine;
	void *own;			/* of the engine */
};

/* A word that other processes change and then wake (futex(2)), when this thread sleeps. */
struct coll_bell {
	const uint32_t *word;
	void *own;			/* of the engine */
};

struct coll_engine_ops {
	const char *name;
	/* -ENOSYS, -EPERM: not allowed here; the next engine is tried. */
	int (*open)(struct coll_engine *engine);
	void (*close)(struct coll_engine *engine);
	/* Takes a connected socket that has said its hello. */
	int (*attach)(struct coll_socket *socket);
	/*
	 * Stops using the socket until resume(). The socket wants neither to send nor to
	 * receive. Transfers in flight end, with the bytes that have moved. Others may be
	 * reported meanwhile, of other sockets too.
	 */
	int (*pause)(struct coll_socket *socket);
	void (*resume)(struct coll_socket *socket);
	/*
	 * The calling thread stops using the engine: on return none of its requests is in
	 * the kernel. Another thread continues with take(). NULL: any thread may use the
	 * engine.
	 */
	void (*let_go)(struct coll_engine *engine);
	void (*take)(struct coll_engine *engine);
	/*
	 * The socket is to be closed. It has been shut down, so transfers in flight end
	 * soon; then the engine closes socket->fd and calls detached().
	 */
	void (*detach)(struct coll_socket *socket);
	/*
	 * Hands the work of touched sockets to the kernel, waits for an event, at most
	 * until `deadline` (0: does not wait), and reports it.
	 */
	int (*advance)(struct coll_engine *engine, uint64_t deadline);
	/* Whether the calling thread may use the engine. NULL: any may. */
	bool (*usable)(const struct coll_engine *engine);
	/*
	 * Calls watch->ready once, when the descriptor has one of `events`. To arm it again in
	 * ready() needs no memory.
	 */
	int (*watch)(struct coll_engine *engine, struct coll_watch *watch, int events);
	void (*unwatch)(struct coll_engine *engine, struct coll_watch *watch);
	/*
	 * The next sleep in advance() ends if the word has changed since this call, or did before
	 * and was not heard. False: this engine cannot hear now. It costs nothing if nobody has
	 * rung since the last time. NULL: it never can.
	 */
	bool (*hear)(struct coll_engine *engine, struct coll_bell *bell);
	/* The word may be unmapped. */
	void (*unhear)(struct coll_engine *engine, struct coll_bell *bell);
	/* A descriptor that polls readable when advance() has something to do. */
	int (*fd)(struct coll_engine *engine);
};

struct coll_engine {
	const struct coll_engine_ops *ops;	/* NULL: not open */
	void *state;			/* of the implementation */
	struct coll_socket *touched;	/* sockets with work */
	struct coll_memory *memories;	/* attached */
	struct coll_memory *unwoken;	/* written to, and the readers may sleep */
	uint64_t expected;		/* receives that wait for a message, for all sockets */
	bool received;			/* from memory, in this advance(): it must not wait */
	bool waits;			/* this advance() may: its caller does nothing else meanwhile */
	bool slept_elsewhere;		/* a caller may sleep on fd() between two advances */
	bool kept_awake;		/* it may not, after this one: there is more to do, nobody wakes it */
	struct coll_counters *counters;	/* the context's */
	uint64_t next_check;		/* when the floors above check deadlines */
	uint64_t now;			/* the latest look at the clock */
	uint64_t away;			/* ns so far in which nobody looked what had arrived */
	uint64_t looks;			/* how often somebody did */
	uint64_t empty;			/* when the latest look began that is known to have found nothing */
	uint64_t gone;			/* ns so far in which nobody looked for COLL_GAP_NS or more at once */
	bool sampled;			/* these are asked for: the clock is read before a sleep, in naps */
	uint64_t spin_ns;		/* time to poll before sleeping */
	uint64_t owed_until;		/* of waits for readers that hold (exposed.h) */
	struct coll_neighbour neighbour;	/* of the thread that waits in advance() */
	bool exposes;			/* peers of this node may read long messages in this process */
	struct coll_shared_arena arena;	/* ... where they map it, the rest by a system call */
	struct coll_published_area published;	/* to many peers at once */
	struct coll_boards boards;	/* ... and short messages */
	bool crowded;			/* more ranks than cores on this node */
	struct coll_short_io *short_io;	/* NULL unless short reads and writes are injected */
	bool any_thread;		/* any thread may use it, one at a time */
	bool moves;			/* threads take turns with let_go() and take() */
};

extern const struct coll_engine_ops coll_engine_uring;
extern const struct coll_engine_ops coll_engine_epoll;

/* It is `now`; what arrived from `before` on may not have been seen. */
static inline void coll_engine_unseen(struct coll_engine *engine, uint64_t before, uint64_t now)
{
	if (now - before > COLL_GAP_NS)
		engine->gone += now - before;
}

/* It is `now`, after work of another kind than looking for what has arrived. */
static inline void coll_engine_back(struct coll_engine *engine, uint64_t now)
{
	coll_engine_unseen(engine, engine->now, now);
	engine->away += now - engine->now;
	engine->now = now;
}

/* The same with a look at the clock. */
static inline uint64_t coll_engine_look(struct coll_engine *engine)
{
	const uint64_t now = coll_now();

	coll_engine_back(engine, now);
	return now;
}

/* The same after a look that has found nothing, which began when the clock was looked at last. */
static inline uint64_t coll_engine_empty(struct coll_engine *engine)
{
	const uint64_t now = coll_now();

	engine->empty = engine->now;
	coll_engine_unseen(engine, engine->empty, now);
	return engine->now = now;
}

/* How long a wait that has slept since `start` sleeps now, to know until when nothing had come. An hour at most. */
static inline uint64_t coll_engine_nap(const struct coll_engine *engine, uint64_t start, uint64_t now, uint64_t ns)
{
	const uint64_t slept = now - start, nap = slept > COLL_NAP_NS ? slept : COLL_NAP_NS;
	const uint64_t most = engine->sampled && nap < 3600 * COLL_SECOND ? nap : 3600 * COLL_SECOND;

	return ns < most ? ns : most;
}

/*
 * A sleep from `before` on, of at most so many ns, has ended; `nothing`: nothing had come. Whether that is so after all
 * of them: else a signal has ended it.
 */
static inline bool coll_engine_woke(struct coll_engine *engine, uint64_t before, uint64_t ns, bool nothing)
{
	engine->now = coll_now();
	engine->looks++;
	if (engine->now - before > ns)		/* it was to look again then */
		coll_engine_unseen(engine, before + ns, engine->now);
	nothing &= engine->now - before >= ns;
	if (nothing)
		engine->empty = engine->now;
	return nothing;
}

/*
 * How long a wait that begins now polls before it sleeps. Beside a neighbour no longer than it
 * keeps the core, so that it never yields; not at all where another rank may need the core.
 */
static inline uint64_t coll_engine_polls_until(struct coll_engine *engine, uint64_t now)
{
	const uint64_t keep = engine->crowded ? 0 : COLL_KEEP_CORE_NS;

	coll_neighbour_waits(&engine->neighbour);
	if (!engine->neighbour.near || engine->spin_ns <= keep ||
	    !coll_neighbour_sleeps(&engine->neighbour, now))
		return now + engine->spin_ns;
	return now + keep;
}

/* From when on a wait that began at `start` yields: the awaited rank may need this core. */
static inline uint64_t coll_engine_yields_from(const struct coll_engine *engine, uint64_t start)
{
	return engine->crowded ? start : start + COLL_KEEP_CORE_NS;
}

/* Yields after a look that began at `before` and found nothing. The time afterwards. */
static inline uint64_t coll_engine_yield(struct coll_engine *engine, uint64_t before)
{
	sched_yield();
	engine->now = coll_now();	/* others had the core meanwhile */
	coll_engine_unseen(engine, before, engine->now);
	coll_neighbour_yielded(&engine->neighbour, before, engine->now);
	return engine->now;
}

/* Puts the socket on the list that advance() works on. */
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
	coll_neighbour_let_go(&engine->neighbour);
	engine->ops->close(engine);
	if (engine->published.slots)
		coll_shared_drop(&engine->published.region);
	if (engine->boards.region.base)
		coll_shared_drop(&engine->boards.region);
	coll_shared_end(&engine->arena);
}

static inline int coll_engine_advance(struct coll_engine *engine, uint64_t deadline)
{
	engine->waits = deadline;
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
	engine->slept_elsewhere = true;
	return engine->ops->fd(engine);
}

/* One thread stops using the engine, another starts. */
static inline void coll_engine_let_go(struct coll_engine *engine)
{
	coll_neighbour_let_go(&engine->neighbour);
	if (engine->ops->let_go)
		engine->ops->let_go(engine);
}

static inline void coll_engine_take(struct coll_engine *engine)
{
	coll_neighbour_take(&engine->neighbour);
	if (engine->ops->take)
		engine->ops->take(engine);
}

/* The floors above check deadlines then, or earlier. */
static inline void coll_engine_check_at(struct coll_engine *engine, uint64_t when)
{
	if (when < engine->next_check)
		engine->next_check = when;
}

#endif
