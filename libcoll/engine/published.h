/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * One publication, many readers: bytes that several processes of a node are to get are copied once,
 * to a slot of this process' area, and each of them reads them there. The area is a region as those
 * of an arena are (shared_arena.h): a sealed memfd, filled when it is made, which nobody else can write.
 * It is one of the regions that a node's budget is for (transport/shared_memory.c), as large as the first one of the
 * arena, and smaller where little memory is left. It is made when first needed, announced to a peer before it is used
 * with that one, and used when the peer has it mapped and says so. Who cannot map it gets its bytes as before.
 *
 * Which slot has what is told in order with all other bytes (libcoll/link/published.c). A reader
 * acknowledges each piece that it was told of by a counter of the slot; readers do so in any order. A slot is free
 * when all that were told of pieces in it have acknowledged them. Nobody waits for one: without a free slot bytes go
 * the ordinary way. So a reader that never acknowledges keeps its slots, and harms nobody; one that is seen to have
 * acknowledged more of a slot than it was told of, while others of its pieces are awaited, loses its connection.
 *
 * Each slot has a generation, which is raised before it is used again, and named with each piece. A reader compares
 * it after its copy: whatever was wrong with the acknowledgements, it does not take other bytes for those.
 *
 * A publication needs its writer no more: readers have the pages mapped, also after that has closed or died.
 * A slot that was not acknowledged when its connection ended is not used again while its reader may come yet: its
 * process lives, or is not seen. So failures may use up the area; then bytes go the ordinary way. A process that has
 * ended has no thread left that could read, nor does the kernel read there for it: it is given no such address. Its
 * children have none of it mapped (regions.c). So its slots are used again. Who names another process as its own may
 * find other bytes than it was told of: the generation says so, and the harm is its own.
 */
#ifndef COLL_PUBLISHED_H
#define COLL_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "shared_arena.h"

enum {
	COLL_SLOT_BYTES = 128 << 10,
	COLL_SLOTS = 32,		/* at most */
};

struct coll_engine;
struct coll_socket;

/* The reader's, in shared memory: only it stores them. */
struct coll_published_reader {
	uint32_t maps;			/* it has the writer's area mapped: 0 or 1 */
	uint32_t read[COLL_SLOTS];	/* pieces that it has read, of each slot */
};

/*
 * A process that may read what is published here, whose end is seen. Its owner keeps it as long as the engine has
 * sockets, and sets it all to zero at first.
 */
struct coll_published_process {
	struct coll_published_process *next;	/* of those that have left anything unread */
	uint32_t unread;		/* slots that it may read yet, of connections that are closed: bits */
	bool left;			/* it is on that list */
	bool ended;
};

/* An engine's area. */
struct coll_published_area {
	struct coll_shared_region region;
	uint32_t slots;			/* 0: there is no area (yet) */
	uint32_t lost;			/* slots of readers whose end is not seen, not used again: bits */
	struct coll_published_process *left;	/* the others' are used again when these have ended */
	uint32_t skips, skipped_last;	/* messages that do not ask for one yet, of how many since none was free */
	uint64_t again;			/* when it is asked for again, after there was none to be had */
};

/* ---- the writer ------------------------------------------------------------ */

/* Bytes of a message that is published whole, and leaves slots for the next one. 0: nothing is. */
uint64_t coll_memory_publishes_most(const struct coll_engine *engine);

/*
 * Whether this message is published to the peer. The first time makes the area, which takes its memory at
 * once, and announces it: false then.
 */
bool coll_memory_publishes(struct coll_socket *socket, const void *data, uint64_t bytes);
/*
 * Whether a message is to ask for a slot. To look at all slots of all readers costs up to two lines of a cache for each
 * reader: after each time in a row that none was free, twice as many messages do not, 31 at most.
 */
bool coll_memory_asks_for_slot(struct coll_engine *engine);
/* A slot that nobody reads, where up to COLL_SLOT_BYTES are to be copied. NULL: there is none. */
uint8_t *coll_memory_slot(struct coll_engine *engine, uint32_t *slot);
uint32_t coll_memory_slot_generation(const struct coll_engine *engine, uint32_t slot);
/* The peer was told of a piece in the slot. */
void coll_memory_lend_slot(struct coll_socket *socket, uint32_t slot);

/* The process has ended: it reads no more. */
void coll_memory_reader_ended(struct coll_published_process *process);

/* ---- the reader ------------------------------------------------------------ */

/* These bytes of a slot of the peer's. NULL: it has no such slot, or not so many. */
const uint8_t *coll_memory_published(const struct coll_socket *socket, uint32_t slot,
				     uint32_t offset, uint64_t bytes);
/*
 * Whether that slot, which it has, has this generation still: what was copied from it before is what the peer
 * has published there.
 */
bool coll_memory_is_still_published(const struct coll_socket *socket, uint32_t slot,
				    uint32_t generation);
/* A piece of it was read: the peer may change that. */
void coll_memory_took_published(struct coll_socket *socket, uint32_t slot);

#endif
