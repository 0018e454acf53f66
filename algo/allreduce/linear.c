// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: all ranks send their vectors to rank 0, which reduces them in the order of ranks and
 * sends the result to all. For short vectors where ranks share cores: 2 (p-1) messages in all,
 * and each rank but rank 0 handles 2.
 *
 *	2 (alpha + n beta) + (p-2) (max(n G, o + n gamma) + max(o, n G)) + n gamma
 *
 * Within a node one copy of the result may serve all, as in bcast/linear.c.
 */
#include "algo/common/partial.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	const struct coll_partial sum = coll_emit_sum(b, call, call->ranks, COLL_NONE);
	u32 rank;

	for (rank = 1; rank < call->ranks; rank++) {
		coll_emit_after(b, sum.ready);
		coll_emit_send(b, rank, sum.place, call_bytes(call));
	}
}

static void allreduce_linear_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call);
	u32 sent;

	(void)tuning;
	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, n);
	} else if (!call->rank) {
		emit_root(b, call);
	} else {
		sent = coll_emit_send(b, 0, call_input(call), n);
		if (call->in_place)
			coll_emit_after(b, sent);
		coll_emit_recv(b, 0, COLL_ADDRESS(COLL_OUT, 0), n);
	}
}

static double allreduce_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	const double n = call_bytes(call);
	const struct fan_same same = fan_same_cost(call, m, n);

	(void)tuning;
	return crowded_cost(call, m, fan_sum_cost(m, call->ranks - 1, n) + same.path,
			    tree_share(call, m->alpha + n * m->beta + n * m->gamma) + same.share);
}

const struct coll_algo coll_allreduce_linear = {
	.collective = COLL_ALLREDUCE,
	.name = "linear",
	.about = "rank 0 adds up all vectors and sends the result: 2 (p-1) messages",
	.ordered = true,
	.cost = allreduce_linear_cost,
	.emit = allreduce_linear_emit,
};
