/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An arena: memory of this process that peers of its node may map, to read long messages there
 * themselves (exposed.h). It has regions, each a memfd of its own, and in them blocks, as an
 * allocator has them. A region is made when no other has room, and dropped when its last block is
 * given back, but for one small one that is kept. Where a region is not to be had (a limit of the
 * cgroup or of files, no descriptor, no region left) a block is ordinary memory, which serves as
 * well and is read in another way.
 *
 * What it knows of its blocks is not in the regions. A region is sealed: it neither shrinks nor
 * grows, and nobody but this process can write to it. It has no name, and is gone when the last
 * process that has it mapped is.
 *
 * One thread at a time uses it: that of the engine.
 */
#ifndef COLL_SHARED_ARENA_H
#define COLL_SHARED_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/base/descriptors.h"

enum {
	COLL_ARENA_REGIONS = 32,
	COLL_ARENA_ALIGN = 128,		/* of blocks: two lines, which processors fetch together */
};

struct coll_shared_region {
	uint8_t *base;			/* NULL: there is none */
	uint64_t bytes;
	uint64_t blocks;		/* in use */
	uint64_t number;		/* of all that there were, from 1 */
	int fd;
};

struct coll_shared_block {
	uint8_t *base;
	uint64_t bytes;			/* a multiple of COLL_ARENA_ALIGN */
	bool ordinary;			/* in no region */
};

struct coll_shared_arena {
	bool shares;			/* peers may map it; else all blocks are ordinary */
	uint64_t asking;		/* ranks of the node or cgroup that may ask at once */
	bool limited;			/* by a cgroup */
	uint64_t least;			/* bytes of a region for the application's blocks */
	uint64_t made;			/* regions so far */
	struct coll_shared_arena *heir;	/* gets all of it in the end; NULL: it is freed then */
	struct coll_shared_region region[COLL_ARENA_REGIONS];
	struct coll_shared_block *block;	/* in use, by address */
	size_t blocks, capacity;
};

/* At least so many bytes, more than 0 and at most COLL_ARENA_MAX. NULL: there is no memory. */
#define COLL_ARENA_MAX (1ull << 48)
void *coll_shared_take(struct coll_shared_arena *arena, uint64_t bytes);
/* The same, of which no others are expected: a new region is as small as it can be. */
void *coll_shared_take_one(struct coll_shared_arena *arena, uint64_t bytes);
/* -EINVAL: this is no block. Peers may have its region mapped still: coll_shared_unused(). */
int coll_shared_give(struct coll_shared_arena *arena, void *block);
/* A region that is to be dropped, after peers were told; NULL: none. */
struct coll_shared_region *coll_shared_unused(struct coll_shared_arena *arena);
void coll_shared_drop(struct coll_shared_region *region);
/* Whether this is a block. */
bool coll_shared_has(const struct coll_shared_arena *arena, const void *block);
/*
 * Bytes of memory that is not necessary: so many contexts, of this process and of others, leave some for the rest.
 * Costs system calls.
 */
uint64_t coll_shared_spared(const struct coll_shared_arena *arena);
/*
 * A region by itself, which the caller drops. False: it is not to be had, or peers may map none.
 */
bool coll_shared_region_take(const struct coll_shared_arena *arena, struct coll_shared_region *region,
			     uint64_t bytes);
/* Frees all of it, if there is no heir. */
void coll_shared_end(struct coll_shared_arena *arena);

/* The region that has all of these bytes, or NULL. */
static inline struct coll_shared_region *coll_shared_find(struct coll_shared_arena *arena,
							const void *address, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < COLL_ARENA_REGIONS; i++) {
		struct coll_shared_region *region = &arena->region[i];
		const uint64_t at = (uintptr_t)address - (uintptr_t)region->base;

		if (region->base && at < region->bytes && bytes <= region->bytes - at)
			return region;
	}
	return NULL;
}

#endif
