// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: all ranks send to rank 0, which then sends to all: 2 (p-1) messages in all, and each
 * rank but rank 0 handles 2. Where ranks share cores, few messages count more than few rounds.
 *
 *	2 (alpha + (p-2) o)
 *
 * Within a node what rank 0 sends may be one write, as in bcast/linear.c.
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	u32 rank, heard = COLL_NONE;

	for (rank = 1; rank < call->ranks; rank++)
		heard = emit_both(b, heard,
				  coll_emit_recv(b, rank, COLL_ADDRESS(COLL_SCRATCH, 0), 0));
	for (rank = 1; rank < call->ranks; rank++) {
		coll_emit_after(b, heard);
		coll_emit_send(b, rank, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
	}
}

static void barrier_linear_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	(void)tuning;
	if (!call->rank) {
		emit_root(b, call);
		return;
	}
	coll_emit_send(b, 0, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
	coll_emit_recv(b, 0, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

static double barrier_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const struct fan_same same = fan_same_cost(call, m, 0);

	(void)tuning;
	return crowded_cost(call, m, fan_cost(m, call->ranks - 1, 0) + same.path,
			    tree_share(call, m->alpha) + same.share);
}

const struct coll_algo coll_barrier_linear = {
	.collective = COLL_BARRIER,
	.name = "linear",
	.about = "all tell rank 0, which tells all: 2 (p-1) messages",
	.ordered = true,
	.cost = barrier_linear_cost,
	.emit = barrier_linear_emit,
};
