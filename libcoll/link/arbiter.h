/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Whose bytes go next: option link_policy, after the flow control by priorities
 * of Miura's thesis (docs/papers/paper-4.md), with chunks in the place of flits.
 *
 * On a link, messages of at most URGENT_MAX bytes go before bulk. Bulk goes chunk
 * by chunk; the next chunk is of the same message, so that the oldest run's
 * messages come first and whole (occupancy), or of the next message (rr). Ranks start
 * runs in the same order, so they agree on whom to serve.
 *
 * Bounds, C being the chunk: an urgent message waits for those before it, for what
 * the kernel has taken (between clusters at most C and what is on its way), and for
 * one chunk for every C bytes of them. A chunk of bulk waits for at most C bytes of
 * messages that came after it. With streams neither waits for the other.
 *
 * A chunk is what 2 ms carry by the option beta, 64K to 8M; to other clusters 64K.
 *
 * Among links that share an exit, one at a time sends bulk: that with the oldest
 * message (occupancy), or first those to other clusters (occupancy-hier). With rr
 * TCP shares it, which is a turn for each. These are the links to other
 * clusters; with occupancy-hier all that leave the node. The next begins before the last
 * chunks of one have gone, for TCP takes its time to become fast. Nobody waits for
 * one that is blocked: it is passed over after four times what a chunk took of late,
 * at least 100 ms, until its chunk is gone.
 */
#ifndef COLL_ARBITER_H
#define COLL_ARBITER_H

#include "link.h"

/* How much of a message goes at once. */
uint64_t coll_arbiter_chunk(const struct coll_link *link);

/* Puts a message where it belongs in its link's queue. */
void coll_arbiter_queue(struct coll_link *link, struct coll_message *message);

/* Takes the first message off the queue. */
struct coll_message *coll_arbiter_pop(struct coll_link *link);

/* A chunk of this message, which is off the queue, is gone and was not its last. */
void coll_arbiter_queue_again(struct coll_link *link, struct coll_message *message);

/* Whether there is bulk in the link's queue. */
bool coll_arbiter_has_bulk(struct coll_link *link);
/* Whether bulk of a link with streams may be dealt now. */
bool coll_arbiter_offers(struct coll_link *link);
/* Deals the next chunk, of which *chunk becomes the header; returns whose part it is. */
struct coll_message *coll_arbiter_deal(struct coll_link *link, struct coll_header *chunk);

/* Whether this message of the queue may be handed to the engine now. */
bool coll_arbiter_lets(struct coll_link *link, const struct coll_message *message);

/* *slot, in the link's queue, is handed to the engine: nothing comes before it. */
void coll_arbiter_begin(struct coll_link *link, struct coll_message **slot);

/* A chunk of bulk is gone, and with it the message (`whole`) or not: others may follow. */
void coll_arbiter_chunk_gone(struct coll_link *link, bool whole);

/* The link's queue or state has changed: does it contend for the exit? */
void coll_arbiter_look(struct coll_link *link);

/* Passes over a link that is blocked. */
void coll_arbiter_check(struct coll_context *context, uint64_t now);

#endif
