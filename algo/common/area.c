// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "area.h"
#include "ranks.h"

static u64 buffer_place(const struct coll_area *area, const struct coll_call *call, u32 rank)
{
	return COLL_ADDRESS(area->buffer, block_offset(call, rank));
}

bool coll_blocks_packed(const struct coll_call *call)
{
	u64 end = 0;
	u32 i;

	if (!call->counts || !call->displs)
		return true;
	for (i = 0; i < call->ranks; i++) {
		if (call->counts[i] && call->displs[i] != end)
			return false;
		end += call->counts[i];
	}
	return true;
}

struct coll_area coll_emit_area(struct coll_build *b, const struct coll_call *call,
				enum coll_buffer buffer, u32 first)
{
	struct coll_area area = { .first = first, .buffer = buffer };

	area.direct = !first && coll_blocks_packed(call);
	area.place = area.direct ? COLL_ADDRESS(buffer, 0) :
				   coll_emit_scratch(b, blocks_bytes(call, 0, call->ranks));
	return area;
}

u64 coll_area_address(const struct coll_area *area, const struct coll_call *call, u32 rank)
{
	return area->place +
	       blocks_bytes(call, area->first, rank_minus(rank, area->first, call->ranks));
}

static u32 emit_blocks(struct coll_build *b, const struct coll_call *call,
		       const struct coll_area *area, u32 first, u32 count, u32 after, bool pack)
{
	u64 inside;
	u32 i;

	if (area->direct || !count)
		return after;
	inside = coll_area_address(area, call, first);
	for (i = 0; i < count; i++) {
		u32 rank = rank_plus(first, i, call->ranks);
		u64 outside = buffer_place(area, call, rank), bytes = block_bytes(call, rank);

		if (rank == area->first)
			inside = area->place;
		if (!bytes)
			continue;
		coll_emit_after(b, after);
		after = coll_emit_copy(b, pack ? inside : outside, pack ? outside : inside, bytes);
		inside += bytes;
	}
	return after;
}

u32 coll_emit_pack(struct coll_build *b, const struct coll_call *call, const struct coll_area *area,
		   u32 first, u32 count, u32 after)
{
	return emit_blocks(b, call, area, first, count, after, true);
}

u32 coll_emit_unpack(struct coll_build *b, const struct coll_call *call,
		     const struct coll_area *area, u32 first, u32 count, u32 after)
{
	return emit_blocks(b, call, area, first, count, after, false);
}

u32 coll_emit_own_block(struct coll_build *b, const struct coll_call *call,
			const struct coll_area *area)
{
	const u64 bytes = block_bytes(call, call->rank), mine = call_block(call);
	u32 copied = COLL_NONE;

	if (!bytes)
		return COLL_NONE;
	if (!call->in_place)
		copied = coll_emit_copy(b, buffer_place(area, call, call->rank), mine, bytes);
	if (!area->direct)
		copied = coll_emit_copy(b, coll_area_address(area, call, call->rank), mine, bytes);
	return copied;
}

/* How many of the blocks lie in one piece. */
static u32 area_unbroken(const struct coll_area *area, const struct coll_call *call, u32 first,
			 u32 count)
{
	u32 before_end = call->ranks - rank_minus(first, area->first, call->ranks);

	return count < before_end ? count : before_end;
}

void coll_emit_send_blocks(struct coll_build *b, const struct coll_call *call,
			   const struct coll_area *area, u32 to, u32 first, u32 count, u32 after)
{
	/* My own block alone need not wait to be in the area. */
	if (count == 1 && first == call->rank) {
		if (block_bytes(call, first))
			coll_emit_send(b, to, call_block(call), block_bytes(call, first));
		return;
	}
	while (count) {
		u32 piece = area_unbroken(area, call, first, count);
		u64 bytes = blocks_bytes(call, first, piece);

		if (bytes) {
			coll_emit_after(b, after);
			coll_emit_send(b, to, coll_area_address(area, call, first), bytes);
		}
		count -= piece;
		first = rank_plus(first, piece, call->ranks);
	}
}

u32 coll_emit_recv_blocks(struct coll_build *b, const struct coll_call *call,
			  const struct coll_area *area, u32 from, u32 first, u32 count)
{
	u32 received[2] = { COLL_NONE, COLL_NONE }, pieces = 0;

	while (count) {
		u32 piece = area_unbroken(area, call, first, count);
		u64 bytes = blocks_bytes(call, first, piece);

		if (bytes) {
			u32 op = coll_emit_recv(b, from, coll_area_address(area, call, first),
						bytes);

			coll_emit_unpack(b, call, area, first, piece, op);
			received[pieces++] = op;
		}
		count -= piece;
		first = rank_plus(first, piece, call->ranks);
	}
	return pieces < 2 ? received[0] : emit_both(b, received[0], received[1]);
}
