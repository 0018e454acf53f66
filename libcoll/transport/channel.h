/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A transport: a channel of the connection that two processes share (mux.h). */
#ifndef COLL_CHANNEL_H
#define COLL_CHANNEL_H

#include "arrival.h"
#include "libcoll/engine/published.h"
#include "mux.h"

struct coll_channel {
	struct coll_arrival arrival;	/* if the peer has opened it */
	struct coll_mux *mux;
	struct coll_link *link;		/* NULL: it has none yet, or none any more */
	uint32_t number;
	uint64_t credit;		/* bytes that may be sent */
	uint64_t window;		/* bytes that the peer may send */
	uint8_t *held;			/* bytes that the link does not read yet */
	uint64_t held_bytes, held_capacity;
	uint64_t held_begin;		/* bytes before them that were fed already */
	uint64_t held_published, held_published_end;	/* of them: where the first publication begins, and the last ends; end 0: none */
	uint32_t unread[COLL_SLOTS];	/* publications that have come, of each slot (published.h) */
	uint32_t unread_all;
	struct coll_channel *next, **slot;	/* of the mux */
	struct coll_channel *next_in_bucket, *next_touched, *next_sender, *next_receiver;
	bool touched, sends, receives;	/* in these lists of the mux */
	bool feeding;			/* held bytes are being delivered to its link */
	bool blocked;			/* waits for a grant */
	bool peer_ended;		/* the peer sends nothing more */
	bool peer_reset;		/* the peer neither sends nor reads */
	bool end_delivered;		/* the link knows the end */
	bool stopping;			/* the link reads no further than what is here */
	bool ended;			/* this side has said that it sends nothing more */
};

extern const struct coll_transport coll_channel_transport;

/*
 * Asks the peer of a link, which is to connect it, whether the group has failed there. Connects
 * to its process if need be: its end is noticed from then on.
 */
void coll_channels_ask(const struct coll_link *link);

/*
 * A connection that a peer has made for channels. -errno: all of it is still the caller's.
 */
int coll_channels_accept(struct coll_context *context, uint32_t world, uint32_t number,
			 const struct coll_connected *connected);

#endif
