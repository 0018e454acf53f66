// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Nested levels: random topologies, and the bytes that enter and leave each node. No schedule can
 * do with fewer than its inputs and results require; the algorithms made for levels are held to
 * this bound. Where a vector is cut into parts, each message may have one element more.
 */
#include <string.h>

#include "algo/common/levels.h"
#include "algo/redundancy/replicas.h"
#include "algo/tuning.h"
#include "verify.h"

/* ---- topologies ----------------------------------------------------------- */

/*
 * A random part for each rank, of up to `most` parts that may be empty: runs of random lengths, or
 * ranks dealt at random. Ranks of one part above share numbers with others: the levels refine.
 */
static u32 *random_parts(struct world *w, u64 *random, u32 most, bool runs)
{
	u32 *part = arena_get(&w->arena, w->ranks, sizeof(*part));
	const u32 often = 1 + dice_below(random, 2 * w->ranks / most + 1);
	u32 now = 0, i;

	for (i = 0; i < w->ranks; i++) {
		if (runs && !dice_below(random, often))
			now++;
		part[i] = runs ? now : dice_below(random, most);
	}
	return part;
}

/* The node of rank i in a shape of nodes that is not random; `size`: of ranks, or of nodes. */
static u32 shaped_part(const struct world *w, enum verify_nodes shape, u32 size, u32 i)
{
	u32 part = 0;

	switch (shape) {
	case NODES_DEALT:
		return i % size;
	case NODES_GROWING:
		while (i > part)
			i -= ++part;
		return part;
	case NODES_ONE_LARGE:
		return i + size < w->ranks ? 0 : 1 + i + size - w->ranks;
	default:
		return i / size;
	}
}

static u32 *shaped_parts(struct world *w, u64 *random)
{
	const struct verify_case *c = w->vcase;
	const enum verify_nodes shape = c->nodes == NODES_DEALT && !c->commutative ? NODES_EQUAL :
										     c->nodes;
	const u32 size = 1 + dice_below(random, 1 + w->ranks / 2);
	u32 *part = arena_get(&w->arena, w->ranks, sizeof(*part)), i;

	for (i = 0; i < w->ranks; i++)
		part[i] = shaped_part(w, shape, size, i);
	return part;
}

/* Clusters have their numbers from 0 on, in the call. */
static void layout_far(struct world *w, const struct coll_levels *levels)
{
	const struct coll_level *top = &levels->of_ranks[levels->count - 1];

	w->cluster = NULL;
	w->clusters = 0;
	if (!levels->count || top->kind != COLL_LEVEL_CLUSTER)
		return;
	w->cluster = arena_get(&w->arena, w->ranks, sizeof(*w->cluster));
	memcpy(w->cluster, top->part, w->ranks * sizeof(*w->cluster));
	w->clusters = top->parts;
}

void layout_levels(struct world *w)
{
	const struct verify_case *c = w->vcase;
	const u32 *of[COLL_LEVELS_MAX] = { NULL };
	u64 random = c->topology;
	bool runs;

	w->levels.count = 0;
	if (!c->topology)
		return;
	runs = !c->commutative || dice_below(&random, 2);
	of[COLL_LEVEL_NODE] = c->nodes == NODES_RANDOM ?
		random_parts(w, &random, 1 + dice_below(&random, w->ranks), runs) :
		shaped_parts(w, &random);
	if (c->kinds & 1 << COLL_LEVEL_DOMAIN)
		of[COLL_LEVEL_DOMAIN] = random_parts(w, &random, 1 + w->ranks / 2, runs);
	/* A run of a whole number of nodes is a cluster; dealt ones cut nodes into two. */
	if (c->kinds & 1 << COLL_LEVEL_CLUSTER)
		of[COLL_LEVEL_CLUSTER] = random_parts(w, &random, 2 + dice_below(&random, 2), runs);
	coll_levels_make(of, w->ranks, arena_get(&w->arena, coll_levels_bytes(w->ranks), 1),
			 &w->levels);
	layout_far(w, &w->levels);
	if (w->clusters > CLUSTERS_MAX) {	/* links.c has no room for more */
		w->cluster = NULL;
		w->clusters = 0;
		w->levels.count--;
	}
}

/* ---- bytes ------------------------------------------------------------------ */

struct node_bytes {
	u64 in, out;		/* elements */
	u64 in_most, out_most;	/* the bound; ~0: none is claimed */
	u64 messages;
};

const struct coll_level *world_nodes(const struct world *w)
{
	u32 i;

	for (i = w->levels.count; i--;)
		if (w->levels.of_ranks[i].kind != COLL_LEVEL_CLUSTER)
			return &w->levels.of_ranks[i];
	return NULL;
}

static void count_bytes(const struct world *w, const struct coll_level *nodes,
			struct node_bytes *node)
{
	struct world_send send = { .op = COLL_NONE };

	while (world_next_send(w, &send)) {
		const u32 here = nodes->part[send.rank], there = nodes->part[send.to];

		if (here == there)
			continue;
		node[here].out += send.bytes / ELEMENT;
		node[there].in += send.bytes / ELEMENT;
		node[here].messages++;
		node[there].messages++;
	}
}

/* Elements of the blocks of a node's ranks. */
static u64 node_blocks(const struct world *w, const struct coll_level *nodes, u32 node)
{
	u64 sum = 0;
	u32 rank;

	for (rank = 0; rank < w->ranks; rank++)
		if (node == COLL_NONE || nodes->part[rank] == node)
			sum += w->blocks.counts[rank];
	return sum;
}

static void bound_exchange(const struct world *w, const struct coll_level *nodes, u32 number,
			   struct node_bytes *node)
{
	const bool v = w->vcase->algo->collective == COLL_ALLTOALLV;
	u32 a, b;

	node->in_most = node->out_most = 0;
	for (a = 0; a < w->ranks; a++)
		for (b = 0; b < w->ranks; b++) {
			const u64 n = v ? w->blocks.send_counts[(size_t)a * w->ranks + b] :
					  w->vcase->count;

			if (nodes->part[a] == nodes->part[b])
				continue;
			node->out_most += nodes->part[a] == number ? n : 0;
			node->in_most += nodes->part[b] == number ? n : 0;
		}
}

/* Whether each lane's messages are long. */
static bool nodes_lengthy(const struct world *w)
{
	const struct verify_case *c = w->vcase;
	u64 bytes = c->tuning.segment < c->count * ELEMENT ? c->tuning.segment : c->count * ELEMENT;
	u32 i;

	for (i = 0; i < w->levels.count; i++)
		bytes /= w->levels.level[i].smallest;
	return c->lengthy && bytes >= 1 << 15;
}

/* As many times as that replicas send what one rank would. */
static u64 replicas_most(const struct world *w, const struct coll_level *nodes)
{
	const struct coll_tuning *tuning = &w->vcase->tuning;
	const u32 least = replicas_of(tuning, nodes->smallest);
	const u32 largest = replicas_of(tuning, nodes->largest);
	u64 most = 1;
	u32 i, j;

	if (!coll_algo_has_option(w->vcase->algo, "replicas"))
		return 1;
	for (i = least; i <= largest; i++)
		for (j = i; j <= largest; j++)
			if (replicas_links(i, j) > most)
				most = replicas_links(i, j);
	return most;
}

/* The least that must enter and leave, and what the algorithm adds to it where it is short. */
static void bound_bytes(const struct world *w, const struct coll_level *nodes, u32 number,
			struct node_bytes *node)
{
	const struct verify_case *c = w->vcase;
	const u64 n = c->count, parts = nodes->parts;
	const bool home = nodes->part[c->root] == number, lengthy = nodes_lengthy(w);
	u64 rounds = 0, mine, all;

	while (1ull << rounds < parts)
		rounds++;
	switch (c->algo->collective) {
	case COLL_BARRIER:
		node->in_most = node->out_most = 0;
		return;
	case COLL_BCAST:
		node->in_most = home ? 0 : n;
		node->out_most = lengthy ? n : rounds * n;
		return;
	case COLL_REDUCE:
		/* In rank order the sum is complete at the lowest node, and goes to the root. */
		node->out_most = home && c->commutative ? 0 : n;
		node->in_most = lengthy && c->commutative ? n :
				(rounds + !c->commutative) * n;
		if (lengthy && !c->commutative)
			node->out_most = ~(u64)0;	/* a reduce-scatter, and a gather */
		return;
	case COLL_ALLREDUCE:
		node->in_most = (rounds + 1) * n * replicas_most(w, nodes);
		if (lengthy && !coll_algo_has_option(c->algo, "replicas"))
			node->in_most = c->commutative || !(parts & (parts - 1)) ?
						2 * n * (parts - 1) / parts : ~(u64)0;
		node->out_most = node->in_most;
		return;
	case COLL_SCAN:
	case COLL_EXSCAN:
		node->in_most = node->out_most = lengthy ? n : rounds * n;
		return;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		bound_exchange(w, nodes, number, node);
		return;
	default:
		break;
	}
	mine = node_blocks(w, nodes, number);
	all = node_blocks(w, nodes, COLL_NONE);
	switch (c->algo->collective) {
	case COLL_GATHER:
	case COLL_GATHERV:
		node->in_most = home ? all - mine : 0;
		node->out_most = home ? 0 : mine;
		return;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		node->in_most = home ? 0 : mine;
		node->out_most = home ? all - mine : 0;
		return;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		node->in_most = (parts - 1) * mine;
		node->out_most = all - mine;
		return;
	default:	/* allgather: blocks leave a node to one other, or to several */
		node->in_most = all - mine;
		node->out_most = ~(u64)0;
		return;
	}
}

/* Blocks are never cut unevenly; vectors are. */
static u64 nodes_rounding(const struct world *w, const struct node_bytes *node)
{
	const enum coll_collective collective = w->vcase->algo->collective;

	return collective == COLL_BCAST || collective == COLL_REDUCE ||
	       collective == COLL_ALLREDUCE || collective == COLL_SCAN ||
	       collective == COLL_EXSCAN ? node->messages : 0;
}

/* Not of an algorithm between nodes that was asked for: it may have more bytes, for fewer rounds. */
void match_nodes(struct world *w)
{
	const struct coll_level *nodes = world_nodes(w);
	struct node_bytes *node;
	u32 i;

	if (!w->vcase->algo->levels || !nodes || w->cluster || w->vcase->tuning.across != COLL_UNSET)
		return;
	node = arena_get_zero(&w->arena, nodes->parts, sizeof(*node));
	count_bytes(w, nodes, node);
	for (i = 0; i < nodes->parts; i++) {
		struct node_bytes *n = &node[i];

		bound_bytes(w, nodes, i, n);
		if ((n->in_most != ~(u64)0 && n->in > n->in_most + nodes_rounding(w, n)) ||
		    (n->out_most != ~(u64)0 && n->out > n->out_most + nodes_rounding(w, n)))
			world_fail(w, COLL_NONE, COLL_NONE,
				   "of %u nodes number %u (of rank %u) receives %llu elements "
				   "and sends %llu; at most %llu and %llu are needed",
				   nodes->parts, i, nodes->member[nodes->first[i]],
				   (unsigned long long)n->in, (unsigned long long)n->out,
				   (unsigned long long)n->in_most,
				   (unsigned long long)n->out_most);
	}
}
