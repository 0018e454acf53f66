// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: the root sends the vector to all ranks. For few ranks.
 *
 *	alpha + n beta + (p-2) (o + n G)
 *
 * Within a node one copy may serve all (libcoll/exec/published.h), which they read at once: then
 *
 *	alpha + n beta + (p-2) o
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static void bcast_linear_emit(struct coll_build *b, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	u32 distance;

	(void)tuning;
	if (!n)
		return;
	if (call->rank != call->root) {
		coll_emit_recv(b, call->root, out, n);
		return;
	}
	for (distance = 1; distance < call->ranks; distance++)
		coll_emit_send(b, rank_plus(call->root, distance, call->ranks), out, n);
}

static double bcast_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				const struct coll_machine *m)
{
	const struct fan_same same = fan_same_cost(call, m, call_bytes(call));

	(void)tuning;
	return crowded_cost(call, m, same.path, same.share);
}

const struct coll_algo coll_bcast_linear = {
	.collective = COLL_BCAST,
	.name = "linear",
	.about = "the root sends to all: p-1 messages of the whole vector",
	.ordered = true,
	.cost = bcast_linear_cost,
	.emit = bcast_linear_emit,
};
