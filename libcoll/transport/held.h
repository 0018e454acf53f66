/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Bytes of a channel that have come and that its link does not read yet. */
#ifndef COLL_HELD_H
#define COLL_HELD_H

#include "channel.h"

/* Behind those that are held. -ENOMEM. */
int coll_channel_hold(struct coll_channel *channel, const uint8_t *data, uint32_t bytes);
/*
 * The link, which wants to receive, gets what is held; if there are publications among it, no more
 * than one of these. More bytes may arrive during the call; they are held until it returns.
 */
void coll_channel_feed(struct coll_channel *channel);
/*
 * The link has read a publication of this slot, which its peer learns. False: none has come that
 * the peer's frame says to be one.
 */
bool coll_channel_read_published(struct coll_link *link, uint32_t slot);

#endif
