// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "exchange.h"

u32 coll_emit_exchange_recv(struct coll_build *b, const struct coll_exchange *x, u32 rank)
{
	const struct coll_block block = block_from(x->call, rank);

	if (!block.bytes)
		return COLL_NONE;
	if (!x->call->in_place)
		return coll_emit_recv(b, rank, block.place, block.bytes);
	x->c.displs[rank] = coll_emit_scratch(b, block.bytes);
	return coll_emit_recv(b, rank, x->c.displs[rank], block.bytes);
}

u32 coll_emit_exchange_send(struct coll_build *b, const struct coll_exchange *x, u32 rank,
			    u32 after)
{
	const struct coll_block block = block_to(x->call, rank);

	if (!block.bytes)
		return COLL_NONE;
	coll_emit_after(b, after);
	return coll_emit_send(b, rank, block.place, block.bytes);
}

void coll_emit_exchange_store(struct coll_build *b, const struct coll_exchange *x, u32 rank,
			      u32 given, u32 taken)
{
	const struct coll_block block = block_from(x->call, rank);

	if (!x->call->in_place || !block.bytes)
		return;
	coll_emit_after(b, given);
	coll_emit_after(b, taken);
	coll_emit_copy(b, block.place, x->c.displs[rank], block.bytes);
}

u32 coll_emit_exchange_inside(struct coll_build *b, const struct coll_exchange *x)
{
	const struct coll_clusters *c = &x->c;
	const u32 size = cluster_size(c, c->mine), *rank = cluster_ranks(c, c->mine);
	u32 over = COLL_NONE, distance;

	for (distance = 1; distance < size; distance++) {
		const u32 below = rank[rank_minus(c->index, distance, size)];

		c->op[below] = coll_emit_exchange_recv(b, x, below);
	}
	for (distance = 1; distance < size; distance++) {
		const u32 above = rank[rank_plus(c->index, distance, size)];

		const u32 below = rank[rank_minus(c->index, distance, size)];
		const u32 given = coll_emit_exchange_send(b, x, above, over);

		coll_emit_exchange_store(b, x, above, given, c->op[above]);
		if (given != COLL_NONE || c->op[below] != COLL_NONE)
			over = emit_both(b, given, c->op[below]);
	}
	emit_copy_own(b, x->call);
	return over;
}
