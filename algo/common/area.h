/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An area holds the blocks of all ranks one after the other, so that many of them travel in one
 * message. It is the application's buffer if that has this layout, else scratch; then blocks
 * are copied between the two.
 */
#ifndef COLL_AREA_H
#define COLL_AREA_H

#include "blocks.h"

struct coll_area {
	u64 place;
	u32 first;		/* whose block comes first; it goes round after the last rank */
	enum coll_buffer buffer;	/* the application's */
	bool direct;		/* the area is that buffer */
};

/* Whether the blocks lie in rank order without gaps. */
bool coll_blocks_packed(const struct coll_call *call);

/* Blocks from `first` on; `buffer` (IN or OUT) is where the call has them. */
struct coll_area coll_emit_area(struct coll_build *b, const struct coll_call *call,
				enum coll_buffer buffer, u32 first);

/* Where the block of `rank` lies in it. O(ranks) in v forms. */
u64 coll_area_address(const struct coll_area *area, const struct coll_call *call, u32 rank);

/*
 * Copies `count` blocks from that of `first` on into the area, or out of it,
 * once `after` is done. Returns the op that ends it; `after` where the area is
 * direct or there is nothing to copy.
 */
u32 coll_emit_pack(struct coll_build *b, const struct coll_call *call, const struct coll_area *area,
		   u32 first, u32 count, u32 after);
u32 coll_emit_unpack(struct coll_build *b, const struct coll_call *call,
		     const struct coll_area *area, u32 first, u32 count, u32 after);

/*
 * allgather(v): brings my own block into OUT and the area. Returns the op after
 * which it is in the area, or COLL_NONE: it is there.
 */
u32 coll_emit_own_block(struct coll_build *b, const struct coll_call *call,
			const struct coll_area *area);

/*
 * `count` blocks from that of `first` on as one message; as two where they go
 * round and the area does not. Nothing for no bytes. coll_emit_recv_blocks() unpacks
 * them too, and returns the op after which they are in the area.
 */
void coll_emit_send_blocks(struct coll_build *b, const struct coll_call *call,
			   const struct coll_area *area, u32 to, u32 first, u32 count, u32 after);
u32 coll_emit_recv_blocks(struct coll_build *b, const struct coll_call *call,
			  const struct coll_area *area, u32 from, u32 first, u32 count);

#endif
