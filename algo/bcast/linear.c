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
	const double n = call_bytes(call), p = call->ranks;

	(void)tuning;
	if (p > 2 && is_published(m, n))	/* a message is two copies: one here, the other by each */
		return crowded_cost(call, m, m->alpha + n * m->beta + (p - 2) * m->overhead,
				    tree_share(call, m->alpha + n * m->beta / 2) + n * m->beta / 2 / p);
	return crowded_cost(call, m, fan_cost(m, call->ranks - 1, n),
			    tree_share(call, m->alpha + n * m->beta));
}

const struct coll_algo coll_bcast_linear = {
	.collective = COLL_BCAST,
	.name = "linear",
	.about = "the root sends to all: p-1 messages of the whole vector",
	.ordered = true,
	.cost = bcast_linear_cost,
	.emit = bcast_linear_emit,
};
