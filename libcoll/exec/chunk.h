/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Chunks of a message that several connections of a link bring. */
#ifndef COLL_CHUNK_H
#define COLL_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/link/link.h"

/*
 * Streams bring chunks in any order. All that have begun together are the message at most, so
 * none is under way when it is complete and its memory has another owner. `got`: bytes that
 * have ended; where the chunk goes is in link->exec and op, or link->unexpected. False: the
 * peer sent a chunk twice, and the group has failed.
 */
bool coll_chunk_fits(struct coll_link *link, uint64_t got);

#endif
