/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sends of the same bytes to several ranks of a node: one publication (libcoll/engine/published.h).
 *
 * The schedule does not say it. When a call is planned, sends of the same bytes that wait for the same
 * ops are marked as one publication. When the first of them starts, all may. Then its bytes are copied once,
 * a slot after the other, and each reader is told of a slot as soon as it is full: readers read
 * one piece while the next is copied. What a reader was told of is sent, and needs this rank no more.
 *
 * A link that does not go through memory, has something else to send, or whose peer has no credit left gets
 * its bytes the ordinary way, from the first piece on that it was not told of; so do all if no slot is
 * free, and when fewer than two readers follow. The next run tries again, or, if no slot was free, one soon after.
 */
#ifndef COLL_EXEC_PUBLISHED_H
#define COLL_EXEC_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/engine/board.h"
#include "planned.h"

struct coll_exec;

enum { COLL_READERS_MIN = 2 };	/* of a publication; for one a message is as good */

/* Of a send op. */
struct coll_publication {
	uint32_t first;			/* send of the publication; COLL_NONE: it is in none */
	uint32_t next;			/* ... send of it; COLL_NONE: this is the last */
	bool each;			/* the first's: its sends have bytes of their own, as many, for boards */
};

/*
 * Marks the sends of a plan: planned->publications. Without memory for that, none is marked. Also says whether it has
 * receives that others may post.
 */
void coll_published_mark(struct coll_planned *planned);

static inline uint32_t coll_publication_first(const struct coll_planned *planned, uint32_t op, bool is_short)
{
	return planned->publications && (coll_ops(planned->schedule)[op].bytes <= COLL_BOARD_BYTES) == is_short ?
		       planned->publications[op].first : COLL_NONE;
}

/* The first send of the publication that this op is in; COLL_NONE: it is in none. */
static inline uint32_t coll_published_first(const struct coll_planned *planned, uint32_t op)
{
	return coll_publication_first(planned, op, false);
}

/* The same for one that is short, which boards are for (board.h). */
static inline uint32_t coll_board_first(const struct coll_planned *planned, uint32_t op)
{
	return coll_publication_first(planned, op, true);
}

/*
 * The first send of a publication starts. Whether it is published: message->publishes says to whom. False: there are
 * fewer than two readers just now, and all are sends as others, as those are that are no readers.
 */
bool coll_published_begin(struct coll_exec *exec, uint32_t first);
/*
 * It has begun: publishes to all readers, as far as it can be done now: message->published says how far each was told.
 * Costs a copy of the bytes at most.
 */
void coll_published_send(struct coll_exec *exec, uint32_t first);

#endif
