// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Binomial tree: a rank collects the blocks of its subtree in scratch, in rank order from its own
 * on, and sends them on as one message.
 *
 *	ceil(log2 p) alpha + (p-1)/p n beta	for n bytes in all
 *
 * A subtree that wraps around after the last rank reaches the root as two messages, so that the
 * root too receives all blocks in their places.
 */
#include "algo/common/area.h"
#include "algo/common/ranks.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	const struct coll_area area = coll_emit_area(b, call, COLL_OUT, 0);
	u32 m;

	if (!call->in_place && block_bytes(call, call->rank))
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, call->rank)),
			       COLL_ADDRESS(COLL_IN, 0), block_bytes(call, call->rank));
	for (m = tree_reach(0, call->ranks); m; m /= 2) {
		u32 child = rank_plus(call->root, m, call->ranks);

		coll_emit_recv_blocks(b, call, &area, child, child, tree_size(m, call->ranks));
	}
}

/* Sends blocks that lie in rank order from my own on. */
static void emit_up(struct coll_build *b, const struct coll_call *call, u64 from, u32 relative,
		    const u32 *collected, u32 count)
{
	const u32 p = call->ranks, parent = tree_parent(relative), size = tree_size(relative, p);
	u32 left = size, first = call->rank, k;

	while (left) {
		/* Only the root wants it in two pieces. */
		u32 piece = parent || left < p - first ? left : p - first;
		u64 bytes = blocks_bytes(call, first, piece);

		for (k = 0; bytes && k < count; k++)
			coll_emit_after(b, collected[k]);
		if (bytes)
			coll_emit_send(b, rank_plus(call->root, parent, p), from, bytes);
		from += bytes;
		left -= piece;
		first = 0;
	}
}

static void emit_node(struct coll_build *b, const struct coll_call *call, u32 relative)
{
	const u32 p = call->ranks;
	const u64 mine = COLL_ADDRESS(COLL_IN, 0), bytes = call_bytes(call);
	u32 collected[LOG2_RANKS_MAX + 1], count = 0, m;
	u64 held;

	if (tree_size(relative, p) == 1) {
		emit_up(b, call, mine, relative, NULL, 0);
		return;
	}
	held = coll_emit_scratch(b, blocks_bytes(call, call->rank, tree_size(relative, p)));
	if (bytes)
		collected[count++] = coll_emit_copy(b, held, mine, bytes);
	for (m = tree_reach(relative, p); m; m /= 2) {
		u32 child = rank_plus(call->rank, m, p);
		u64 theirs = blocks_bytes(call, child, tree_size(relative + m, p));

		if (theirs)
			collected[count++] = coll_emit_recv(
				b, child, held + blocks_bytes(call, call->rank, m), theirs);
	}
	emit_up(b, call, held, relative, collected, count);
}

static void gather_binomial_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const u32 relative = rank_minus(call->rank, call->root, call->ranks);

	(void)tuning;
	if (relative)
		emit_node(b, call, relative);
	else
		emit_root(b, call);
}

static double gather_binomial_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	const double p = call->ranks;

	(void)tuning;
	return crowded_cost(call, m,
			    log2_ceil(call->ranks) * m->alpha +
				    (p - 1) / p * blocks_bytes(call, 0, call->ranks) * m->beta,
			    tree_share(call, m->alpha) +
				    log2_ceil(call->ranks) / 2.0 * call_bytes(call) * m->beta);
}

const struct coll_algo coll_gather_binomial = {
	.collective = COLL_GATHER,
	.name = "binomial",
	.about = "tree of log2 p rounds; ranks collect for their subtree",
	.ordered = true,
	.cost = gather_binomial_cost,
	.emit = gather_binomial_emit,
};

const struct coll_algo coll_gather_world = {
	.collective = COLL_GATHER,
	.name = "world",
	.about = "over all ranks as if they were near each other: binomial",
	.ordered = true,
	.cost = gather_binomial_cost,
	.emit = gather_binomial_emit,
	.baseline = true,
};

const struct coll_algo coll_gatherv_binomial = {
	.collective = COLL_GATHERV,
	.name = "binomial",
	.about = "tree of log2 p rounds; ranks collect for their subtree",
	.ordered = true,
	.needs_counts = true,
	.cost = gather_binomial_cost,
	.emit = gather_binomial_emit,
};

const struct coll_algo coll_gatherv_world = {
	.collective = COLL_GATHERV,
	.name = "world",
	.about = "over all ranks as if they were near each other: binomial",
	.ordered = true,
	.needs_counts = true,
	.cost = gather_binomial_cost,
	.emit = gather_binomial_emit,
	.baseline = true,
};
