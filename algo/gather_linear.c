// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Everybody sends its block straight to its place at the root:
 * alpha + n beta + (p-2) (o + n G) for blocks of n bytes. gatherv needs no counts but the
 * root's.
 */
#include "blocks.h"
#include "ranks.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	u32 distance;

	for (distance = 0; distance < call->ranks; distance++) {
		u32 rank = rank_plus(call->root, distance, call->ranks);
		u64 place = COLL_PLACE(COLL_OUT, block_offset(call, rank));
		u64 bytes = block_bytes(call, rank);

		if (!bytes)
			continue;
		if (distance)
			emit_recv(b, rank, place, bytes);
		else if (!call->in_place)
			emit_copy(b, place, COLL_PLACE(COLL_IN, 0), bytes);
	}
}

static void emit(struct coll_build *b, const struct coll_call *call,
		 const struct coll_tuning *tuning)
{
	(void)tuning;
	if (call->rank == call->root)
		emit_root(b, call);
	else if (call_bytes(call))
		emit_send(b, call->root, COLL_PLACE(COLL_IN, 0), call_bytes(call));
}

static double cost(const struct coll_call *call, const struct coll_tuning *tuning,
		   const struct coll_machine *m)
{
	(void)tuning;
	/* Of gatherv the ranks know no size in common. */
	if (call->collective == COLL_GATHERV)
		return fan_cost(m, call->ranks - 1, 0);
	return crowded_cost(call, m, fan_cost(m, call->ranks - 1, call_bytes(call)),
			    tree_share(call, m->alpha + call_bytes(call) * m->beta));
}

const struct coll_algo coll_gather_linear = {
	.collective = COLL_GATHER,
	.name = "linear",
	.about = "everybody sends to the root, straight into place",
	.ordered = true,
	.cost = cost,
	.emit = emit,
};

const struct coll_algo coll_gather_direct = {
	.collective = COLL_GATHER,
	.name = "direct",
	.about = "all blocks at once, whatever the way: linear",
	.ordered = true,
	.cost = cost,
	.emit = emit,
	.baseline = true,
};

const struct coll_algo coll_gatherv_linear = {
	.collective = COLL_GATHERV,
	.name = "linear",
	.about = "everybody sends to the root, straight into place",
	.ordered = true,
	.cost = cost,
	.emit = emit,
};

const struct coll_algo coll_gatherv_direct = {
	.collective = COLL_GATHERV,
	.name = "direct",
	.about = "all blocks at once, whatever the way: linear",
	.ordered = true,
	.cost = cost,
	.emit = emit,
	.baseline = true,
};
