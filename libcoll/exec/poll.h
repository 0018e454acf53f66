/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_EXEC_POLL_H
#define COLL_EXEC_POLL_H

#include "libcoll/link/context.h"

/*
 * Polls once: hands work to the engine, waits for an event, at most until `deadline` (0:
 * does not wait), and checks deadlines and connections that are not accepted yet.
 */
int coll_context_poll(struct coll_context *context, uint64_t deadline);

/*
 * At the end of each call of the library: the caller may sleep on coll_fd() now, and wakes when the
 * next poll is due. Does nothing before the first coll_fd().
 */
void coll_context_rest(struct coll_context *context);

#endif
