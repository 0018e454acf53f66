// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The other side of memory: it is woken, and it ends. */
#include <errno.h>
#include <sys/socket.h>

#include "memory.h"
#include "memory_parts.h"

/* A full buffer has bytes that wake the peer already. */
void coll_memory_wake_peer(struct coll_memory *memory, enum coll_ring_sleep sleep)
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
void coll_memory_wake_reader(struct coll_memory *memory)
{
	coll_processor_barrier();
	coll_memory_wake_peer(memory, coll_ring_wakes_reader(&memory->out));
}

/* The reader is woken, if it sleeps, with those of other writes. */
void coll_memory_wake_reader_soon(struct coll_memory *memory)
{
	struct coll_engine *engine = memory->socket->engine;

	if (memory->unwoken)
		return;
	memory->unwoken = true;
	memory->next_unwoken = engine->unwoken;
	engine->unwoken = memory;
}

void coll_memory_wake_written(struct coll_engine *engine)
{
	struct coll_memory *memory;

	coll_processor_barrier();
	while ((memory = engine->unwoken)) {
		engine->unwoken = memory->next_unwoken;
		memory->unwoken = false;
		coll_memory_wake_peer(memory, coll_ring_wakes_reader(&memory->out));
	}
}

/* The first error is kept: a lack of memory here is not the peer's end. 0: it has closed. */
void coll_memory_end(struct coll_memory *memory, int error)
{
	if (!memory->error)
		memory->error = error;
	memory->ended = true;
}

/* Why nothing can be sent any more. */
int coll_memory_loss(const struct coll_memory *memory)
{
	return memory->error ? memory->error : -EPIPE;
}

/* A counter of the peer's is impossible. */
void coll_memory_fail(struct coll_memory *memory)
{
	coll_memory_end(memory, -EPROTO);
}
