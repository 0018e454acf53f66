/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sends of the same bytes to several ranks, through memory: the bytes are copied once, to where all of
 * them read (engine/publication.h). The schedule does not say it. When a call is planned, sends are
 * marked that have the same bytes, with no op between that writes there: what one sends, all send.
 *
 * A send whose message goes at once is done with the copy: its memory may change. One that waits
 * behind another message is done when that has gone, so no rank runs ahead by more than its
 * links hold.
 */
#ifndef COLL_PUBLISHED_H
#define COLL_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

struct coll_exec;
struct coll_message;
struct coll_planned;

/* Of the sends that have one copy; of its exec. */
struct coll_published {
	const uint8_t *bytes;		/* NULL: there is none, or not yet */
	uint32_t sends;			/* that have not gone, while there is one */
};

/* Marks the sends of a plan: planned->published. Without memory for that none is. */
void coll_published_mark(struct coll_planned *planned);

/*
 * This send is about to be queued: its payload may be a copy from now on. Whether it is done
 * with that.
 */
bool coll_published_send(struct coll_exec *exec, uint32_t op, struct coll_message *message);
/* It has gone, or was given up. */
void coll_published_sent(struct coll_exec *exec, uint32_t op);
/* The exec is completed, and none of its messages is under way. */
void coll_published_end(struct coll_exec *exec);

#endif
