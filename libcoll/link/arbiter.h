/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The order in which links send: option link_policy, after the flow control by priorities
 * of Miura's thesis (docs/papers/paper-4.md), with chunks instead of flits.
 *
 * On a link, messages of at most URGENT_MAX bytes go before bulk. Bulk goes in chunks. The
 * next chunk is of the same message, so the oldest run's messages go first and whole
 * (occupancy), or of the next message (rr). All ranks start runs in the same order, so they
 * agree on it.
 *
 * Bounds, with chunk size C: an urgent message waits for earlier urgent ones, for data that
 * the kernel has taken (between clusters at most C and the data in flight), and for one
 * chunk for every C bytes of them. A chunk of bulk waits for at most C bytes of later
 * messages. With streams neither waits for the other.
 *
 * A chunk is what the link carries in 2 ms by the option beta, 64K to 8M; to other clusters
 * 64K.
 *
 * Of links that share an exit, one at a time sends bulk: the one with the oldest message
 * (occupancy), or first those to other clusters (occupancy-hier). With rr TCP shares the
 * exit. The links to other clusters share one; with occupancy-hier all that leave the node.
 * The next link begins before the last chunks of one have gone, since TCP needs time to
 * become fast. A blocked link is bypassed after four times the usual time of a chunk, at
 * least 100 ms, until its chunk has gone.
 */
#ifndef COLL_ARBITER_H
#define COLL_ARBITER_H

#include "link.h"

/* The chunk size in bytes. */
uint64_t coll_arbiter_chunk(const struct coll_link *link);
/* ... of links to other clusters. */
enum { CHUNK_FAR = 1 << 16 };
static inline uint64_t coll_arbiter_chunk_far(const struct coll_options *options)
{
	return options->link_chunk ? options->link_chunk : CHUNK_FAR;
}

/* Puts a message into its link's queue. */
void coll_arbiter_queue(struct coll_link *link, struct coll_message *message);

/* Takes the first message off the queue. */
struct coll_message *coll_arbiter_pop(struct coll_link *link);

/* Queues a message again of which a chunk, not the last, has gone. */
void coll_arbiter_requeue(struct coll_link *link, struct coll_message *message);

/* Whether the next that it sends is bulk. */
bool coll_arbiter_bulk_is_next(const struct coll_link *link);
/* Whether there is bulk in the link's queue. */
bool coll_arbiter_has_bulk(struct coll_link *link);
/* Whether bulk of a link with streams may be dealt now. */
bool coll_arbiter_offers(struct coll_link *link);
/* Deals the next chunk: *chunk is its header; returns its message. */
struct coll_message *coll_arbiter_deal(struct coll_link *link, struct coll_header *chunk);

/* Whether this message of the queue may be handed to the engine now. */
bool coll_arbiter_allows(struct coll_link *link, const struct coll_message *message);

/* The engine takes *slot of the link's queue: nothing may be inserted before it. */
void coll_arbiter_begin(struct coll_link *link, struct coll_message **slot);

/* A chunk of bulk has gone; `whole`: with it the message. Others may follow. */
void coll_arbiter_chunk_sent(struct coll_link *link, bool whole);

/* The link's queue or state has changed: decides whether it contends for the exit. */
void coll_arbiter_update(struct coll_link *link);

/* Bypasses a link that is blocked. */
void coll_arbiter_check(struct coll_context *context, uint64_t now);

#endif
