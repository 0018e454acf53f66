/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Chunks of a message that several connections of a link bring. */
#ifndef COLL_CHUNK_H
#define COLL_CHUNK_H

#include <stdint.h>

#include "libcoll/link/link.h"

/*
 * Keeps the message of this header, which comes by the link, until its receive starts. NULL: there is no memory for
 * it, and the group has failed.
 */
struct coll_unexpected *coll_chunk_keep(struct coll_link *link, const struct coll_header *header);

/*
 * The chunk that link->header begins goes to this message, or to the receive of this op. A chunk
 * that the peer sends twice goes nowhere, and the group fails.
 */
void coll_chunk_to_unexpected(struct coll_link *link, struct coll_unexpected *unexpected);
void coll_chunk_to_exec(struct coll_link *link, struct coll_exec *exec, uint32_t op);

#endif
