// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the peer is to take from this process itself, instead of from the ring (exposed.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_parts.h"

enum { EXPOSED_MAX = 4 << 20 };	/* docs/results/performance.md */

/*
 * Whether this process, or another one of its core, has something else to do meanwhile. Else two
 * cores copy faster, each a part of the way, than the peer's does alone.
 */
static bool engine_is_busy(const struct coll_engine *engine, const struct coll_memory *but)
{
	const struct coll_memory *memory;

	if (!engine->waits || engine->crowded || engine->expected || engine->touched ||
	    coll_neighbour_is_near(&engine->neighbour))
		return true;
	for (memory = engine->memories; memory; memory = memory->next)
		if (memory != but && (memory->blocked || memory->exposes))
			return true;
	return false;
}

/*
 * What the ring could not hold, so that the owner waits for the peer in any case. Not what comes
 * from outside of the caches: there the kernel alone copies slower than two cores with a ring.
 */
bool coll_memory_may_expose(const struct coll_memory *memory, const struct iovec *iov)
{
	const struct coll_engine *engine = memory->socket->engine;

	return engine->exposes && iov->iov_len > memory->out.size && iov->iov_len <= EXPOSED_MAX &&
	       !memory->exposed_out.refused && engine_is_busy(engine, memory);
}

void coll_memory_expose(struct coll_memory *memory, const struct iovec *iov)
{
	memory->exposes = true;
	memory->exposed = iov->iov_base;
	memory->exposed_bytes = iov->iov_len;
	memory->socket->sending = true;
	coll_exposed_begin(&memory->exposed_out, iov->iov_base, iov->iov_len);
	memory->socket->engine->counters->exposed_bytes += iov->iov_len;
	coll_memory_wake_reader(memory);
}

/* The owner has its memory back, of which `result` bytes are sent. */
static void exposed_end(struct coll_memory *memory, ssize_t result)
{
	memory->exposes = false;
	if (memory->copy) {
		free(memory->copy);
		memory->copy = NULL;
		return;
	}
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, result);
}

/* The peer has taken it all, or refused, or is gone. False: it has yet to take something. */
bool coll_memory_exposed_is_over(struct coll_memory *memory)
{
	bool refused;
	const int64_t taken = coll_exposed_taken(&memory->exposed_out, &refused);

	if (taken < 0)
		coll_memory_fail(memory);
	if (memory->ended && taken != (int64_t)memory->exposed_bytes) {
		/* What the peer has sent before is read first. */
		if (coll_memory_has_bytes(memory) && memory->socket->ops->wants_recv(memory->socket))
			return false;
		coll_exposed_withdraw(&memory->exposed_out);
		exposed_end(memory, coll_memory_loss(memory));
		return true;
	}
	if (!refused && taken < (int64_t)memory->exposed_bytes)
		return false;
	if (refused && memory->copy) {
		memory->exposes = false;	/* the rest of the copy goes through the ring */
		memory->copy_sent = taken;
		memory->copy_bytes = memory->exposed_bytes;
		return true;
	}
	exposed_end(memory, taken);
	return true;
}

/* The owner has its memory back. Nothing more is sent. */
static void exposed_abandon(struct coll_memory *memory, int error)
{
	coll_exposed_withdraw(&memory->exposed_out);
	coll_memory_end(memory, error);
	exposed_end(memory, error);
}

/* The owner wants its memory: a copy stands for it. Without memory for one the connection ends. */
void coll_memory_give_back(struct coll_memory *memory)
{
	bool refused;
	int64_t taken;
	uint8_t *copy;

	if (coll_memory_exposed_is_over(memory))
		return;
	taken = coll_exposed_taken(&memory->exposed_out, &refused);
	copy = taken < 0 ? NULL : malloc(memory->exposed_bytes);
	if (!copy) {
		exposed_abandon(memory, taken < 0 ? taken : -ENOMEM);
		return;
	}
	memcpy(copy + taken, memory->exposed + taken, memory->exposed_bytes - taken);
	coll_exposed_move(&memory->exposed_out, taken, copy + taken);
	/* A reader that looked meanwhile saw nothing to read, and may sleep. */
	coll_memory_wake_reader(memory);
	memory->copy = copy;		/* before the owner may send more */
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, memory->exposed_bytes);
}

/* What the peer refused of a copy. True: all of it has gone. */
bool coll_memory_send_copy(struct coll_memory *memory)
{
	struct iovec iov = { memory->copy + memory->copy_sent,
			     memory->copy_bytes - memory->copy_sent };
	const ssize_t sent = coll_ring_write(&memory->out, &iov, 1);

	if (sent < 0)
		coll_memory_fail(memory);
	else
		memory->copy_sent += sent;
	if (sent > 0)
		coll_memory_wake_reader(memory);
	memory->blocked = memory->copy_sent < memory->copy_bytes && !memory->ended;
	if (memory->blocked)
		return false;
	free(memory->copy);
	memory->copy = NULL;
	return true;
}
