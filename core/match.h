/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Matching arrived messages with receives, in either order of arrival. A message
 * names its sender and its slot; the schedule names the op. Matching is two look-ups
 * and keeps no queue.
 */
#ifndef COLL_MATCH_H
#define COLL_MATCH_H

#include "uapi/coll_wire.h"
#include "step.h"

enum coll_match {
	COLL_MATCH_POSTED,	/* the receive has started: deliver to its place */
	COLL_MATCH_UNEXPECTED,	/* it has not: buffer the message until it does */
	COLL_MATCH_STALE,	/* no op needs it any more: discard it */
};

/*
 * Which receive a message of `bytes` from `rank` with `slot` is for; *op is set
 * unless an error is returned. -EPROTO: the schedule has no such message, or it
 * has another size, or it has arrived already (the message is hostile, or the
 * two ranks run different schedules).
 */
int coll_match(const struct coll_step *step, u32 rank, u32 slot, u64 bytes, u32 *op);

/* Whether a header is one that the wire may carry; says nothing of runs and slots. */
bool coll_header_valid(const struct coll_header *header);

/* The negative errno of a FAIL; -EPROTO: it has none that may be returned to programs. */
int coll_header_error(const struct coll_header *fail);

/* How much payload follows a valid header. */
u64 coll_chunk_bytes(const struct coll_header *header);

/*
 * The header of a chunk with the first `bytes` of the message. A chunk of the message must
 * end there.
 */
struct coll_header coll_chunk_first(const struct coll_header *header, u64 bytes);
/* The last `bytes` of the message as a message of their own, to be discarded. */
struct coll_header coll_chunk_rest(const struct coll_header *header, u64 bytes);

/* Cuts what is sent next of the message, from header->offset on, at `most` bytes. */
void coll_chunk_cut(struct coll_header *header, u64 most);

#endif
