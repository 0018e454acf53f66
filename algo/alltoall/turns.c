// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Alltoall in turns (paper 2): each block goes straight to its place; between two clusters n
 * pairs of ranks exchange blocks at a time. Lane by lane, each rank of the smaller cluster (the
 * *asker*) exchanges with all ranks of the other, then gives the turn to the next asker of its
 * lane.
 *
 * An asker sends "go", a message without bytes, to its partner as it begins to send. The partner
 * then sends its own block, and confirms when the asker's block has arrived. So both directions
 * of a link are free before the next pair uses it, at the cost of a round trip for each pair:
 *
 *	(p q/n) (2 A + m max(beta, n B_wan)) + (p-1) m beta
 *
 * for clusters of p and q ranks, p >= q, and blocks of m bytes; the last term are the blocks
 * inside. Where ranks wait for turns, the blocks inside go first: on a NIC that carries both, a
 * turn would take twice as long and delay all turns behind it. Where all ranks of the smaller
 * cluster have a turn at any time, both go at once: turns leave NICs idle for a round trip.
 *
 * A rank needs the counts of its own blocks only.
 */
#include "algo/common/exchange.h"

static u32 emit_signal(struct coll_build *b, u32 rank, u32 after)
{
	coll_emit_after(b, after);
	return coll_emit_send(b, rank, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

static u32 emit_signalled(struct coll_build *b, u32 rank)
{
	return coll_emit_recv(b, rank, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

/* The asker's side of one exchange, begun after `free`; returns when it is over. */
static u32 emit_ask(struct coll_build *b, const struct coll_exchange *x, u32 partner, u32 free)
{
	const bool gives = block_to(x->call, partner).bytes;
	const bool takes = block_from(x->call, partner).bytes;
	u32 given, taken, over;

	if (takes)
		emit_signal(b, partner, free);
	taken = coll_emit_exchange_recv(b, x, partner);
	given = coll_emit_exchange_send(b, x, partner, free);
	coll_emit_exchange_store(b, x, partner, given, taken);
	over = gives ? emit_signalled(b, partner) : COLL_NONE;
	return takes || gives ? emit_both(b, over, taken) : free;
}

static void emit_answer(struct coll_build *b, const struct coll_exchange *x, u32 asker)
{
	const bool gives = block_to(x->call, asker).bytes;
	const bool takes = block_from(x->call, asker).bytes;
	const u32 asked = gives ? emit_signalled(b, asker) : COLL_NONE;
	const u32 taken = coll_emit_exchange_recv(b, x, asker),
		  given = coll_emit_exchange_send(b, x, asker, asked);

	coll_emit_exchange_store(b, x, asker, given, taken);
	if (takes)
		emit_signal(b, asker, taken);
}

/* The turns of a lane: askers `lane`, `lane` + n, ... one after the other. */
static void emit_asker(struct coll_build *b, const struct coll_exchange *x, u32 cluster, u32 begin)
{
	const struct coll_clusters *c = &x->c;
	const u32 *near = cluster_ranks(c, c->mine), *far = cluster_ranks(c, cluster);
	const u32 size = cluster_size(c, cluster);
	u32 free = begin, i;

	if (c->index >= c->lanes)
		free = emit_signalled(b, near[c->index - c->lanes]);
	for (i = 0; i < size; i++)
		free = emit_ask(b, x, far[rank_plus(c->index % size, i, size)], free);
	if (c->index + c->lanes < cluster_size(c, c->mine))
		emit_signal(b, near[c->index + c->lanes], free);
}

static bool alltoall_turns_asks(const struct coll_clusters *c, u32 one, u32 other)
{
	const u32 a = cluster_size(c, one), b = cluster_size(c, other);

	return a < b || (a == b && one < other);
}

static void alltoall_turns_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	const struct coll_exchange x = { .c = coll_clusters_make(b, call, tuning), .call = call };
	const struct coll_clusters *c = &x.c;
	const u32 inside = coll_emit_exchange_inside(b, &x);
	const u32 begin = c->lanes < coll_clusters_smallest(call) ? inside : COLL_NONE;
	u32 k, i;

	for (k = 0; k < c->count; k++) {
		if (k == c->mine)
			continue;
		if (alltoall_turns_asks(c, c->mine, k))
			emit_asker(b, &x, k, begin);
		else
			for (i = 0; i < cluster_size(c, k); i++)
				emit_answer(b, &x, cluster_ranks(c, k)[i]);
	}
}

static double alltoall_turns_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const double n = block_usual_bytes(call, tuning), p = coll_clusters_largest(call);
	const double lanes = coll_clusters_lanes(call, tuning);
	const double near = (p - 1) * (m->alpha + n * m->beta);
	const double pairs = p * (call->ranks - p) / lanes;

	if (call->ranks == 1)
		return 0;
	if (coll_clusters_count(call) == 1)
		return near;
	return pairs * (2 * coll_across_alpha(call, m) +
			n * lanes * coll_across_beta(m, lanes)) + near;
}

const struct coll_algo coll_alltoall_turns = {
	.collective = COLL_ALLTOALL,
	.name = "turns",
	.about = "all blocks straight to their places, n pairs across at a time: long blocks",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = alltoall_turns_cost,
	.emit = alltoall_turns_emit,
};

const struct coll_algo coll_alltoallv_turns = {
	.collective = COLL_ALLTOALLV,
	.name = "turns",
	.about = "all blocks straight to their places, n pairs across at a time",
	.ordered = true,
	.clusters = true,
	.options = "n",
	.cost = alltoall_turns_cost,
	.emit = alltoall_turns_emit,
};
