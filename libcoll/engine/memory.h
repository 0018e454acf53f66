/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sockets whose bytes go through memory: two processes of a node share a ring for each
 * direction. The connected socket below them stays: its end tells that the peer has died, and a
 * byte on it wakes a peer that sleeps, unless that hears its bell (ring.h). For the owner nothing
 * differs from a socket: its ops are asked and told as by an engine. Nothing is ever in flight.
 *
 * Engines call this file: for touched sockets, while they poll before they sleep, and around
 * their sleep.
 */
#ifndef COLL_MEMORY_H
#define COLL_MEMORY_H

#include "engine.h"

/* Bytes to map for two rings of this size each. */
size_t coll_memory_bytes(uint64_t size);

/*
 * One side of mapped memory, which is zero at first; `first`: the side that made it. Takes the
 * mapping over. NULL: no memory, and the mapping is the caller's.
 */
struct coll_memory *coll_memory_make(void *map, uint64_t size, bool first);
/* If no engine has it. NULL is allowed. */
void coll_memory_free(struct coll_memory *memory);

/* ---- sockets, with memory or without ---------------------------------------- */

/* As the engine's ops of these names. socket->memory is set before and belongs to the socket. */
int coll_socket_attach(struct coll_socket *socket);
void coll_socket_detach(struct coll_socket *socket);
int coll_socket_pause(struct coll_socket *socket);
void coll_socket_resume(struct coll_socket *socket);

/* Whether the peer's host has all that was sent. Costs a system call. */
bool coll_socket_is_delivered(const struct coll_socket *socket);
/* Whether this host has bytes that were not received yet. Costs a system call. */
bool coll_socket_has_unread(const struct coll_socket *socket);

/*
 * Sends all of these bytes at once, if nothing of the socket waits to be sent and there is room.
 * Not from within its send_iov(). False: nothing was sent. Else coll_memory_wake_readers() is to
 * follow, once for many, before this thread does anything long: a peer that looks has the bytes
 * already, one that sleeps is woken.
 */
bool coll_memory_send_now(struct coll_socket *socket, const struct iovec *iov, int count);
/*
 * What came next, where it lies, until coll_memory_took(); returns how many bytes of it are here and
 * lie together. Not from within its received_in(). The peer may still change them. 0: nothing came;
 * -EPROTO, or -EAGAIN: it is for the engine.
 */
ssize_t coll_memory_look(struct coll_socket *socket, const uint8_t **data);
void coll_memory_took(struct coll_socket *socket, uint64_t bytes);
/* For the next: some are written to, and may sleep. Costs a full barrier. */
void coll_memory_wake_written(struct coll_engine *engine);
static inline void coll_memory_wake_readers(struct coll_engine *engine)
{
	if (engine->unwoken)
		coll_memory_wake_written(engine);
}

/* ---- memory that peers may map -------------------------------------------------- */

/* A block of the engine's arena (shared_arena.h); more than 0 bytes. NULL: there is no memory. */
void *coll_memory_block(struct coll_engine *engine, uint64_t bytes);
/* One of which no others are expected. */
void *coll_memory_block_one(struct coll_engine *engine, uint64_t bytes);
/* Gives it back; peers forget a region that is dropped. -EINVAL: it is none. */
int coll_memory_block_free(struct coll_engine *engine, void *block);

/* ---- for engines ------------------------------------------------------------ */

/*
 * The work of a touched socket. What it receives may be what the caller of advance() waits for:
 * engine->received is set then.
 */
void coll_memory_work(struct coll_socket *socket);
/* Receives what has come and sends what was blocked, on all sockets. Whether anything moved. */
bool coll_memory_serve(struct coll_engine *engine);
/*
 * The thread is about to sleep: peers wake it from now on. False: there is something to do, and
 * it must not sleep.
 */
bool coll_memory_sleep(struct coll_engine *engine);
/*
 * The same if the caller may sleep on the engine's descriptor: does what there is to do first. If that
 * does not end engine->kept_awake is set, and the caller is to poll again at once.
 */
void coll_memory_sleep_elsewhere(struct coll_engine *engine);
/* It is awake. */
void coll_memory_wake(struct coll_engine *engine);

#endif
