// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: the root sends the vector to all ranks. For few ranks.
 *
 *	alpha + n beta + (p-2) (o + n G)
 *
 * Inside a node the library copies the vector once, to where all ranks read it (publications): then
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

enum { PUBLISHED_MIN = 16 << 10, PUBLISHED_MAX = 4 << 20, PUBLISHED_RANKS = 4 };

/* Measured where ranks share cores, and taken for granted nowhere else. */
static bool is_published(const struct coll_call *call, const struct coll_machine *m)
{
	const u64 n = call_bytes(call);

	return m->published && m->crowding > 1 && call->ranks >= PUBLISHED_RANKS && n >= PUBLISHED_MIN &&
	       n <= PUBLISHED_MAX;
}

/* Half of a byte's time is its writer's copy: one for all. */
static double published_cost(const struct coll_call *call, const struct coll_machine *m)
{
	const double bytes = call_bytes(call) * m->beta, half = bytes / 2;

	return crowded_cost(call, m, m->alpha + bytes + (call->ranks - 2) * m->overhead,
			    tree_share(call, m->alpha + half) + half / call->ranks);
}

static double bcast_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				const struct coll_machine *m)
{
	(void)tuning;
	if (is_published(call, m))
		return published_cost(call, m);
	return crowded_cost(call, m, fan_cost(m, call->ranks - 1, call_bytes(call)),
			    tree_share(call, m->alpha + call_bytes(call) * m->beta));
}

const struct coll_algo coll_bcast_linear = {
	.collective = COLL_BCAST,
	.name = "linear",
	.about = "the root sends to all: p-1 messages of the whole vector",
	.ordered = true,
	.cost = bcast_linear_cost,
	.emit = bcast_linear_emit,
};
