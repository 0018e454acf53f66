/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The table of events that links report to this floor. */
#ifndef COLL_RECEIVE_H
#define COLL_RECEIVE_H

#include "libcoll/link/link.h"

extern const struct coll_link_events coll_exec_link_events;

/*
 * Streams bring chunks in any order. All that have begun together are the message at most, so
 * none is under way when it is complete and its memory has another owner. `got`: bytes that
 * have ended; where the chunk goes is in link->exec and op, or link->unexpected. False: the
 * peer sent a chunk twice, and the group has failed.
 */
bool coll_receive_fits(struct coll_link *link, uint64_t got);

#endif
