/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What links inside a cluster and between clusters carry (option wan=auto: measured
 * when the context is opened, see coll_wan()), and what follows for the sockets: a
 * connection has at most a window on its way, so where rate times round trip is more,
 * a link needs several (stream.h).
 */
#ifndef COLL_WAN_H
#define COLL_WAN_H

#include "libcoll/link/link.h"

/* How many streams a link between clusters gets, by what is known now. */
void coll_wan_settle(struct coll_context *context);

/* Of the world, which has its clusters; rank 0's option says whether. Collective. */
bool coll_wan_is_measured(const struct coll_context *context);
int coll_wan_measure(struct coll_context *context);

#endif
