/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Publications on a link (libcoll/engine/published.h): a message, or a chunk of one, whose payload the
 * peer reads in a slot of this process. What goes over the link is a header and the slot's number, at once
 * or not at all, so it needs no more credit than that, and the send is done.
 */
#ifndef COLL_LINK_PUBLISHED_H
#define COLL_LINK_PUBLISHED_H

#include "link.h"

/* Whether the link goes through memory, has nothing else to send, and its peer reads publications. */
bool coll_link_publishes(struct coll_link *link);
/* Sends a DATA header's chunk, which is in this slot. False: nothing was sent. */
bool coll_link_publish(struct coll_link *link, const struct coll_header *header, uint32_t slot);

/* A header of kind PUBLISHED is complete, but for the slot's number: it is as one of DATA then. */
void coll_link_published_begin(struct coll_link *link);
/*
 * The number has come, too: where the chunk's payload is. NULL: it is nowhere, and the link is closed.
 */
const uint8_t *coll_link_published(struct coll_link *link);

#endif
