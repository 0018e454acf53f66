// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Flat algorithms on levels: some of their messages stay in a node. What they cost is their own formula with the
 * latency and the byte time of all messages of a schedule together.
 */
#include <string.h>

#include "levels.h"

/* How the messages of a flat algorithm leave nodes that are runs of ranks. */
struct flat_way {
	double latency;		/* of the rounds, those whose slowest message leaves a node */
	double bytes;		/* the part of a rank's bytes that leaves the node */
	double share;		/* ranks of a node that send by its NIC at once */
	double messages, work;	/* the parts of all ranks' messages and bytes that leave nodes: where these are work */
};

enum flat_steps {
	STEPS_PAIRED,	/* log2 p rounds, between ranks that differ in a bit */
	STEPS_CIRCLE,	/* log2 p rounds, to the rank 2^i further */
	STEPS_EACH,	/* one for each other rank */
	STEPS_SCATTER,	/* log2 p rounds, then once around the ring */
	STEPS_ONE,	/* one: all messages at once */
};
enum flat_bytes {
	BYTES_EVEN,	/* as many in each round */
	BYTES_BLOCKS,	/* all blocks but the own go once, or those of all others come to one rank */
	BYTES_HALVES,	/* each round half of those of the one before, neighbours first */
};

/* By the names of the algorithms; those that are not here are like butterflies. */
static const struct flat_name {
	const char *name;
	u32 collectives;	/* bits */
	enum flat_steps steps;
	enum flat_bytes bytes;
	bool one;		/* one rank of a node communicates where this leaves the node */
} flat_names[] = {
	{ "binomial", 1u << COLL_BCAST | 1u << COLL_REDUCE, STEPS_PAIRED, BYTES_EVEN, true },
	{ "binomial", ~0u, STEPS_PAIRED, BYTES_BLOCKS, true },
	{ "reduce-bcast", ~0u, STEPS_PAIRED, BYTES_EVEN, true },
	{ "rabenseifner", ~0u, STEPS_PAIRED, BYTES_HALVES, false },
	{ "doubling", 1u << COLL_ALLGATHER | 1u << COLL_ALLGATHERV, STEPS_PAIRED, BYTES_BLOCKS, false },
	{ "halving", ~0u, STEPS_PAIRED, BYTES_BLOCKS, false },
	{ "dissemination", ~0u, STEPS_CIRCLE, BYTES_EVEN, false },
	{ "bruck", 1u << COLL_ALLGATHER | 1u << COLL_ALLGATHERV, STEPS_CIRCLE, BYTES_BLOCKS, false },
	{ "bruck", ~0u, STEPS_CIRCLE, BYTES_EVEN, false },
	{ "circulant", 1u << COLL_BCAST, STEPS_CIRCLE, BYTES_EVEN, false },
	{ "circulant", ~0u, STEPS_CIRCLE, BYTES_BLOCKS, false },
	{ "pairwise", 1u << COLL_ALLTOALL | 1u << COLL_ALLTOALLV, STEPS_EACH, BYTES_BLOCKS, false },
	{ "pairwise", ~0u, STEPS_ONE, BYTES_BLOCKS, false },
	{ "linear", 1u << COLL_ALLTOALL | 1u << COLL_ALLTOALLV, STEPS_ONE, BYTES_BLOCKS, false },
	{ "linear", ~0u, STEPS_ONE, BYTES_BLOCKS, true },
	{ "one-shot", ~0u, STEPS_ONE, BYTES_BLOCKS, false },
	{ "vandegeijn", ~0u, STEPS_SCATTER, BYTES_BLOCKS, true },
	/* Of a rank's neighbours on a graph some are far in each step. */
	{ "cayley", ~0u, STEPS_ONE, BYTES_BLOCKS, false },
	{ "debruijn", ~0u, STEPS_ONE, BYTES_BLOCKS, false },
};

static const struct flat_name *flat_name_of(const struct coll_algo *algo)
{
	static const struct flat_name other = { "", ~0u, STEPS_PAIRED, BYTES_EVEN, false };
	size_t i;

	for (i = 0; i < sizeof(flat_names) / sizeof(*flat_names); i++)
		if (!strcmp(flat_names[i].name, algo->name) &&
		    flat_names[i].collectives & 1u << algo->collective)
			return &flat_names[i];
	return &other;
}

static struct flat_way flat_way_of(const struct coll_algo *algo, const struct coll_call *call,
				   const struct coll_level *node)
{
	const double p = call->ranks, k = node->largest, parts = node->parts;
	const double rounds = log2_ceil(call->ranks), far = log2_ceil(node->parts);
	const double others = (p - k) / (p - 1), tree = (parts - 1) / (p - 1);
	const struct flat_name *f = flat_name_of(algo);
	struct flat_way way = { .share = f->one ? 1 : k };

	if (!node->runs)
		return (struct flat_way){ 1, 1, k, others, others };
	/* Of its way to the last rank. */
	if (algo_is_pipeline(algo))
		return (struct flat_way){ tree, tree, 1, tree, tree };
	/* Around a ring most blocks leave each node, once in k steps; others do so meanwhile. */
	if (algo->neighbours)
		return (struct flat_way){ k > 1 ? parts / (p - 1) : 1, 1, 1, parts / p, parts / p };
	switch (f->steps) {
	case STEPS_PAIRED:
		way.latency = far / rounds;
		break;
	case STEPS_CIRCLE:	/* of the short ways one leaves the node, too */
		way.latency = far < rounds ? (far + 1) / rounds : 1;
		break;
	case STEPS_EACH:
		way.latency = others;
		break;
	case STEPS_SCATTER:
		way.latency = (far + parts - 1) / (rounds + p - 1);
		break;
	case STEPS_ONE:
		way.latency = 1;
		break;
	}
	way.bytes = f->bytes == BYTES_EVEN ? far / rounds :
		    f->bytes == BYTES_BLOCKS ? others : (1 / k - 1 / p) / (1 - 1 / p);
	way.messages = f->steps == STEPS_EACH || f->steps == STEPS_ONE ? others :
		       f->steps == STEPS_SCATTER ? parts / p : f->one ? tree : way.latency;
	/* To each rank of a tree but the root the vector comes once, and from another node to one of each. */
	way.work = f->steps == STEPS_SCATTER || (f->one && f->bytes == BYTES_EVEN) ? tree :
		   f->one && f->steps == STEPS_PAIRED ? far / rounds : way.bytes;
	return way;
}

double coll_flat_cost(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_tuning *tuning, const struct coll_machine *m)
{
	const struct coll_level *node = &call->level[0];
	struct coll_machine mixed = coll_machine_shared(call, m);
	struct coll_level_cost inside;
	struct coll_wire wire;
	struct flat_way way;
	double far;

	if (!call_has_levels(call))
		return algo->cost(call, tuning, m);
	inside = coll_inside_cost(m, node->kind);
	way = flat_way_of(algo, call, node);
	far = way.bytes * way.share;
	mixed.alpha = way.latency * (m->alpha + (way.share - 1) * m->overhead) +
		      (1 - way.latency) * inside.alpha;
	mixed.beta = far * m->beta + (1 - way.bytes) * inside.beta;
	mixed.byte_gap = far * m->byte_gap + (1 - way.bytes) * inside.byte_gap;
	if (algo_is_pipeline(algo))	/* all segments take that link, one after the other */
		mixed.byte_gap = m->byte_gap;
	mixed.overhead = way.bytes * m->overhead + (1 - way.bytes) * inside.overhead;
	if (m->crowding <= 1)
		return algo->cost(call, tuning, &mixed);
	/* Inside, all of a message's time is work; what the NIC has of a node's other ranks is their work. */
	mixed.byte_work = way.work * byte_work(m, m->beta) + (1 - way.work) * inside.beta;
	wire = coll_wire_of(&mixed, way.share);
	wire.work.alpha = way.messages * coll_wire_work(m) + (1 - way.messages) * inside.alpha;
	return coll_wire_cost_of(algo, call, tuning, &wire, algo->cost(call, tuning, &wire.all));
}
