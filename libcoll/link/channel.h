/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A channel: a link's part of a shared connection (mux.h). */
#ifndef COLL_CHANNEL_H
#define COLL_CHANNEL_H

#include "arrival.h"
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

/* The channel of a link or stream that this side opens. -errno. */
int coll_channel_open(struct coll_link *link);

/* The link has something to do, or wants to receive. */
static inline void coll_channel_touch(struct coll_channel *channel)
{
	coll_mux_touch(channel->mux, channel);
}

/* Nothing more is sent after what is on its way. */
void coll_channel_end(struct coll_channel *channel);

/* The link reads what this host has received, and then the end. */
void coll_channel_stop(struct coll_channel *channel);

/* The link gives it up. Its memory is its own again on return. */
void coll_channel_close(struct coll_channel *channel);

/* ---- for the mux -------------------------------------------------------------- */

/* It was touched: delivers held bytes, errors and the end to the link. */
void coll_channel_serve(struct coll_channel *channel);
/* Bytes of the peer. -errno: the peer breaks the protocol, or there is no memory. */
int coll_channel_receive(struct coll_channel *channel, const uint8_t *data, uint32_t bytes);
/* Grants the peer more bytes when less than half of the window is left. */
void coll_channel_grant(struct coll_channel *channel);
/* A control message of the peer. -EPROTO, -ENOMEM. */
int coll_channel_control(struct coll_mux *mux, const struct coll_channel_control *control);
/* Whether the link would take bytes now, straight from the connection. */
bool coll_channel_wants_recv(const struct coll_channel *channel);
/* Whether the link has bytes to send. */
bool coll_channel_wants_send(const struct coll_channel *channel);
void coll_channel_free(struct coll_channel *channel);

#endif
