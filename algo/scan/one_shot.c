// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One-shot: each rank sends its vector to all ranks above at once, and adds up those from below
 * itself, in the order of ranks. The least latency that there can be, for p (p-1) / 2 messages.
 *
 *	alpha + n beta + (p-2) max(n G, o + n gamma) + n gamma
 */
#include "algo/common/partial.h"

static void scan_one_shot_emit(struct coll_build *b, const struct coll_call *call,
			       const struct coll_tuning *tuning)
{
	const bool inclusive = call->collective == COLL_SCAN;
	u32 above, sent, reading = COLL_NONE;

	(void)tuning;
	/* The highest rank waits for the most messages. */
	for (above = call->ranks - 1; above > call->rank; above--) {
		sent = coll_emit_send(b, above, call_input(call), call_bytes(call));
		/* Rank 0's vector stays where it is. */
		if (call->in_place && call->rank)
			reading = emit_both(b, reading, sent);
	}
	if (inclusive || call->rank)
		coll_emit_sum(b, call, call->rank + inclusive, reading);
}

static double scan_one_shot_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				 const struct coll_machine *m)
{
	const double n = call_bytes(call), others = call->ranks - 1;

	(void)tuning;
	return crowded_cost(call, m, fan_sum_cost(m, call->ranks - 1, n),
			    others / 2 * (at_once_work(m) + n * (m->beta + m->gamma)));
}

const struct coll_algo coll_scan_one_shot = {
	.collective = COLL_SCAN,
	.name = "one-shot",
	.about = "each sends to all above, and adds up what comes from below: one latency",
	.ordered = true,
	.cost = scan_one_shot_cost,
	.emit = scan_one_shot_emit,
};

const struct coll_algo coll_exscan_one_shot = {
	.collective = COLL_EXSCAN,
	.name = "one-shot",
	.about = "each sends to all above, and adds up what comes from below: one latency",
	.ordered = true,
	.cost = scan_one_shot_cost,
	.emit = scan_one_shot_emit,
};
