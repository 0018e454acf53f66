// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Recursive halving (Thakur, Rabenseifner, Gropp 2005): the virtual ranks split into a lower and
 * an upper half, each virtual rank sends its partner in the other half the blocks of that half,
 * and so on within the halves.
 *
 *	K alpha + (1 - 1/2^K) n (beta + gamma)	for 2^K ranks, n bytes in equal blocks;
 *	alpha + n beta + n gamma before, and a block after, where there are excess ranks
 *
 * An excess rank and its proxy are neighbours, so a virtual rank's blocks are contiguous. Halving
 * begins with the farthest partner, which keeps what is sent together contiguous as well, at
 * the cost of the order of operands.
 */
#include "algo/common/partial.h"

/* Where the blocks of the virtual rank (the proxy's and before it its excess rank's) begin. */
static u64 vrank_offset(const struct coll_call *call, const struct coll_fold *fold, u32 vrank)
{
	return block_offset(call, fold_first(fold, vrank));
}

static void emit_surplus(struct coll_build *b, const struct coll_call *call)
{
	const u32 proxy = call->rank + 1;
	u32 sent = coll_emit_send_nonempty(b, proxy, call_input(call),
					   block_offset(call, call->ranks));

	if (call->in_place)
		coll_emit_after(b, sent);
	coll_emit_recv_nonempty(b, proxy, COLL_ADDRESS(COLL_OUT, 0), block_bytes(call, call->rank));
}

/* The proxy's vector and its excess rank's, summed where the excess rank's came in. */
static struct coll_partial emit_fold_in(struct coll_build *b, const struct coll_call *call,
					u32 excess_rank)
{
	const u64 n = block_offset(call, call->ranks);
	struct coll_partial sum = { coll_emit_scratch(b, n), COLL_NONE };
	u32 received = coll_emit_recv_nonempty(b, excess_rank, sum.place, n);

	coll_emit_after(b, received);
	sum.ready = coll_emit_reduce(b, sum.place, sum.place, call_input(call), n);
	return sum;
}

/*
 * The last step leaves a virtual rank's own blocks: the excess rank's, which is reduced in
 * scratch and sent, and mine, which is reduced into OUT once no op reads there.
 */
static void emit_last(struct coll_build *b, const struct coll_call *call, bool is_proxy,
		      u64 theirs, u32 received, struct coll_partial mine, u32 reading)
{
	const u64 n = block_bytes(call, call->rank);
	u64 excess_bytes = is_proxy ? block_bytes(call, call->rank - 1) : 0;
	u32 reduced = mine.ready;

	if (excess_bytes) {
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		reduced = coll_emit_reduce(b, theirs, theirs, mine.place, excess_bytes);
		coll_emit_after(b, reduced);
		coll_emit_send(b, call->rank - 1, theirs, excess_bytes);
	}
	coll_emit_after(b, reduced);
	coll_emit_after(b, received);
	coll_emit_after(b, reading);
	coll_emit_reduce_out(b, theirs + excess_bytes, mine.place + excess_bytes,
			     theirs + excess_bytes, n);
}

static void emit_virtual_rank(struct coll_build *b, const struct coll_call *call,
			      const struct coll_fold *fold)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	const bool is_proxy = fold_is_proxy(fold, vrank);
	struct coll_partial mine = partial_input(call);	/* offsets as in the whole vector */
	u32 reading = COLL_NONE, i = fold->exchanges;

	if (is_proxy)
		mine = emit_fold_in(b, call, fold_excess_rank(vrank));
	while (i--) {
		const u32 partner = vrank ^ 1u << i, kept = vrank >> i << i, sent = kept ^ 1u << i;
		const u64 from = vrank_offset(call, fold, kept);
		const u64 n = vrank_offset(call, fold, kept + (1u << i)) - from;
		const u64 out_from = vrank_offset(call, fold, sent);
		const u64 out_n = vrank_offset(call, fold, sent + (1u << i)) - out_from;
		const u64 theirs = coll_emit_scratch(b, n);
		u32 received = coll_emit_recv_nonempty(b, fold_rank(fold, partner), theirs, n),
		    gone;

		coll_emit_after(b, mine.ready);
		gone = coll_emit_send_nonempty(b, fold_rank(fold, partner), mine.place + out_from,
					       out_n);
		if (call->in_place && mine.ready == COLL_NONE)	/* it is still the input */
			reading = gone;
		if (!i) {
			mine.place += from;
			emit_last(b, call, is_proxy, theirs, received, mine, reading);
			return;
		}
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		mine.ready = coll_emit_reduce(b, theirs, theirs, mine.place + from, n);
		mine.place = theirs - from;
	}
}

static void reduce_scatter_halving_emit(struct coll_build *b, const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const struct coll_fold fold = fold_of(call->ranks);

	(void)tuning;
	if (call->ranks == 1)
		coll_emit_single_rank(b, call, block_bytes(call, 0));
	else if (fold_is_excess(&fold, call->rank))
		emit_surplus(b, call);
	else
		emit_virtual_rank(b, call, &fold);
}

static double reduce_scatter_halving_cost(const struct coll_call *call,
					  const struct coll_tuning *tuning,
					  const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const double n = block_offset(call, call->ranks);

	(void)tuning;
	return symmetric_cost(call, m,
			      fold.exchanges * m->alpha +
				      (1 - 1.0 / fold.vranks) * n * (m->beta + m->gamma) +
				      (fold.excess ? 2 * m->alpha + n * (m->beta + m->gamma) +
							     n / call->ranks * m->beta
						   : 0));
}

const struct coll_algo coll_reduce_scatter_halving = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "halving",
	.about = "recursive halving: log2 p messages; best with 2^k ranks",
	.cost = reduce_scatter_halving_cost,
	.emit = reduce_scatter_halving_emit,
};

const struct coll_algo coll_reduce_scatter_world = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "world",
	.about = "over all ranks as if they were near each other: halving",
	.cost = reduce_scatter_halving_cost,
	.emit = reduce_scatter_halving_emit,
	.baseline = true,
};

const struct coll_algo coll_reduce_scatter_block_halving = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "halving",
	.about = "recursive halving: log2 p messages; best with 2^k ranks",
	.cost = reduce_scatter_halving_cost,
	.emit = reduce_scatter_halving_emit,
};

const struct coll_algo coll_reduce_scatter_block_world = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "world",
	.about = "over all ranks as if they were near each other: halving",
	.cost = reduce_scatter_halving_cost,
	.emit = reduce_scatter_halving_emit,
	.baseline = true,
};
