// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "chunk.h"
#include "core/match.h"
#include "exec.h"
#include "failure.h"
#include "fused.h"
#include "group.h"
#include "unexpected.h"

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

/*
 * Streams bring chunks in any order. All that have begun together are the message at most, so
 * none is under way when it is complete and its memory has another owner. `got`: bytes that
 * have ended; where the chunk goes is in link->exec and op, or link->unexpected.
 */
static bool chunk_fits(struct coll_link *link, uint64_t got)
{
	if (!link->whole->streams ||
	    got + chunks_under_way(link) + coll_chunk_bytes(&link->header) <= link->header.bytes)
		return true;
	coll_group_fail(link->group, -EPROTO, link->rank, link->group->rank,
			"sent a chunk of a message twice");
	return false;
}

struct coll_unexpected *coll_chunk_keep(struct coll_link *link, const struct coll_header *header)
{
	struct coll_unexpected *unexpected = coll_unexpected_keep(link, header);
	struct coll_group *group = link->group;

	if (unexpected)
		return unexpected;
	/* What it announces may be a lie: to have no memory for that is not this rank's fault. */
	if (header->bytes > group->options.unexpected_bytes)
		coll_group_fail(group, -ENOMEM, link->rank, group->rank,
				"sent an unexpected message of more bytes than there is memory for");
	else
		coll_group_fail(group, -ENOMEM, group->rank, link->rank,
				"no memory for an unexpected message");
	return NULL;
}

void coll_chunk_to_unexpected(struct coll_link *link, struct coll_unexpected *unexpected)
{
	link->unexpected = unexpected;
	if (chunk_fits(link, unexpected->got))
		link->target = unexpected->data + link->header.offset;
	else
		link->unexpected = NULL;
}

void coll_chunk_to_exec(struct coll_link *link, struct coll_exec *exec, uint32_t op)
{
	const uint64_t result = coll_ops(exec->planned->schedule)[op].result;

	link->exec = exec;
	link->op = op;
	if (chunk_fits(link, exec->got[op])) {
		link->target = coll_exec_address(exec, result) + link->header.offset;
		coll_exec_get(exec);
		coll_fused_begin(link, exec, op);
	} else {
		link->exec = NULL;
	}
}
