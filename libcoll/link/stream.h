/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Streams: further connections of a link between clusters, which carry its bulk. One TCP
 * connection fills a path only as far as its windows reach, and halves its rate for each
 * packet lost; with streams only one of them does.
 *
 * The option wan_streams of the lower rank, which connects, is their number; its hello
 * tells the peer. They are made when the link's own connection is up, over the peer's
 * addresses in turn, so they share its rails. A free stream takes the next chunk of the
 * link's queue by link_policy, so a slow one takes fewer. Each chunk has a header, so
 * chunks may arrive in any order.
 *
 * The link's own connection carries the rest: messages of at most URGENT_MAX bytes, pings,
 * news. These do not wait for bulk, nor bulk for them.
 *
 * A stream that breaks fails its link, but first the link's own connection is read to its
 * end, since news of another cause may be in it. A goodbye counts when it has come on all
 * streams that the peer used.
 */
#ifndef COLL_STREAM_H
#define COLL_STREAM_H

#include "link.h"

/* How many streams the links have that this rank connects. */
uint32_t coll_streams_wanted(const struct coll_link *link);

/* Makes a link's streams, which are to be connected next. -ENOMEM. */
int coll_streams_make(struct coll_link *link, uint32_t count);
void coll_streams_free(struct coll_link *link);

/* The connected ones, as bits. */
uint32_t coll_streams_attached(const struct coll_link *link);
/* Whether a stream still owes its goodbye. */
static inline bool coll_streams_owe_goodbye(const struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		if (link->goodbyes & 1u << i && !link->stream[i].goodbye)
			return true;
	return false;
}

/* The peer's host has acknowledged all their data and goodbyes. */
bool coll_streams_delivered(const struct coll_link *link);
/* Whether one sends a chunk of this exec. */
bool coll_streams_send_for(const struct coll_link *link, const struct coll_exec *exec);

/* ---- one of them ---------------------------------------------------------- */

/* Whether there is something to take. */
bool coll_stream_has_work(struct coll_link *stream);
/* Takes the next chunk, or says goodbye at the end. Does nothing on a link's own connection. */
void coll_stream_take(struct coll_link *stream);
/* Whether its end fails nothing. */
bool coll_stream_may_end(const struct coll_link *stream);
/* It broke: the link ends when its own connection is read to the end. */
void coll_stream_lost(struct coll_link *stream, int error);

#endif
