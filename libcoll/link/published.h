/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Publications on a link (libcoll/engine/published.h): a message, or a chunk of one, whose payload the
 * peer reads in a slot of this process. What goes over the link is a header and the place, at once
 * or not at all, so it needs no more credit than that, and the send is done.
 */
#ifndef COLL_LINK_PUBLISHED_H
#define COLL_LINK_PUBLISHED_H

#include "link.h"

/* Whether this message may be: the link goes through memory, and has nothing else to send. */
bool coll_link_publishes(struct coll_link *link, const void *data, uint64_t bytes);
/* Sends a chunk of it, by its DATA header, from this place. False: nothing was sent. */
bool coll_link_publish(struct coll_link *link, const struct coll_header *header, const void *data,
		       struct coll_published_place place);

/* A header of kind PUBLISHED is complete, but for the place: it is as one of DATA then. */
void coll_link_published_begin(struct coll_link *link);
/*
 * The place has come, too: where the chunk's payload is. NULL: it is nowhere, and the link is closed.
 */
const uint8_t *coll_link_published(struct coll_link *link);
/* The payload was taken from there: the peer learns that. If it was changed before, the link is closed.
   It may be closed already. */
void coll_link_published_end(struct coll_link *link, struct coll_socket *socket);

#endif
