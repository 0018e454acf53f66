// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One-shot: each rank sends its vector to all others at once, and adds up all vectors itself, in
 * the order of ranks: the same bits on all ranks. The least latency that there can be, for p (p-1)
 * messages: few ranks, short vectors, links with a long latency.
 *
 *	alpha + n beta + (p-2) max(o, n G) + n gamma, or
 *	max(alpha + n beta - o, (p-1) o) + (p-1) (o + n gamma), whichever is longer
 *
 * A rank that is delayed delays nobody once it has sent: nobody passes on what others wait for.
 */
#include "algo/common/fan.h"
#include "algo/common/partial.h"

static void allreduce_one_shot_emit(struct coll_build *b, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	u32 distance, sent, reading = COLL_NONE;

	(void)tuning;
	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	for (distance = 1; distance < call->ranks; distance++) {
		sent = coll_emit_send(b, rank_plus(call->rank, distance, call->ranks),
				      call_input(call), call_bytes(call));
		reading = call->in_place ? emit_both(b, reading, sent) : COLL_NONE;
	}
	coll_emit_sum(b, call, call->ranks, reading);
}

static double allreduce_one_shot_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				      const struct coll_machine *m)
{
	(void)tuning;
	return all_at_once_cost(call, m, call_bytes(call), m->gamma, FAN_SAME);
}

const struct coll_algo coll_allreduce_one_shot = {
	.collective = COLL_ALLREDUCE,
	.name = "one-shot",
	.about = "each sends to all others, and adds up all vectors: one latency",
	.ordered = true,
	.cost = allreduce_one_shot_cost,
	.emit = allreduce_one_shot_emit,
};
