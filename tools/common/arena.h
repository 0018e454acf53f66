/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Memory for tools; the program ends if there is none. Pieces of an arena are released together. */
#ifndef COLL_ARENA_H
#define COLL_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *first, *current;
};

struct arena_mark {
	struct arena_chunk *chunk;
	size_t used;
};

/* 16-byte aligned, content undefined; valid until released. */
void *arena_get(struct arena *arena, size_t count, size_t bytes);
/* All zero. */
void *arena_get_zero(struct arena *arena, size_t count, size_t bytes);

struct arena_mark arena_mark(const struct arena *arena);
/* Releases everything allocated since the mark. */
void arena_release(struct arena *arena, struct arena_mark mark);
void arena_free(struct arena *arena);

/* malloc, realloc and free that do not fail. */
void *memory_grow(void *old, size_t count, size_t bytes);
void memory_free(void *memory);

#endif
