// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the peer is to take from this process itself, instead of from the ring (exposed.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_parts.h"

/* What the ring could have held is taken back from a peer that has not begun by then. */
enum { LATE_NS = 100000 };

/* Whether this process has something else to do meanwhile. */
static bool engine_is_busy(const struct coll_engine *engine, const struct coll_memory *but)
{
	const struct coll_memory *memory;

	if (!engine->waits || engine->expected || engine->touched)
		return true;
	for (memory = engine->memories; memory; memory = memory->next)
		if (memory != but && (memory->blocked || memory->exposes))
			return true;
	return false;
}

/*
 * Whether the way is chosen by what it has cost. Where ranks share cores, or waits sleep, their
 * turns are in all times, so a rule stands for that: what the ring can hold goes through it, since
 * to wait until the peer has it costs more than a copy, and longer messages are read.
 */
static bool chosen_by_costs(const struct coll_engine *engine)
{
	return !engine->crowded && !coll_neighbour_is_near(&engine->neighbour);
}

/* A message that the ring has begun with goes on there. */
bool coll_memory_may_expose(const struct coll_memory *memory, const struct iovec *iov)
{
	const struct coll_engine *engine = memory->socket->engine;

	if (iov->iov_len < COLL_COPY_LEAST || iov->iov_len == memory->rest || !engine->exposes ||
	    memory->exposed_out.refused)
		return false;
	if (!chosen_by_costs(engine))
		return iov->iov_len > memory->out.size;
	return coll_copy_reads(&memory->copies, &memory->out.shared->costs, iov->iov_len,
			       engine_is_busy(engine, memory));
}

/* A message that could have gone either way goes this one: `after` other bytes of the ring. */
static void memory_announce(struct coll_memory *memory, uint64_t after, uint64_t bytes, bool reads)
{
	const struct coll_engine *engine = memory->socket->engine;
	const bool busy = engine_is_busy(engine, memory);

	if (!chosen_by_costs(engine))
		return;
	coll_copy_chose(&memory->copies, &memory->out.shared->costs, bytes, busy);
	coll_ring_announce(&memory->out, after, reads ? 0 : bytes, busy);
}

ssize_t coll_memory_write(struct coll_memory *memory, const struct iovec *iov, int count)
{
	uint64_t before = 0, after = 0, longest = 0, start;
	int64_t sent;
	int i;

	for (i = 0; i < count; i++, before += iov[i - 1].iov_len)
		if (iov[i].iov_len > longest) {
			longest = iov[i].iov_len;
			after = before;
		}
	if (longest < COLL_COPY_LEAST)
		return coll_ring_write(&memory->out, iov, count);
	if (longest != memory->rest) {
		memory_announce(memory, after, longest, false);
		memory->octave = coll_copy_octave(longest);
	}
	start = coll_now();
	sent = coll_ring_write(&memory->out, iov, count);
	if (sent >= COLL_COPY_LEAST / 2)
		coll_copy_met(&memory->copies.in[memory->octave], coll_now() - start, sent);
	memory->rest = sent > (int64_t)after && sent < (int64_t)(after + longest) ?
			       after + longest - sent : 0;
	return sent;
}

void coll_memory_expose(struct coll_memory *memory, const struct iovec *iov)
{
	memory_announce(memory, 0, iov->iov_len, true);
	memory->exposes = true;
	memory->exposed_since = coll_now();
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

/* A copy stands for what is left, and the owner has its memory back. False: no memory for one. */
static bool exposed_copy(struct coll_memory *memory, int64_t taken)
{
	uint8_t *copy = malloc(memory->exposed_bytes);

	if (!copy)
		return false;
	memcpy(copy + taken, memory->exposed + taken, memory->exposed_bytes - taken);
	coll_exposed_move(&memory->exposed_out, taken, copy + taken);
	/* A reader that looked meanwhile saw nothing to read, and may sleep. */
	coll_memory_wake_reader(memory);
	memory->copy = copy;		/* before the owner may send more */
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, memory->exposed_bytes);
	return true;
}

bool coll_memory_leaves_late_reader(struct coll_memory *memory, bool sleeps)
{
	bool refused;

	if (memory->copy || memory->ended || memory->exposed_bytes > memory->out.size ||
	    (!sleeps && coll_now() - memory->exposed_since < LATE_NS))
		return false;
	return !coll_exposed_taken(&memory->exposed_out, &refused) && !refused &&
	       exposed_copy(memory, 0);
}

/* The owner wants its memory. Without memory for a copy the connection ends. */
void coll_memory_give_back(struct coll_memory *memory)
{
	bool refused;
	int64_t taken;

	if (coll_memory_exposed_is_over(memory))
		return;
	taken = coll_exposed_taken(&memory->exposed_out, &refused);
	if (taken < 0)
		exposed_abandon(memory, taken);
	else if (!exposed_copy(memory, taken))
		exposed_abandon(memory, -ENOMEM);
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
