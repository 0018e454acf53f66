/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Streams: connections beside the link's own, between clusters, over which its bulk
 * goes. One TCP connection fills a long fat way only as far as its windows reach, and
 * gives half of it up for each packet lost; of several, one does.
 *
 * Option wan_streams of the lower rank, which connects, says how many; its hello tells
 * the other. They are made when the link's own connection is up, over the peer's
 * addresses in turn, so that rails share them too. A stream that is free takes the
 * next chunk of the link's queue, as link_policy has it: a slow one takes fewer. Every
 * chunk has a header of its own, so the receiver needs no order among them.
 *
 * The link's own connection has the rest: messages of at most URGENT_MAX bytes, pings,
 * news. These wait for no bulk, and bulk waits for none of them.
 *
 * A stream that ends fails its link, as its own connection would; but what has come
 * over that is read first, since it may have a better reason. A goodbye counts when
 * all streams that its sender had in use have said it too.
 */
#ifndef COLL_STREAM_H
#define COLL_STREAM_H

#include "link.h"

/* Of a link that is being connected: so many, to be connected next. -ENOMEM. */
int coll_streams_make(struct coll_link *link, uint32_t count);
void coll_streams_free(struct coll_link *link);

/* Those that are connected, as bits. */
uint32_t coll_streams_attached(const struct coll_link *link);
/* Whether one that is to say goodbye has not yet. */
bool coll_streams_talk(const struct coll_link *link);
/* All that they were given, and their goodbyes, are with the peer's host. */
bool coll_streams_delivered(const struct coll_link *link);
/* Whether one has a part of a message of this run. */
bool coll_streams_send_for(const struct coll_link *link, const struct coll_exec *exec);
/* Whether one could take a chunk at once. */
bool coll_stream_idle(const struct coll_link *link);

/* ---- one of them ---------------------------------------------------------- */

/* Whether there is something to take. */
bool coll_stream_has_work(struct coll_link *stream);
/* Takes the next chunk, or at the end says goodbye. Does nothing if it is no stream. */
void coll_stream_take(struct coll_link *stream);
/* Its chunk has gone or is given up; returns the message if that was the last of it. */
struct coll_message *coll_stream_chunk_sent(struct coll_link *stream);
/* Whether its end fails nobody. */
bool coll_stream_may_go(const struct coll_link *stream);
/* It broke: the link ends when what has come over its own connection is read. */
void coll_stream_lost(struct coll_link *stream, int error);

#endif
