// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "command.h"

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	_Alignas(16) char data[];
};

enum { CHUNK_BYTES = 1 << 20 };

void *memory_grow(void *old, size_t count, size_t bytes)
{
	void *memory = reallocarray(old, count, bytes);

	if (!memory && count && bytes) {
		fprintf(stderr, "coll: out of memory (%zu x %zu bytes)\n", count, bytes);
		exit(COMMAND_ERROR);
	}
	return memory;
}

void memory_free(void *memory)
{
	free(memory);
}

static struct arena_chunk *chunk_new(size_t bytes)
{
	size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	struct arena_chunk *chunk = memory_grow(NULL, 1, sizeof(*chunk) + size);

	*chunk = (struct arena_chunk){ .size = size };
	return chunk;
}

/* Makes a chunk with at least `bytes` free the current one. */
static void arena_advance(struct arena *arena, size_t bytes)
{
	struct arena_chunk **link = arena->current ? &arena->current->next : &arena->first;
	struct arena_chunk *chunk = *link;

	if (!chunk || chunk->size < bytes) {
		struct arena_chunk *bigger = chunk_new(bytes);

		bigger->next = chunk;
		*link = chunk = bigger;
	}
	chunk->used = 0;
	arena->current = chunk;
}

void *arena_get(struct arena *arena, size_t count, size_t bytes)
{
	size_t need = (count * bytes + 15) & ~(size_t)15;
	void *piece;

	if (!arena->current || arena->current->size - arena->current->used < need)
		arena_advance(arena, need);
	piece = arena->current->data + arena->current->used;
	arena->current->used += need;
	return piece;
}

void *arena_get_zero(struct arena *arena, size_t count, size_t bytes)
{
	return memset(arena_get(arena, count, bytes), 0, count * bytes);
}

struct arena_mark arena_mark(const struct arena *arena)
{
	return (struct arena_mark){ arena->current, arena->current ? arena->current->used : 0 };
}

void arena_release(struct arena *arena, struct arena_mark mark)
{
	arena->current = mark.chunk;
	if (mark.chunk)
		mark.chunk->used = mark.used;
}

void arena_free(struct arena *arena)
{
	while (arena->first) {
		struct arena_chunk *next = arena->first->next;

		free(arena->first);
		arena->first = next;
	}
	arena->current = NULL;
}
