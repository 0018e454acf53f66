// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Pipelined chain: a rank receives the sum of the ranks that are further from the root, adds its
 * own part, and sends the sum on, in S segments. Each byte enters and leaves a rank once, so this
 * is for long vectors and few ranks. Without the option `segment`, S = sqrt((p-2) n beta / alpha)
 * for a usual machine.
 *
 *	(S + p-2) (alpha + n/S (beta + gamma))
 */
#include "algo/common/partial.h"

static u32 parts_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	return pipeline_parts(call, tuning, call->ranks > 2 ? call->ranks - 2 : 0);
}

static void emit_segment(struct coll_build *b, const struct coll_call *call, u64 offset, u64 bytes)
{
	const u32 far = rank_plus(call->rank, 1, call->ranks), root = call->root;
	const u32 near = rank_minus(call->rank, 1, call->ranks);
	struct coll_partial sum = { call_input(call) + offset, COLL_NONE };

	if (far != root) {
		const u64 theirs = coll_emit_scratch(b, bytes);
		const u64 to = call->rank == root ? COLL_ADDRESS(COLL_OUT, offset) : theirs;

		coll_emit_after(b, coll_emit_recv(b, far, theirs, bytes));
		sum.ready = coll_emit_reduce(b, to, sum.place, theirs, bytes);
		sum.place = to;
	}
	if (call->rank != root) {
		coll_emit_after(b, sum.ready);
		coll_emit_send(b, near, sum.place, bytes);
	}
}

static void reduce_chain_emit(struct coll_build *b, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	const u32 parts = parts_of(call, tuning);
	u32 i;

	if (call->ranks == 1)
		coll_emit_single_rank(b, call, call_bytes(call));
	for (i = 0; i < parts && call->ranks > 1 && call_bytes(call); i++)
		emit_segment(b, call, part_offset(call, parts, i), part_bytes(call, parts, i));
}

static double reduce_chain_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				const struct coll_machine *m)
{
	const double s = parts_of(call, tuning), p = call->ranks, n = call_bytes(call);

	if (call->ranks == 1)
		return 0;
	return pipeline_cost(call, m, p - 1, s, n, m->gamma);
}

const struct coll_algo coll_reduce_chain = {
	.collective = COLL_REDUCE,
	.name = "chain",
	.about = "pipeline of segments from rank to rank: long vectors, few ranks",
	.neighbours = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = reduce_chain_cost,
	.emit = reduce_chain_emit,
};
