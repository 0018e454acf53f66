/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Rates and latencies of links inside a cluster and between clusters (option wan=auto:
 * measured when the context is opened, see coll_wan()), and the number of streams: a
 * connection has at most a window in flight, so if the bandwidth-delay product is larger, a
 * link needs several (stream.h).
 */
#ifndef COLL_WAN_H
#define COLL_WAN_H

#include "libcoll/link/link.h"

/* The number of streams of a link between clusters, by what is known now. */
void coll_wan_settle(struct coll_context *context);

/* Measures the world, which has its clusters, if rank 0's option says so. Collective. */
bool coll_wan_is_measured(const struct coll_context *context);
int coll_wan_measure(struct coll_context *context);

#endif
