/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The sockets that other ranks connect to; connect.h describes the whole. */
#ifndef COLL_LISTEN_H
#define COLL_LISTEN_H

#include "libcoll/link/context.h"

/* Opens the listening sockets and publishes their addresses. Before the first group. */
int coll_listen(struct coll_context *context);
void coll_listen_stop(struct coll_context *context);
/* Refuses connections without a hello in time; accepts again after a pause. */
void coll_listen_check(struct coll_context *context);

#endif
