/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Publications: bytes that several peers are to have, copied once to memory that they may map
 * (shared_arena.h). A link to such a peer sends the address of the copy; the peer reads there, and
 * its counter says when it has (exposed.h). So the sender copies once, not once for each of them into
 * rings of their own, and whoever reads second finds the bytes in a cache; and the sender's own
 * memory is its own again as soon as the copy is made.
 *
 * All publications of an engine have one block of its arena. It is made when the first is, grows
 * while it is empty, and is used from its beginning on whenever it is empty: the same lines again.
 * Without room for one more there is none, and its bytes go as those of any other message.
 *
 * One thread at a time uses it: that of the engine.
 */
#ifndef COLL_PUBLICATION_H
#define COLL_PUBLICATION_H

#include <stdbool.h>
#include <stdint.h>

enum { COLL_PUBLICATIONS_MAX = 64 };

struct coll_engine;

struct coll_publications {
	uint8_t *base;			/* NULL: there is no memory */
	uint64_t bytes, wanted;		/* wanted: of the next, larger block */
	uint64_t refused;		/* so many were not to be had; 0: never */
	struct {
		uint64_t begin, end;
		bool held;
	} publication[COLL_PUBLICATIONS_MAX];	/* a ring; the oldest one is held */
	uint32_t first, count;
};

/* A copy of these bytes, for coll_publication_end(). NULL: there is no room for it. */
const uint8_t *coll_publish(struct coll_engine *engine, const void *bytes, uint64_t count);
/* Nobody reads it any more. */
void coll_publication_end(struct coll_engine *engine, const uint8_t *publication);
/* Whether this is an address in a publication. */
bool coll_is_published(const struct coll_engine *engine, const void *address);
/* The engine ends: gives the memory back. */
void coll_publications_end(struct coll_engine *engine);

#endif
