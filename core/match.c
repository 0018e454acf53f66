// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "match.h"

int coll_match(const struct coll_step *step, u32 rank, u32 slot, u64 bytes, u32 *op)
{
	const struct coll_plan *plan = step->plan;
	u32 peer = coll_peer_find(plan->schedule, rank);

	if (peer == COLL_NONE || slot >= coll_peers(plan->schedule)[peer].recvs)
		return -EPROTO;
	*op = plan->recv[plan->first_recv[peer] + slot];
	coll_debug_assert(coll_ops(plan->schedule)[*op].kind == COLL_OP_RECV);
	if (coll_ops(plan->schedule)[*op].bytes != bytes)
		return -EPROTO;

	switch (step->state[*op]) {
	case COLL_OP_STARTED:
		return coll_step_finished(step) ? COLL_MATCH_STALE : COLL_MATCH_POSTED;
	case COLL_OP_WAITING:
	case COLL_OP_READY:
		return coll_step_finished(step) ? COLL_MATCH_STALE : COLL_MATCH_UNEXPECTED;
	case COLL_OP_SKIPPED:
		return COLL_MATCH_STALE;
	default:
		return -EPROTO;
	}
}

bool coll_header_valid(const struct coll_header *header)
{
	if (header->version != COLL_WIRE_VERSION || !header->kind ||
	    header->kind > COLL_MESSAGE_OFFER)
		return false;
	if (header->kind == COLL_MESSAGE_OFFER)
		return !header->chunk && header->bytes <= COLL_BYTES_MAX && !header->offset;
	if (header->kind != COLL_MESSAGE_DATA)
		return !header->chunk && !header->bytes && !header->offset;
	return header->bytes <= COLL_BYTES_MAX &&
	       (header->offset < header->bytes || (!header->offset && !header->chunk));
}

int coll_header_error(const struct coll_header *fail)
{
	return fail->hash && fail->hash <= COLL_ERROR_MAX ? -(int)fail->hash : -EPROTO;
}

u64 coll_chunk_bytes(const struct coll_header *header)
{
	const u64 left = header->bytes - header->offset;
	const u64 chunk = (u64)header->chunk * COLL_CHUNK_UNIT;

	return chunk && chunk < left ? chunk : left;
}

void coll_chunk_cut(struct coll_header *header, u64 most)
{
	const u64 units = most / COLL_CHUNK_UNIT;

	header->chunk = header->bytes - header->offset <= most ? 0 :
			units < 0xffff ? (units ? units : 1) : 0xffff;
}

struct coll_header coll_chunk_first(const struct coll_header *header, u64 bytes)
{
	struct coll_header first = *header;

	first.offset = 0;
	first.chunk = bytes == header->bytes ? 0 : bytes / COLL_CHUNK_UNIT;
	return first;
}

struct coll_header coll_chunk_rest(const struct coll_header *header, u64 bytes)
{
	struct coll_header rest = *header;

	rest.bytes = bytes;
	return coll_chunk_first(&rest, bytes);
}
