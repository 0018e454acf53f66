// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circulant graph (Träff 2024, arXiv 2410.14234): blocks are counted from the rank's own upwards,
 * modulo p. While s blocks are left, the upper half of them goes to the rank ceil(s/2) above, as
 * its first blocks, and the same comes from below. Operands wrap around the end, so their order
 * is lost.
 *
 *	ceil(log2 p) alpha + (1 - 1/p) n (beta + gamma)	for n bytes in equal blocks
 *
 * Sums are computed where the first message arrived. Only the first round sends input, in two
 * pieces where the blocks pass the end of the vector. If p is odd, the first round leaves one
 * block, which is sent as it is in the second.
 */
#include "algo/common/partial.h"

/* Bytes of the blocks rank + from .. rank + to - 1, mod p. */
static u64 run_bytes(const struct coll_call *call, u32 rank, u32 from, u32 to)
{
	const u64 first = (u64)rank + from, last = (u64)rank + to;
	const u64 p = call->ranks, all = last >= p ? block_offset(call, p) : 0;

	return (last >= p ? all + block_offset(call, last - p) : block_offset(call, last)) -
	       (first >= p ? all + block_offset(call, first - p) : block_offset(call, first));
}

/* The blocks a .. b - 1 of the rank, as they lie in its input. */
static u64 input_place(const struct coll_call *call, u32 rank, u32 a)
{
	return call_input(call) + block_offset(call, rank_plus(rank, a, call->ranks));
}

/* Where a run a .. b - 1 of the rank's blocks is cut by the end of the vector; else b. */
static u32 reduce_scatter_circulant_cut(const struct coll_call *call, u32 rank, u32 a, u32 b)
{
	const u32 end = call->ranks - rank;

	return a < end && end < b ? end : b;
}

struct circulant {
	const struct coll_call *call;
	u32 left;		/* blocks that are left: the first ones */
	u32 summed;		/* of these, the first ones are in scratch */
	struct coll_partial sums;	/* there */
	u32 reading[4];		/* sends that read the input */
	u32 readings;
};

/* Where the blocks of a run change their place: the sender's next piece's end. */
static u32 piece_end(const struct circulant *c, u32 sender, u32 a, u32 b)
{
	if (a < c->summed)
		return b < c->summed ? b : c->summed;
	return reduce_scatter_circulant_cut(c->call, sender, a, b);
}

static void coll_emit_exchange_send(struct coll_build *b, struct circulant *c, u32 half)
{
	const struct coll_call *call = c->call;
	const u32 me = call->rank, to = rank_plus(me, half, call->ranks);
	u32 a, end;

	for (a = half; a < c->left; a = end) {
		u32 sent;

		end = piece_end(c, me, a, c->left);
		if (a < c->summed) {
			coll_emit_after(b, c->sums.ready);
			coll_emit_send_nonempty(b, to, c->sums.place + run_bytes(call, me, 0, a),
						run_bytes(call, me, a, end));
		} else {
			sent = coll_emit_send_nonempty(b, to, input_place(call, me, a),
						       run_bytes(call, me, a, end));
			c->reading[c->readings++] = sent;
		}
	}
}

/* The pieces are the sender's; they come to lie together. Returns after the last. */
static u32 coll_emit_exchange_recv(struct coll_build *b, const struct circulant *c, u32 half,
				   u64 theirs)
{
	const struct coll_call *call = c->call;
	const u32 from = rank_minus(call->rank, half, call->ranks);
	u32 received[4], count = 0, a, end, i;

	for (a = half; a < c->left; a = end) {
		end = piece_end(c, from, a, c->left);
		received[count++] = coll_emit_recv_nonempty(b, from,
							    theirs + run_bytes(call, from, half, a),
							    run_bytes(call, from, a, end));
	}
	for (i = 0; i < count; i++)
		coll_emit_after(b, received[i]);
	return coll_emit_join(b);
}

/* The first `count` blocks: what came is added to what I have. */
static void emit_add(struct coll_build *b, struct circulant *c, u64 theirs, u32 received,
		     u32 count)
{
	const struct coll_call *call = c->call;
	u32 a, end;

	coll_emit_after(b, c->sums.ready);
	coll_emit_after(b, received);
	if (c->summed) {
		c->sums.ready = coll_emit_reduce(b, c->sums.place, c->sums.place, theirs,
						 run_bytes(call, call->rank, 0, count));
		return;
	}
	for (a = 0; a < count; a = end) {
		const u64 place = theirs + run_bytes(call, call->rank, 0, a);

		end = reduce_scatter_circulant_cut(call, call->rank, a, count);
		c->sums.ready = coll_emit_reduce(b, place, input_place(call, call->rank, a), place,
						 run_bytes(call, call->rank, a, end));
		coll_emit_after(b, c->sums.ready);	/* the next piece, or the join */
	}
	c->sums.ready = coll_emit_join(b);
	c->sums.place = theirs;
	c->summed = count;
}

/* My own block: the last to be added, into OUT. */
static void emit_last(struct coll_build *b, const struct circulant *c, u64 theirs, u32 received)
{
	const struct coll_call *call = c->call;
	const u64 mine = c->summed ? c->sums.place : input_place(call, call->rank, 0);
	u32 i;

	coll_emit_after(b, c->sums.ready);
	coll_emit_after(b, received);
	if (call->in_place)
		for (i = 0; i < c->readings; i++)
			coll_emit_after(b, c->reading[i]);
	coll_emit_reduce_out(b, mine, theirs, theirs, block_bytes(call, call->rank));
}

static void reduce_scatter_circulant_emit(struct coll_build *b, const struct coll_call *call,
					  const struct coll_tuning *tuning)
{
	struct circulant c = { .call = call, .left = call->ranks, .sums.ready = COLL_NONE };

	(void)tuning;
	if (call->ranks == 1)
		coll_emit_single_rank(b, call, block_bytes(call, 0));
	while (c.left > 1) {
		const u32 half = (c.left + 1) / 2, count = c.left - half;
		const u64 theirs = coll_emit_scratch(b, run_bytes(call, call->rank, 0, count));
		const u32 received = coll_emit_exchange_recv(b, &c, half, theirs);

		coll_emit_exchange_send(b, &c, half);
		if (half == 1)
			emit_last(b, &c, theirs, received);
		else
			emit_add(b, &c, theirs, received, count);
		c.left = half;
	}
}

static double reduce_scatter_circulant_cost(const struct coll_call *call,
					    const struct coll_tuning *tuning,
					    const struct coll_machine *m)
{
	const double p = call->ranks, n = block_offset(call, call->ranks);

	(void)tuning;
	return symmetric_cost(call, m,
			      log2_ceil(call->ranks) * m->alpha +
				      (1 - 1 / p) * n * (m->beta + m->gamma));
}

const struct coll_algo coll_reduce_scatter_circulant = {
	.collective = COLL_REDUCE_SCATTER,
	.name = "circulant",
	.about = "circulant graph: ceil(log2 p) messages and fewest bytes for any p",
	.cost = reduce_scatter_circulant_cost,
	.emit = reduce_scatter_circulant_emit,
};

const struct coll_algo coll_reduce_scatter_block_circulant = {
	.collective = COLL_REDUCE_SCATTER_BLOCK,
	.name = "circulant",
	.about = "circulant graph: ceil(log2 p) messages and fewest bytes for any p",
	.cost = reduce_scatter_circulant_cost,
	.emit = reduce_scatter_circulant_emit,
};
