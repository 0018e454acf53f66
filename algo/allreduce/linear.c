// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: all ranks send their vectors to rank 0, which reduces them in the order of ranks and
 * sends the result to all. For short vectors where ranks share cores: 2 (p-1) messages in all,
 * and each rank but rank 0 handles 2.
 *
 *	2 (alpha + n beta + (p-2) (o + n G)) + (p-1) n gamma
 */
#include "algo/common/partial.h"

static void emit_root(struct coll_build *b, const struct coll_call *call)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	const u64 parts = coll_emit_scratch(b, (call->ranks - 1) * n);
	u32 rank, received, ready = COLL_NONE;

	for (rank = 1; rank < call->ranks; rank++) {
		const u64 part = parts + (rank - 1) * n;

		received = coll_emit_recv(b, rank, part, n);
		coll_emit_after(b, received);
		coll_emit_after(b, ready);
		ready = coll_emit_reduce(b, out, rank == 1 ? call_input(call) : out, part, n);
	}
	for (rank = 1; rank < call->ranks; rank++) {
		coll_emit_after(b, ready);
		coll_emit_send(b, rank, out, n);
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

	(void)tuning;
	return crowded_cost(call, m,
			    2 * fan_cost(m, call->ranks - 1, n) + (call->ranks - 1) * n * m->gamma,
			    tree_share(call, 2 * (m->alpha + n * m->beta) + n * m->gamma));
}

const struct coll_algo coll_allreduce_linear = {
	.collective = COLL_ALLREDUCE,
	.name = "linear",
	.about = "rank 0 adds up all vectors and sends the result: 2 (p-1) messages",
	.ordered = true,
	.cost = allreduce_linear_cost,
	.emit = allreduce_linear_emit,
};
