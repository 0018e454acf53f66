// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Van de Geijn (Barnett et al., InterCom, 1994): the vector is cut into p parts, one for each
 * rank; a binomial tree scatters them, a ring brings all ranks the others.
 *
 *	(ceil(log2 p) + p-1) alpha + 2 (p-1)/p n beta
 *
 * After the scatter a rank has the parts of its whole subtree. The ring leaves out the parts
 * that the receiver already has, so each byte is received once, and all receives can be posted
 * at the start.
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

struct cut {
	const struct coll_call *call;
	u32 relative;
	u32 above, below;	/* neighbours in the ring */
};

static u64 parts_bytes(const struct coll_call *call, u32 first, u32 count)
{
	return part_offset(call, call->ranks, first + count) -
	       part_offset(call, call->ranks, first);
}

static u64 part_place(const struct coll_call *call, u32 part)
{
	return COLL_ADDRESS(COLL_OUT, part_offset(call, call->ranks, part));
}

/* Whether the scatter brings `part` to `relative`: it is in the subtree. */
static bool bcast_vandegeijn_scattered(const struct cut *cut, u32 relative, u32 part)
{
	return part >= relative && part - relative < tree_size(relative, cut->call->ranks);
}

/* Returns the op that brought the parts of my subtree. */
static u32 emit_scatter(struct coll_build *b, const struct cut *cut)
{
	const struct coll_call *call = cut->call;
	const u32 p = call->ranks;
	u32 received = COLL_NONE, m;
	u64 bytes = parts_bytes(call, cut->relative, tree_size(cut->relative, p));

	if (cut->relative && bytes)
		received = coll_emit_recv(b, rank_plus(call->root, tree_parent(cut->relative), p),
					  part_place(call, cut->relative), bytes);
	for (m = tree_reach(cut->relative, p); m; m /= 2) {
		u32 child = cut->relative + m;

		bytes = parts_bytes(call, child, tree_size(child, p));
		if (!bytes)
			continue;
		coll_emit_after(b, received);
		coll_emit_send(b, rank_plus(call->root, child, p), part_place(call, child), bytes);
	}
	return received;
}

static void emit_ring(struct coll_build *b, const struct cut *cut, u32 from_scatter)
{
	const struct coll_call *call = cut->call;
	const u32 p = call->ranks, above = rank_plus(cut->relative, 1, p);
	u32 from_ring = COLL_NONE, step;

	for (step = 0; step < p - 1; step++) {
		u32 give = rank_minus(cut->relative, step, p);
		u32 take = rank_minus(give, 1, p);

		if (!bcast_vandegeijn_scattered(cut, above, give) && part_bytes(call, p, give)) {
			coll_emit_after(b, bcast_vandegeijn_scattered(cut, cut->relative, give)
						   ? from_scatter
						   : from_ring);
			coll_emit_send(b, cut->above, part_place(call, give),
				       part_bytes(call, p, give));
		}
		if (!bcast_vandegeijn_scattered(cut, cut->relative, take) &&
		    part_bytes(call, p, take))
			from_ring = coll_emit_recv(b, cut->below, part_place(call, take),
						   part_bytes(call, p, take));
	}
}

static void bcast_vandegeijn_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const struct cut cut = {
		.call = call,
		.relative = rank_minus(call->rank, call->root, call->ranks),
		.above = rank_plus(call->rank, 1, call->ranks),
		.below = rank_minus(call->rank, 1, call->ranks),
	};

	(void)tuning;
	emit_ring(b, &cut, emit_scatter(b, &cut));
}

static double bcast_vandegeijn_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	const double p = call->ranks;

	(void)tuning;
	return crowded_cost(call, m,
			    (log2_ceil(call->ranks) + p - 1) * m->alpha +
				    2 * (p - 1) / p * call_bytes(call) * m->beta,
			    tree_share(call, p * m->alpha + 2 * call_bytes(call) * m->beta));
}

const struct coll_algo coll_bcast_vandegeijn = {
	.collective = COLL_BCAST,
	.name = "vandegeijn",
	.about = "binomial scatter, then ring allgather: every link carries 2/p of the vector",
	.ordered = true,
	.cost = bcast_vandegeijn_cost,
	.emit = bcast_vandegeijn_emit,
};

const struct coll_algo coll_bcast_world = {
	.collective = COLL_BCAST,
	.name = "world",
	.about = "over all ranks as if they were near each other: vandegeijn",
	.ordered = true,
	.cost = bcast_vandegeijn_cost,
	.emit = bcast_vandegeijn_emit,
	.baseline = true,
};
