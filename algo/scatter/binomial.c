// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Binomial tree: a rank receives the blocks of its whole subtree in one message, in rank order
 * from its own on, and sends on those of others.
 *
 *	ceil(log2 p) alpha + (p-1)/p n beta	for n bytes in all
 *
 * The root sends a subtree that wraps around after the last rank as two messages, so that all
 * blocks are sent from their places.
 */
#include "algo/common/area.h"
#include "algo/common/ranks.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	const struct coll_area area = coll_emit_area(b, call, COLL_IN, 0);
	const u64 mine = block_bytes(call, call->rank);
	u32 m;

	for (m = tree_reach(0, call->ranks); m; m /= 2) {
		u32 child = rank_plus(call->root, m, call->ranks);
		u32 size = tree_size(m, call->ranks);
		u32 packed = coll_emit_pack(b, call, &area, child, size, COLL_NONE);

		coll_emit_send_blocks(b, call, &area, child, child, size, packed);
	}
	if (!call->in_place && mine)
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0),
			       COLL_ADDRESS(COLL_IN, block_offset(call, call->rank)), mine);
}

/* Receives the blocks of my subtree to `to`: two messages at most. */
static u32 emit_down(struct coll_build *b, const struct coll_call *call, u64 to, u32 relative,
		     u32 *received)
{
	const u32 p = call->ranks, parent = tree_parent(relative), size = tree_size(relative, p);
	u32 left = size, first = call->rank, count = 0;

	while (left) {
		/* Only from the root it comes in two pieces. */
		u32 piece = parent || left < p - first ? left : p - first;
		u64 bytes = blocks_bytes(call, first, piece);

		if (bytes)
			received[count++] =
				coll_emit_recv(b, rank_plus(call->root, parent, p), to, bytes);
		to += bytes;
		left -= piece;
		first = 0;
	}
	return count;
}

static void after_all(struct coll_build *b, const u32 *ops, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		coll_emit_after(b, ops[i]);
}

static void emit_node(struct coll_build *b, const struct coll_call *call, u32 relative)
{
	const u32 p = call->ranks, size = tree_size(relative, p);
	const u64 out = COLL_ADDRESS(COLL_OUT, 0), mine = call_bytes(call);
	u32 received[2], count, m;
	u64 held;

	if (size == 1) {
		emit_down(b, call, out, relative, received);
		return;
	}
	held = coll_emit_scratch(b, blocks_bytes(call, call->rank, size));
	count = emit_down(b, call, held, relative, received);
	for (m = tree_reach(relative, p); m; m /= 2) {
		u32 child = rank_plus(call->rank, m, p);
		u64 theirs = blocks_bytes(call, child, tree_size(relative + m, p));

		if (!theirs)
			continue;
		after_all(b, received, count);
		coll_emit_send(b, child, held + blocks_bytes(call, call->rank, m), theirs);
	}
	if (mine) {
		coll_emit_after(b, received[0]);
		coll_emit_copy(b, out, held, mine);
	}
}

static void scatter_binomial_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const u32 relative = rank_minus(call->rank, call->root, call->ranks);

	(void)tuning;
	if (relative)
		emit_node(b, call, relative);
	else
		emit_root(b, call);
}

/* It is the gather the other way round. */
static double scatter_binomial_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	return coll_algo_find(COLL_GATHER, "binomial")->cost(call, tuning, m);
}

const struct coll_algo coll_scatter_binomial = {
	.collective = COLL_SCATTER,
	.name = "binomial",
	.about = "tree of log2 p rounds; ranks pass on what their subtree gets",
	.ordered = true,
	.cost = scatter_binomial_cost,
	.emit = scatter_binomial_emit,
};

const struct coll_algo coll_scatter_world = {
	.collective = COLL_SCATTER,
	.name = "world",
	.about = "over all ranks as if they were near each other: binomial",
	.ordered = true,
	.cost = scatter_binomial_cost,
	.emit = scatter_binomial_emit,
	.baseline = true,
};

const struct coll_algo coll_scatterv_binomial = {
	.collective = COLL_SCATTERV,
	.name = "binomial",
	.about = "tree of log2 p rounds; ranks pass on what their subtree gets",
	.ordered = true,
	.needs_counts = true,
	.cost = scatter_binomial_cost,
	.emit = scatter_binomial_emit,
};

const struct coll_algo coll_scatterv_world = {
	.collective = COLL_SCATTERV,
	.name = "world",
	.about = "over all ranks as if they were near each other: binomial",
	.ordered = true,
	.needs_counts = true,
	.cost = scatter_binomial_cost,
	.emit = scatter_binomial_emit,
	.baseline = true,
};
