// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the peer is to take from this process itself, instead of from the ring (exposed.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_parts.h"

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
	return !engine->crowded && engine->spin_ns && !coll_neighbour_is_near(&engine->neighbour);
}

static bool may_expose(const struct coll_memory *memory)
{
	return memory->socket->engine->exposes &&
	       !(memory->exposed_out.refused & COLL_EXPOSED_MEMORY);
}

static bool is_begun(const struct coll_memory *memory)
{
	return (int64_t)(memory->long_end - memory->out.count) > 0;
}

/* The header, which goes before the payload, may make the engine busy: so the choice is kept. */
bool coll_memory_may_expose(struct coll_memory *memory, const struct iovec *iov)
{
	const struct coll_engine *engine = memory->socket->engine;
	const uint64_t bytes = iov->iov_len;
	uint64_t offset;
	bool there;

	if (bytes < COLL_COPY_LEAST || is_begun(memory))
		return false;
	there = coll_memory_region_of(memory, iov, &offset);
	if (!there && !may_expose(memory))
		return false;
	if (!chosen_by_costs(engine)) {
		memory->chosen.bytes = 0;
		return bytes > memory->out.size;
	}
	if (memory->chosen.bytes != bytes || memory->chosen.there != there) {
		memory->chosen.bytes = bytes;
		memory->chosen.there = there;
		memory->chosen.busy = engine_is_busy(engine, memory);
		memory->chosen.reads = coll_copy_reads(&memory->copies[there], &memory->out.shared->costs,
						       bytes, memory->chosen.busy);
	}
	return memory->chosen.reads;
}

int coll_memory_ring_count(struct coll_memory *memory, const struct iovec *iov, int count)
{
	bool has_long = is_begun(memory) || iov[0].iov_len >= COLL_COPY_LEAST;
	int i;

	for (i = 1; i < count; i++) {
		const bool is_long = iov[i].iov_len >= COLL_COPY_LEAST;

		if (is_long && (has_long || coll_memory_may_expose(memory, &iov[i])))
			break;
		has_long |= is_long;
	}
	return i;
}

/* A message that could have been read begins; `after` other bytes are before it. */
static void long_begins(struct coll_memory *memory, uint64_t after, uint64_t bytes)
{
	memory->long_end = memory->out.count + after + bytes;
	memory->long_octave = coll_copy_octave(bytes);
	memory->long_there = memory->chosen.there;
	if (memory->chosen.bytes != bytes)
		return;
	coll_ring_announce(&memory->out, after, bytes, memory->chosen.busy);
	memory->chosen.bytes = 0;
}

static ssize_t write_long(struct coll_memory *memory, const struct iovec *iov, int count)
{
	const uint64_t start = coll_now();
	const ssize_t sent = coll_ring_write(&memory->out, iov, count);

	if (sent >= COLL_COPY_LEAST / 2)
		coll_copy_met(&memory->copies[memory->long_there].in[memory->long_octave],
			      coll_now() - start, sent);
	return sent;
}

ssize_t coll_memory_write(struct coll_memory *memory, const struct iovec *iov, int count)
{
	uint64_t after = 0;
	int i;

	if ((!may_expose(memory) && !coll_exposed_maps(&memory->exposed_out)) ||
	    !chosen_by_costs(memory->socket->engine))
		return coll_ring_write(&memory->out, iov, count);
	if (is_begun(memory))
		return write_long(memory, iov, count);
	for (i = 0; i < count && iov[i].iov_len < COLL_COPY_LEAST; i++)
		after += iov[i].iov_len;
	if (i == count)
		return coll_ring_write(&memory->out, iov, count);
	long_begins(memory, after, iov[i].iov_len);
	return write_long(memory, iov, count);
}

void coll_memory_expose(struct coll_memory *memory, const struct iovec *iov)
{
	uint64_t offset = 0;
	const uint64_t region = coll_memory_region_of(memory, iov, &offset);

	memory->exposes = true;
	memory->exposed_since = coll_now();
	memory->exposed = iov->iov_base;
	memory->exposed_bytes = iov->iov_len;
	memory->socket->sending = true;
	coll_exposed_begin_there(&memory->exposed_out, iov->iov_base, iov->iov_len, region, offset);
	memory->socket->engine->counters->exposed_bytes += iov->iov_len;
	memory->socket->engine->counters->mapped_bytes += region ? iov->iov_len : 0;
	coll_memory_wake_reader(memory);
}

/* What the peer took, and when, is the cost of reading. */
static void exposed_met(struct coll_memory *memory)
{
	uint32_t *read = memory->copies[memory->chosen.there].read[memory->chosen.busy];

	if (memory->chosen.bytes == memory->exposed_bytes)
		coll_copy_met(&read[coll_copy_octave(memory->exposed_bytes)],
			      coll_now() - memory->exposed_since, memory->exposed_bytes);
	memory->chosen.bytes = 0;
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
	if (result == (ssize_t)memory->exposed_bytes)
		exposed_met(memory);
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
	if (refused)
		coll_exposed_stop(&memory->exposed_out, taken);
	if (refused && memory->copy) {
		memory->exposes = false;	/* the rest of the copy goes through the ring */
		memory->copy_sent = taken;
		memory->copy_bytes = memory->exposed_bytes;
		return true;
	}
	exposed_end(memory, taken);
	return true;
}

static bool exposed_await_reader(struct coll_memory *memory)
{
	return memory->ended || coll_exposed_await_reader(&memory->exposed_out, &memory->socket->engine->owed_until);
}

/* The owner has its memory back. Nothing more is sent. */
static void exposed_abandon(struct coll_memory *memory, int error)
{
	coll_exposed_withdraw(&memory->exposed_out);
	exposed_await_reader(memory);
	coll_memory_end(memory, error);
	exposed_end(memory, error);
}

/* The owner wants its memory: a copy stands for it. Without memory for one the connection ends. */
void coll_memory_give_back(struct coll_memory *memory)
{
	const uint64_t all = memory->exposed_bytes;
	bool refused;
	int64_t taken;
	uint8_t *copy;

	if (coll_memory_exposed_is_over(memory))
		return;
	taken = coll_exposed_taken(&memory->exposed_out, &refused);
	copy = taken < 0 ? NULL : malloc(all);
	if (!copy) {
		exposed_abandon(memory, taken < 0 ? taken : -ENOMEM);
		return;
	}
	memcpy(copy, memory->exposed + taken, all - taken);
	coll_exposed_move(&memory->exposed_out, taken, copy);
	memory->exposed_bytes = all - taken;
	if (!exposed_await_reader(memory)) {
		exposed_abandon(memory, -ECONNRESET);
		free(copy);		/* which the reader may not read any more */
		return;
	}
	/* A reader that looked meanwhile saw nothing to read, and may sleep. */
	coll_memory_wake_reader(memory);
	memory->copy = copy;		/* before the owner may send more */
	memory->chosen.bytes = 0;	/* it has cost nothing that would tell of others */
	memory->socket->sending = false;
	memory->socket->ops->sent(memory->socket, all);
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
