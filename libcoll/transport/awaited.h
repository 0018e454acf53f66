/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Links that are awaited: there is work for them, and their peers are to connect them. What is
 * known of those peers' end; seek.h looks for more.
 */
#ifndef COLL_AWAITED_H
#define COLL_AWAITED_H

#include "libcoll/link/link.h"

enum { AWAITED_ARRIVING_NS = 10000000 };	/* what the peer sent before its end is read by then */

/* Whether the link is one; false for NULL. */
bool coll_is_awaited(const struct coll_link *link);

/* It is one from now on: its peer may be known to have ended. */
void coll_awaited_begin(struct coll_link *link);

/* Its peer has ended: it is lost when that time has passed, unless the peer connects. */
void coll_awaited_set_ended(struct coll_link *link, int error);

/* A process of the job has ended, or its connection here: all links that await it. */
void coll_awaited_ended(struct coll_context *context, uint32_t world, int error);

#endif
