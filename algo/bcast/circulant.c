// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circulant graph broadcast (Träff, "Optimal Broadcast Schedules in Logarithmic Time with
 * Applications to Broadcast, All-Broadcast, Reduction and All-Reduction", arXiv 2407.18004): the
 * vector is cut into N blocks. In each round each rank receives one block and sends one that it
 * has, along the same circulant graph. N-1 + L rounds for any p, the fewest possible, with
 * L = ceil(log2 p).
 *
 *	(L + 1) (alpha + n/N beta) + (N-1) (2 o + n/N beta), and one alpha less for one block
 *
 * With q = L, q rounds form a phase. In round k of a phase a rank receives from the rank skip(k)
 * below. A table of q numbers, which each rank computes for itself, names the block of phase 0;
 * each phase adds q. Over a phase a rank receives, of the q blocks before the current ones, all
 * but its *base block*, which reached it early on a shortest path from the root. A rank sends
 * the block that its receiver's table names.
 *
 * Phase 0 begins at a round such that the last phase is a full one. A block below 0 is none. A
 * block beyond the last stands for the last, and is sent only if the receiver does not have it
 * yet: each byte is sent once.
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

struct circulant_graph {
	const struct coll_call *call;
	u32 rounds;		/* of a phase: q */
	u32 first;		/* round that the broadcast begins with */
	u32 blocks;		/* N */
};

/* The block that a rank receives in each round of phase 0. */
struct circulant_table {
	s32 block[LOG2_RANKS_MAX];
};

/*
 * The search for a rank's table. A *way* from the root is a sum of different
 * skips, largest first; ways of one full turn and less are looked at.
 */
struct circulant_search {
	u32 ranks, rounds;
	u32 target;		/* the rank, one full turn above the root */
	u32 shortest;		/* of the ways found: the next must be shorter */
	u32 unused;		/* a bit per skip that no round has yet */
	u32 found;		/* rounds that have theirs */
	u32 last[LOG2_RANKS_MAX];	/* per round: the last skip of its way */
};

/* What is left to the target before the skip of round k. */
static u32 bcast_circulant_reach(const struct circulant_search *search, u32 k)
{
	return search->target - circulant_skip(search->ranks, search->rounds, k);
}

/*
 * Depth first over the ways that continue `way` with skips from k down. Round
 * `found` gets the longest way that its skip can end in. O(log p) steps for most
 * ranks, as a way found shuts out those before it.
 */
static void search_ways(struct circulant_search *search, u32 way, s32 k)
{
	for (; k >= 0; k--) {
		u32 longer = way + circulant_skip(search->ranks, search->rounds, k);

		if (!(search->unused >> k & 1) ||
		    longer > bcast_circulant_reach(search, search->found) ||
		    longer >= search->shortest)
			continue;
		if (longer <= bcast_circulant_reach(search, search->found + 1))
			search_ways(search, longer, k - 1);
		if (search->found == search->rounds ||
		    way > bcast_circulant_reach(search, search->found + 1))
			return;
		search->shortest = longer;
		search->unused &= ~(1u << k);
		search->last[search->found++] = k;
	}
}

/* The last skip of the rank's own way from the root; `relative` is not the root. */
static u32 base_block(u32 relative, u32 ranks, u32 rounds)
{
	u32 k = rounds;

	while (relative) {
		k--;
		if (circulant_skip(ranks, rounds, k) <= relative)
			relative -= circulant_skip(ranks, rounds, k);
	}
	return k;
}

static struct circulant_table table_of(u32 relative, u32 ranks, u32 rounds)
{
	const u32 base = base_block(relative, ranks, rounds);
	struct circulant_search search = {
		.ranks = ranks,
		.rounds = rounds,
		.target = ranks + relative,
		.shortest = 2 * ranks,
		.unused = ((2u << rounds) - 1) & ~(1u << base),
	};
	struct circulant_table table;
	u32 k;

	search_ways(&search, 0, rounds);
	for (k = 0; k < rounds; k++)
		table.block[k] = search.last[k] == rounds ? (s32)base :
							    (s32)search.last[k] - (s32)rounds;
	return table;
}

/* The block that the table names for this round, capped or not. */
static s64 bcast_circulant_named(const struct circulant_graph *graph,
				 const struct circulant_table *table, u32 round)
{
	const u32 q = graph->rounds;

	return (s64)table->block[round % q] + round / q * q - graph->first;
}

/* The block that really comes in this round, or COLL_NONE. */
static u32 bcast_circulant_comes(const struct circulant_graph *graph,
				 const struct circulant_table *table, u32 round)
{
	const s64 last = graph->blocks - 1, block = bcast_circulant_named(graph, table, round);
	u32 back;

	if (block < last)
		return block < 0 ? COLL_NONE : block;
	/* The last block is named once more by every round after its first. */
	for (back = 1; back <= graph->rounds && back <= round - graph->first; back++)
		if (bcast_circulant_named(graph, table, round - back) >= last)
			return COLL_NONE;
	return last;
}

static u64 block_place(const struct circulant_graph *graph, u32 block)
{
	return COLL_ADDRESS(COLL_OUT, part_offset(graph->call, graph->blocks, block));
}

static u64 block_size(const struct circulant_graph *graph, u32 block)
{
	return part_bytes(graph->call, graph->blocks, block);
}

/* Blocks that came in the last two phases, and the last of all. */
struct circulant_arrivals {
	u32 block[2 * LOG2_RANKS_MAX];
	u32 op[2 * LOG2_RANKS_MAX];
	u32 last;
};

static void bcast_circulant_arrived(struct circulant_arrivals *arrivals,
				    const struct circulant_graph *graph, u32 round, u32 block,
				    u32 op)
{
	arrivals->block[round % (2 * graph->rounds)] = block;
	arrivals->op[round % (2 * graph->rounds)] = op;
	if (block == graph->blocks - 1)
		arrivals->last = op;
}

static u32 bcast_circulant_arrival(const struct circulant_arrivals *arrivals,
				   const struct circulant_graph *graph, u32 block)
{
	u32 i;

	if (block == graph->blocks - 1)
		return arrivals->last;
	for (i = 0; i < 2 * graph->rounds; i++)
		if (arrivals->block[i] == block)
			return arrivals->op[i];
	return COLL_NONE;	/* the root has them all */
}

static void emit_rounds(struct coll_build *b, const struct circulant_graph *graph)
{
	const struct coll_call *call = graph->call;
	const u32 p = call->ranks, q = graph->rounds;
	const u32 relative = rank_minus(call->rank, call->root, p);
	struct circulant_table mine, theirs[LOG2_RANKS_MAX];
	struct circulant_arrivals arrivals;
	u32 sent = COLL_NONE, round, k;

	memset(&arrivals, 0xff, sizeof(arrivals));	/* all COLL_NONE */
	if (relative)
		mine = table_of(relative, p, q);
	for (k = 0; k < q; k++) {
		u32 to = rank_plus(relative, circulant_skip(p, q, k), p);

		if (to)
			theirs[k] = table_of(to, p, q);
	}
	for (round = graph->first; round < graph->first + graph->blocks - 1 + q; round++) {
		u32 distance = circulant_skip(p, q, round % q), block;

		block = rank_plus(relative, distance, p) ?
				bcast_circulant_comes(graph, &theirs[round % q], round) : COLL_NONE;
		if (block != COLL_NONE) {
			coll_emit_after(b, bcast_circulant_arrival(&arrivals, graph, block));
			coll_emit_after(b, sent);	/* a round is a round: one link at a time */
			sent = coll_emit_send(b, rank_plus(call->rank, distance, p),
					      block_place(graph, block), block_size(graph, block));
		}
		block = relative ? bcast_circulant_comes(graph, &mine, round) : COLL_NONE;
		if (block != COLL_NONE)
			bcast_circulant_arrived(&arrivals, graph, round, block,
						coll_emit_recv(b,
							       rank_minus(call->rank, distance, p),
							       block_place(graph, block),
							       block_size(graph, block)));
	}
}

static u32 blocks_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const u32 rounds = log2_ceil(call->ranks);

	return pipeline_parts(call, tuning, rounds > 1 ? rounds - 1 : 0);
}

static void bcast_circulant_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const u32 q = log2_ceil(call->ranks);
	struct circulant_graph graph = { .call = call,
					 .rounds = q,
					 .blocks = blocks_of(call, tuning) };

	if (!q || !call_bytes(call))
		return;
	graph.first = (q - (graph.blocks - 1) % q) % q;
	emit_rounds(b, &graph);
}

static double bcast_circulant_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	const double blocks = blocks_of(call, tuning);

	if (call->ranks == 1)
		return 0;
	return pipeline_cost(call, m, log2_ceil(call->ranks) + (blocks > 1), blocks,
			     call_bytes(call), 0);
}

const struct coll_algo coll_bcast_circulant = {
	.collective = COLL_BCAST,
	.name = "circulant",
	.about = "pipeline of N blocks in N-1 + log2 p rounds: long vectors, any p",
	.ordered = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = bcast_circulant_cost,
	.emit = bcast_circulant_emit,
};
