// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <unistd.h>

#include "memory.h"
#include "memory_parts.h"
#include "published.h"

/* Behind the slots: the generation of each. */
enum { GENERATIONS_BYTES = COLL_SLOTS * sizeof(uint32_t) };

/* Of a longer message the copies of all readers are more than the caches hold: docs/results/node.md. */
enum { PUBLISHED_MAX = 1 << 20 };

/* Messages that do not ask for a slot, after many times that none was free. */
enum { SKIPS_MAX = 31 };

/* ---- the writer ------------------------------------------------------------ */

/* That the node's budget has for this rank (transport/shared_memory.c). */
static uint32_t area_slots(const struct coll_engine *engine)
{
	const uint64_t slots = engine->arena.least / COLL_SLOT_BYTES;

	return slots < COLL_SLOTS ? slots : COLL_SLOTS;
}

uint64_t coll_memory_publishes_most(const struct coll_engine *engine)
{
	const uint64_t half = area_slots(engine) / 2 * (uint64_t)COLL_SLOT_BYTES;

	if (!engine->arena.shares)
		return 0;
	return half < PUBLISHED_MAX ? half : PUBLISHED_MAX;
}

/* False: there is none. To ask costs system calls, so not for each message. */
static bool area_make(struct coll_engine *engine)
{
	struct coll_published_area *area = &engine->published;
	uint32_t slots = area_slots(engine);
	uint64_t spared;

	if (area->slots)
		return true;
	if (!slots || engine->now < area->again)
		return false;
	area->again = engine->now + COLL_SECOND;
	spared = coll_shared_spared(&engine->arena) / COLL_SLOT_BYTES;
	slots = spared < slots ? spared : slots;
	if (!slots || !coll_shared_region_take(&engine->arena, &area->region,
				     slots * (uint64_t)COLL_SLOT_BYTES + sysconf(_SC_PAGESIZE)))
		return false;
	area->slots = slots;
	return true;
}

/* All peers read it where it is, if they may: one copy less. */
static bool is_read_there(struct coll_memory *memory, const void *data, uint64_t bytes)
{
	if (coll_shared_find(&memory->socket->engine->arena, data, bytes) &&
	    coll_exposed_maps(&memory->exposed_out))
		return bytes > memory->out.size;
	return bytes > PUBLISHED_MAX && !(memory->exposed_out.refused & COLL_EXPOSED_MEMORY);
}

bool coll_memory_publishes(struct coll_socket *socket, const void *data, uint64_t bytes)
{
	struct coll_memory *memory = socket->memory;
	struct coll_ring_shared *shared = memory->out.shared;

	if (is_read_there(memory, data, bytes))
		return false;
	if (memory->area_told)
		return __atomic_load_n(&shared->published.maps, __ATOMIC_ACQUIRE);
	if (!socket->engine->exposes || socket->engine->short_io || memory->ended ||
	    !coll_exposed_maps(&memory->exposed_out) || !area_make(socket->engine))
		return false;
	memory->area_told = coll_memory_announce(memory, COLL_REGION_IS_PUBLISHED,
						 &socket->engine->published.region);
	if (memory->area_told)
		__atomic_store_n(&shared->writer.publishes, 1, __ATOMIC_RELEASE);
	return false;
}

/* Whether this peer has acknowledged all pieces of it that it was told of. */
static bool slot_is_read(const struct coll_memory *memory, uint32_t slot)
{
	return __atomic_load_n(&memory->out.shared->published.read[slot], __ATOMIC_ACQUIRE) ==
	       memory->lent[slot];
}

/* More than those. */
static bool reader_lies(const struct coll_memory *memory, uint32_t slot)
{
	const uint32_t read =
		__atomic_load_n(&memory->out.shared->published.read[slot], __ATOMIC_RELAXED);

	return (int32_t)(memory->lent[slot] - read) < 0;
}

/* Whose owner learns it. */
static void reader_fail(struct coll_memory *memory)
{
	if (memory->ended)
		return;
	coll_memory_fail(memory);
	coll_socket_touch(memory->socket);
}

static bool reader_has_ended(const struct coll_memory *memory)
{
	const struct coll_published_process *process = memory->socket->reader;

	return process && process->ended;
}

/* Of those that it was told of: bits. */
static uint32_t slots_unread(const struct coll_memory *memory)
{
	uint32_t left, unread = 0;

	if (reader_has_ended(memory))
		return 0;
	for (left = memory->lent_slots; left; left &= left - 1)
		if (!slot_is_read(memory, __builtin_ctz(left)))
			unread |= left & -left;
	return unread;
}

/*
 * Slots that this peer may read yet: bits. That the connection has ended does not say that it reads no more: it
 * may have the place already.
 */
static uint32_t slots_lent(struct coll_memory *memory)
{
	uint32_t left;

	memory->lent_slots = slots_unread(memory);
	for (left = memory->lent_slots; left; left &= left - 1)
		if (reader_lies(memory, __builtin_ctz(left)))
			reader_fail(memory);
	return memory->lent_slots;
}

static uint32_t *slot_generation(const struct coll_engine *engine, uint32_t slot)
{
	const struct coll_published_area *area = &engine->published;

	return (uint32_t *)(area->region.base + area->slots * (uint64_t)COLL_SLOT_BYTES) + slot;
}

bool coll_memory_asks_for_slot(struct coll_engine *engine)
{
	struct coll_published_area *area = &engine->published;

	if (!area->skips)
		return true;
	area->skips--;
	return false;
}

static void slot_was_found(struct coll_published_area *area, bool found)
{
	if (found)
		area->skipped_last = 0;
	else if (area->skipped_last < SKIPS_MAX)
		area->skipped_last = 2 * area->skipped_last + 1;
	area->skips = area->skipped_last;
}

/* Those that may be read: bits. */
static uint32_t slots_used(struct coll_engine *engine)
{
	const struct coll_published_process *process;
	uint32_t used = engine->published.lost;
	struct coll_memory *memory;

	for (process = engine->published.left; process; process = process->next)
		used |= process->unread;
	for (memory = engine->memories; memory; memory = memory->next)
		if (memory->lent_slots)
			used |= slots_lent(memory);
	return used;
}

/* The lowest: it may be in caches still. Whoever reads it yet finds another generation, after other bytes. */
uint8_t *coll_memory_slot(struct coll_engine *engine, uint32_t *slot)
{
	const uint32_t used = slots_used(engine);
	uint32_t *generation;

	*slot = ~used ? __builtin_ctz(~used) : COLL_SLOTS;
	slot_was_found(&engine->published, *slot < engine->published.slots);
	if (*slot >= engine->published.slots)
		return NULL;
	generation = slot_generation(engine, *slot);
	__atomic_store_n(generation, *generation + 1, __ATOMIC_RELAXED);
	coll_processor_barrier();
	return engine->published.region.base + *slot * (uint64_t)COLL_SLOT_BYTES;
}

uint32_t coll_memory_slot_generation(const struct coll_engine *engine, uint32_t slot)
{
	return *slot_generation(engine, slot);
}

void coll_memory_lend_slot(struct coll_socket *socket, uint32_t slot)
{
	socket->memory->lent[slot]++;
	socket->memory->lent_slots |= 1u << slot;
}

void coll_memory_leave_slots(struct coll_memory *memory)
{
	struct coll_published_area *area = &memory->socket->engine->published;
	struct coll_published_process *process = memory->socket->reader;
	const uint32_t unread = slots_unread(memory);

	if (!process) {
		area->lost |= unread;
		return;
	}
	process->unread |= unread;
	if (!unread || process->left)
		return;
	process->left = true;
	process->next = area->left;
	area->left = process;
}

void coll_memory_reader_ended(struct coll_published_process *process)
{
	process->ended = true;
	process->unread = 0;
}

/* ---- the reader ------------------------------------------------------------ */

static bool awaits_area(const struct coll_memory *memory)
{
	return !memory->regions.area_told;
}

void coll_memory_await_area(struct coll_memory *memory)
{
	if (memory->held || memory->area_awaited || !memory->socket->engine->exposes ||
	    !__atomic_load_n(&memory->in.shared->writer.publishes, __ATOMIC_ACQUIRE))
		return;
	memory->area_awaited = true;		/* what was announced before is here now */
	coll_memory_listen_while(memory, awaits_area);
}

static bool area_has(const struct coll_region *area, uint32_t slot)
{
	return slot < COLL_SLOTS && slot < area->bytes / COLL_SLOT_BYTES &&
	       area->bytes % COLL_SLOT_BYTES >= GENERATIONS_BYTES;
}

const uint8_t *coll_memory_published(const struct coll_socket *socket, uint32_t slot,
				     uint32_t offset, uint64_t bytes)
{
	const struct coll_region *area = &socket->memory->regions.area;

	return area_has(area, slot) && offset <= COLL_SLOT_BYTES && bytes <= COLL_SLOT_BYTES - offset ?
		       area->base + slot * (uint64_t)COLL_SLOT_BYTES + offset : NULL;
}

bool coll_memory_is_still_published(const struct coll_socket *socket, uint32_t slot,
				    uint32_t generation)
{
	const struct coll_region *area = &socket->memory->regions.area;
	const uint64_t slots = area->bytes / COLL_SLOT_BYTES;

	coll_processor_barrier();
	return __atomic_load_n((const uint32_t *)(area->base + slots * COLL_SLOT_BYTES) + slot,
			       __ATOMIC_RELAXED) == generation;
}

void coll_memory_took_published(struct coll_socket *socket, uint32_t slot)
{
	uint32_t *read = &socket->memory->in.shared->published.read[slot];

	__atomic_store_n(read, *read + 1, __ATOMIC_RELEASE);
}
