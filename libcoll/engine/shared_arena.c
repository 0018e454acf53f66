// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared_arena.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/base/memory_limit.h"

enum {
	HUGE_PAGE = 2 << 20,
	REGION_STEP = 64 << 10,		/* of one that has no huge page */
	REGION_MIN = 4 << 20,
	REGION_MAX = 256 << 20,		/* but for a block that is longer */
	KEPT_MAX = 16 << 20,		/* of a region without blocks */
	LEFT_AFTER = 4 << 20,		/* what the process may need besides, where a cgroup limits it */
	SPARED_PART = 8,		/* what is not necessary takes one part of so many that are left */
};

/* ---- regions ----------------------------------------------------------------- */

static struct coll_shared_region *region_free(struct coll_shared_arena *arena)
{
	uint32_t i;

	for (i = 0; i < COLL_ARENA_REGIONS; i++)
		if (!arena->region[i].base)
			return &arena->region[i];
	return NULL;
}

/* As much as there is already, so that many small blocks need few regions. */
static uint64_t region_size(const struct coll_shared_arena *arena, uint64_t bytes, uint64_t least)
{
	uint64_t size = 0, i, step;

	for (i = 0; i < COLL_ARENA_REGIONS; i++)
		size += arena->region[i].base ? arena->region[i].bytes : 0;
	if (!least)
		size = bytes;
	size = size < least ? least : size > REGION_MAX ? REGION_MAX : size;
	if (size < bytes)
		size = bytes;
	step = size < HUGE_PAGE ? REGION_STEP : HUGE_PAGE;
	return (size + step - 1) & ~(step - 1);
}

/* At an address that suits huge pages, if there is one. */
static uint8_t *region_map(int fd, uint64_t bytes)
{
	uint8_t *space = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			      MAP_NORESERVE, -1, 0);
	uint8_t *base;

	if (space == MAP_FAILED)
		return NULL;
	base = (uint8_t *)(((uintptr_t)space + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	if (base > space)
		munmap(space, base - space);
	munmap(base + bytes, space + HUGE_PAGE - base);
	if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(base, bytes);
		return NULL;
	}
	madvise(base, bytes, MADV_HUGEPAGE);	/* where shared memory may have them */
	return base;
}

/* Huge pages come by stores to this mapping, if at all; the rest by the file. */
static bool region_fill(int fd, uint8_t *base, uint64_t bytes)
{
	madvise(base, bytes, MADV_POPULATE_WRITE);
	return coll_file_fill(fd, bytes) && !fcntl(fd, F_ADD_SEALS, COLL_FILE_SEALS);
}

/* Pages are there when it is made: a store to it, or a peer's load, cannot fail later. */
static bool region_make(struct coll_shared_region *region, uint64_t bytes)
{
	const int fd = coll_memory_file("coll");
	uint8_t *base;

	if (fd < 0)
		return false;
	base = ftruncate(fd, bytes) ? NULL : region_map(fd, bytes);
	if (base && region_fill(fd, base, bytes)) {
		*region = (struct coll_shared_region){ .base = base, .bytes = bytes, .fd = fd };
		return true;
	}
	if (base)
		munmap(base, bytes);
	close(fd);
	return false;
}

/* For this rank, if all that may ask take as much. */
static uint64_t bytes_left(const struct coll_shared_arena *arena)
{
	const uint64_t available = coll_memory_available();
	const uint64_t limit = arena->limited ? coll_memory_limit_left() : UINT64_MAX;

	return (available < limit ? available : limit) / (arena->asking ? arena->asking : 1);
}

/* All its pages are taken at once: too many are the end of a process that the kernel chooses. */
static bool may_have(const struct coll_shared_arena *arena, uint64_t bytes)
{
	return coll_file_may_have(bytes) && bytes_left(arena) >= bytes + LEFT_AFTER;
}

static struct coll_shared_region *region_add(struct coll_shared_arena *arena, uint64_t bytes,
					     uint64_t least)
{
	struct coll_shared_region *region = arena->shares ? region_free(arena) : NULL;
	uint64_t size = region_size(arena, bytes, least);

	if (region && !may_have(arena, size))
		size = region_size(arena, bytes, 0);
	if (!region || !may_have(arena, size) || !region_make(region, size))
		return NULL;
	region->number = ++arena->made;
	return region;
}

uint64_t coll_shared_spared(const struct coll_shared_arena *arena)
{
	return arena->shares ? bytes_left(arena) / SPARED_PART : 0;
}

bool coll_shared_region_take(const struct coll_shared_arena *arena, struct coll_shared_region *region,
			     uint64_t bytes)
{
	return arena->shares && may_have(arena, bytes) && region_make(region, bytes);
}

void coll_shared_drop(struct coll_shared_region *region)
{
	munmap(region->base, region->bytes);
	close(region->fd);
	*region = (struct coll_shared_region){ .base = NULL };
}

/* One that is small may be needed again soon. */
struct coll_shared_region *coll_shared_unused(struct coll_shared_arena *arena)
{
	struct coll_shared_region *kept = NULL;
	uint32_t i;

	for (i = 0; i < COLL_ARENA_REGIONS; i++) {
		struct coll_shared_region *region = &arena->region[i];

		if (!region->base || region->blocks)
			continue;
		if (kept || region->bytes > KEPT_MAX)
			return region;
		kept = region;
	}
	return NULL;
}

/* ---- blocks ------------------------------------------------------------------ */

/* The first block that begins here or above. */
static size_t block_at(const struct coll_shared_arena *arena, const uint8_t *address)
{
	size_t low = 0, high = arena->blocks;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (arena->block[middle].base < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool blocks_reserve(struct coll_shared_arena *arena)
{
	const size_t capacity = arena->capacity ? 2 * arena->capacity : 16;
	struct coll_shared_block *block;

	if (arena->blocks < arena->capacity)
		return true;
	block = realloc(arena->block, capacity * sizeof(*block));
	if (!block)
		return false;
	arena->block = block;
	arena->capacity = capacity;
	return true;
}

static void *block_insert(struct coll_shared_arena *arena, size_t at, uint8_t *base, uint64_t bytes,
			  bool ordinary)
{
	memmove(&arena->block[at + 1], &arena->block[at], (arena->blocks - at) * sizeof(*arena->block));
	arena->block[at] = (struct coll_shared_block){ base, bytes, ordinary };
	arena->blocks++;
	return base;
}

/* Its first gap of so many bytes. */
static void *region_take(struct coll_shared_arena *arena, struct coll_shared_region *region, uint64_t bytes)
{
	uint8_t *from = region->base, *const end = region->base + region->bytes;
	size_t at = block_at(arena, from);

	for (; at < arena->blocks && arena->block[at].base < end; at++) {
		if ((uint64_t)(arena->block[at].base - from) >= bytes)
			break;
		from = arena->block[at].base + arena->block[at].bytes;
	}
	if ((at == arena->blocks || arena->block[at].base >= end) && (uint64_t)(end - from) < bytes)
		return NULL;
	region->blocks++;
	return block_insert(arena, at, from, bytes, false);
}

static void *ordinary_take(struct coll_shared_arena *arena, uint64_t bytes)
{
	void *base = aligned_alloc(COLL_ARENA_ALIGN, bytes);

	return base ? block_insert(arena, block_at(arena, base), base, bytes, true) : NULL;
}

static void *block_take(struct coll_shared_arena *arena, uint64_t bytes, uint64_t least)
{
	struct coll_shared_region *region;
	void *block;
	uint32_t i;

	if (!bytes || bytes > COLL_ARENA_MAX || !blocks_reserve(arena))
		return NULL;
	bytes = (bytes + COLL_ARENA_ALIGN - 1) & ~(uint64_t)(COLL_ARENA_ALIGN - 1);
	for (i = 0; i < COLL_ARENA_REGIONS; i++) {
		block = arena->region[i].base ? region_take(arena, &arena->region[i], bytes) : NULL;
		if (block)
			return block;
	}
	region = region_add(arena, bytes, least);
	return region ? region_take(arena, region, bytes) : ordinary_take(arena, bytes);
}

void *coll_shared_take(struct coll_shared_arena *arena, uint64_t bytes)
{
	return block_take(arena, bytes, arena->least ? arena->least : REGION_MIN);
}

void *coll_shared_take_one(struct coll_shared_arena *arena, uint64_t bytes)
{
	return block_take(arena, bytes, 0);
}

bool coll_shared_has(const struct coll_shared_arena *arena, const void *block)
{
	const size_t at = block_at(arena, block);

	return at < arena->blocks && arena->block[at].base == block;
}

int coll_shared_give(struct coll_shared_arena *arena, void *block)
{
	const size_t at = block_at(arena, block);
	struct coll_shared_block *found = &arena->block[at];

	if (!coll_shared_has(arena, block))
		return -EINVAL;
	if (found->ordinary)
		free(found->base);
	else
		coll_shared_find(arena, found->base, found->bytes)->blocks--;
	arena->blocks--;
	memmove(found, found + 1, (arena->blocks - at) * sizeof(*found));
	return 0;
}

void coll_shared_end(struct coll_shared_arena *arena)
{
	size_t i;

	if (arena->heir) {
		*arena->heir = *arena;
		arena->heir->heir = NULL;
		*arena = (struct coll_shared_arena){ .shares = false };
		return;
	}
	for (i = 0; i < arena->blocks; i++)
		if (arena->block[i].ordinary)
			free(arena->block[i].base);
	free(arena->block);
	for (i = 0; i < COLL_ARENA_REGIONS; i++)
		if (arena->region[i].base)
			coll_shared_drop(&arena->region[i]);
	*arena = (struct coll_shared_arena){ .shares = false };
}
