/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Messages between two ranks of a group, as links carry them. */
#ifndef COLL_MESSAGE_H
#define COLL_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "uapi/coll_wire.h"

struct coll_exec;

enum {
	/* Payloads up to this size are sent from a copy in the message: the op is done at once. */
	MESSAGE_INLINE_MAX = 200,
	/* Expected payloads from this size on are received straight to their target. */
	DIRECT_MIN = 4096,
	/* Messages up to this overtake longer ones. */
	URGENT_MAX = 4096,
	/*
	 * Up to this they go straight to memory that the peer shares, if nothing is before them. Longer ones
	 * pay for a poll of the engine, and are copied in pieces while the peer reads, or read by it.
	 */
	STRAIGHT_MAX = 16 << 10,
	/* Speculative receives are limited, so that a wrong one costs little. */
	SPECULATIVE_MAX = 65536,
};

/* A message that this rank sends; in its exec, or on the heap (control). */
struct coll_message {
	struct coll_message *next;
	struct coll_exec *exec;		/* NULL: control message, freed when sent */
	const uint8_t *payload;		/* NULL: in small[] */
	uint32_t run_age;		/* of its run: lower is older */
	uint64_t age;			/* of bulk: lower is older (arbiter.c) */
	uint32_t op;
	bool reported;			/* the op is done already */
	bool publishes;			/* its run has begun to publish it */
	uint64_t published;		/* bytes that the peer reads elsewhere: not sent (exec/published.h) */
	uint32_t streaming;		/* chunks of it in streams */
	struct coll_header header;	/* of the next chunk, or the one under way */
	uint8_t small[MESSAGE_INLINE_MAX];
};

#endif
