// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "chunk.h"
#include "core/match.h"
#include "exec.h"
#include "failure.h"
#include "group.h"

/* Bytes of the message that link->header begins, which other connections of the link bring. */
static uint64_t chunks_under_way(const struct coll_link *link)
{
	const struct coll_link *whole = link->whole;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i <= whole->streams; i++) {
		const struct coll_link *other = i ? &whole->stream[i - 1] : whole;

		if (other != link &&
		    (link->exec ? other->exec == link->exec && other->op == link->op :
				  other->unexpected == link->unexpected))
			bytes += coll_chunk_bytes(&other->header);
	}
	return bytes;
}

bool coll_chunk_fits(struct coll_link *link, uint64_t got)
{
	if (!link->whole->streams ||
	    got + chunks_under_way(link) + coll_chunk_bytes(&link->header) <= link->header.bytes)
		return true;
	coll_group_fail(link->group, -EPROTO, link->rank, link->group->rank,
			"sent a chunk of a message twice");
	return false;
}
