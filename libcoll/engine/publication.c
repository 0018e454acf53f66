// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "copy_out.h"
#include "core/port.h"
#include "engine.h"
#include "memory.h"
#include "publication.h"

enum { BLOCK_MIN = 64 << 10 };

/* As much as a region for the application's blocks has: less where many ranks are on a node. */
static uint64_t block_max(const struct coll_engine *engine)
{
	return engine->arena.least;
}

static void block_give(struct coll_engine *engine)
{
	struct coll_publications *all = &engine->publications;

	if (all->base)
		coll_memory_block_free(engine, all->base);
	all->base = NULL;
	all->bytes = 0;
}

/* A block of ordinary memory is none that peers map. */
static bool block_take(struct coll_engine *engine, uint64_t bytes)
{
	struct coll_publications *all = &engine->publications;

	block_give(engine);
	all->base = coll_memory_block_one(engine, bytes);
	if (all->base && coll_shared_find(&engine->arena, all->base, bytes)) {
		all->bytes = bytes;
		return true;
	}
	block_give(engine);
	all->refused = bytes;
	all->wanted = 0;
	return false;
}

/* A power of two, at most what there may be. */
static uint64_t block_size(const struct coll_engine *engine, uint64_t bytes)
{
	uint64_t size = BLOCK_MIN;

	while (size < bytes)
		size *= 2;
	return size < block_max(engine) ? size : block_max(engine);
}

/* Where so many bytes have room: behind the latest, or before the oldest. */
static bool place_find(struct coll_publications *all, uint64_t bytes, uint64_t *begin)
{
	const uint32_t last = (all->first + all->count - 1) % COLL_PUBLICATIONS_MAX;
	const uint64_t oldest = all->publication[all->first].begin, end = all->publication[last].end;
	const bool wrapped = all->publication[last].begin < oldest;

	*begin = 0;
	if (!all->count)
		return bytes <= all->bytes;
	if (all->count == COLL_PUBLICATIONS_MAX)
		return false;
	*begin = end;
	if ((wrapped ? oldest : all->bytes) - end >= bytes)
		return true;
	*begin = 0;
	return !wrapped && oldest >= bytes;
}

/* While nobody reads: what the latest ones together had no room for. */
static bool block_is_ready(struct coll_engine *engine, uint64_t bytes)
{
	struct coll_publications *all = &engine->publications;
	const uint64_t size = block_size(engine, bytes > all->wanted ? bytes : all->wanted);

	if (all->count || size <= all->bytes)
		return all->base;
	if (all->refused && size >= all->refused)
		return all->bytes >= bytes;
	return block_take(engine, size);
}

/* What there was no room for beside others. */
static void block_want(struct coll_engine *engine, uint64_t bytes)
{
	struct coll_publications *all = &engine->publications;

	if (all->count && all->bytes + bytes <= block_max(engine))
		all->wanted = all->bytes + bytes;
}

const uint8_t *coll_publish(struct coll_engine *engine, const void *bytes, uint64_t count)
{
	struct coll_publications *all = &engine->publications;
	const uint64_t room = (count + COLL_ARENA_ALIGN - 1) & ~(uint64_t)(COLL_ARENA_ALIGN - 1);
	uint64_t begin;
	uint32_t next;

	if (!engine->arena.shares || !count || count > block_max(engine) ||
	    !block_is_ready(engine, room))
		return NULL;
	if (!place_find(all, room, &begin)) {
		block_want(engine, room);
		return NULL;
	}
	next = (all->first + all->count++) % COLL_PUBLICATIONS_MAX;
	all->publication[next].begin = begin;
	all->publication[next].end = begin + room;
	all->publication[next].held = true;
	coll_copy_out(all->base + begin, bytes, count);
	return all->base + begin;
}

/* The oldest ones that have ended make room. */
static void publications_drop(struct coll_publications *all)
{
	while (all->count && !all->publication[all->first].held) {
		all->first = (all->first + 1) % COLL_PUBLICATIONS_MAX;
		all->count--;
	}
}

void coll_publication_end(struct coll_engine *engine, const uint8_t *publication)
{
	struct coll_publications *all = &engine->publications;
	const uint64_t begin = publication - all->base;
	uint32_t i;

	for (i = 0; i < all->count; i++) {
		const uint32_t at = (all->first + i) % COLL_PUBLICATIONS_MAX;

		if (!all->publication[at].held || all->publication[at].begin != begin)
			continue;
		all->publication[at].held = false;
		publications_drop(all);
		return;
	}
	coll_assert(!"a publication ends once");
}

bool coll_is_published(const struct coll_engine *engine, const void *address)
{
	const struct coll_publications *all = &engine->publications;

	return all->base && (uintptr_t)address - (uintptr_t)all->base < all->bytes;
}

void coll_publications_end(struct coll_engine *engine)
{
	engine->publications.count = 0;
	block_give(engine);
}
