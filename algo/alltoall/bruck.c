// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Bruck (Bruck, Ho, Kipnis, Upfal, Weathersby 1997): the block for the rank i above travels 2^k
 * ranks up in round k for each bit k that is set in i, together with all other blocks of that
 * round. For short blocks.
 *
 *	ceil(log2 p) (alpha + p/2 B (beta + gamma)) + p B gamma	for B bytes per block
 *
 * A block on its way stays where it was received until it is packed for its next round, so it
 * is copied once per round and once at the end. alltoallv pads each block to `bound` elements,
 * since ranks on the way do not know its size. The bytes of a block beyond the bound go
 * straight to their rank, since only the two ends know of them: so no rank refuses a call that
 * others accept.
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

struct bruck {
	const struct coll_call *call;
	u64 bytes;			/* of a block on its way */
	u32 rounds;
	u64 landing[LOG2_RANKS_MAX];	/* per round: where its blocks were received */
	u32 received[LOG2_RANKS_MAX];
	u32 packed[LOG2_RANKS_MAX];
};

/* How many of the blocks below i travel in round k. */
static u32 alltoall_bruck_travellers(u32 i, u32 k)
{
	u32 rest = i & ((2u << k) - 1);

	return (i >> (k + 1) << k) + (rest > 1u << k ? rest - (1u << k) : 0);
}

/* Where block i is when it has travelled in round k. */
static u64 alltoall_bruck_landed(const struct bruck *bruck, u32 i, u32 k)
{
	return bruck->landing[k] + alltoall_bruck_travellers(i, k) * bruck->bytes;
}

/* The part of a block that travels with the others. */
static struct coll_block block_head(const struct bruck *bruck, struct coll_block block)
{
	if (block.bytes > bruck->bytes)
		block.bytes = bruck->bytes;
	return block;
}

/* The part of it that goes straight to its rank. */
static struct coll_block block_tail(const struct bruck *bruck, struct coll_block block)
{
	const u64 head = block_head(bruck, block).bytes;

	return (struct coll_block){ block.place + head, block.bytes - head };
}

/* Copies block i from where it lies before round k to its place in the message. */
static u32 emit_pack_one(struct coll_build *b, const struct bruck *bruck, u32 i, u32 k, u64 message)
{
	const struct coll_call *call = bruck->call;
	u32 travelled = i & ((1u << k) - 1), last;
	struct coll_block block;

	message += alltoall_bruck_travellers(i, k) * bruck->bytes;
	if (travelled) {
		last = log2_floor(travelled);
		coll_emit_after(b, bruck->received[last]);
		return coll_emit_copy(b, message, alltoall_bruck_landed(bruck, i, last),
				      bruck->bytes);
	}
	block = block_head(bruck, block_to(call, rank_plus(call->rank, i, call->ranks)));
	return block.bytes ? coll_emit_copy(b, message, block.place, block.bytes) : COLL_NONE;
}

static void emit_round(struct coll_build *b, struct bruck *bruck, u32 k)
{
	const struct coll_call *call = bruck->call;
	const u32 p = call->ranks, count = alltoall_bruck_travellers(p, k);
	const u64 message = coll_emit_scratch(b, count * bruck->bytes);
	u32 first = COLL_NONE, copies = 0, i;

	bruck->landing[k] = coll_emit_scratch(b, count * bruck->bytes);
	bruck->received[k] = coll_emit_recv(b, rank_minus(call->rank, 1u << k, p),
					    bruck->landing[k], count * bruck->bytes);
	for (i = 1u << k; i < p; i = (i + 1) | 1u << k) {
		u32 copied = emit_pack_one(b, bruck, i, k, message);

		if (first == COLL_NONE)
			first = copied;
		copies += copied != COLL_NONE;
	}
	for (i = 0; i < copies; i++)	/* they follow each other in the list */
		coll_emit_after(b, first + i);
	bruck->packed[k] = coll_emit_join(b);
	coll_emit_after(b, bruck->packed[k]);
	coll_emit_send(b, rank_plus(call->rank, 1u << k, p), message, count * bruck->bytes);
}

/* Block i now is what the rank i below has sent me. */
static void emit_unpack_all(struct coll_build *b, const struct bruck *bruck)
{
	const struct coll_call *call = bruck->call;
	u32 i, k;

	for (i = 1; i < call->ranks; i++) {
		u32 last = log2_floor(i);
		struct coll_block block = block_from(call, rank_minus(call->rank, i, call->ranks));

		block = block_head(bruck, block);
		if (!block.bytes)
			continue;
		coll_emit_after(b, bruck->received[last]);
		for (k = 0; call->in_place && k < bruck->rounds; k++)
			coll_emit_after(b, bruck->packed[k]);
		coll_emit_copy(b, block.place, alltoall_bruck_landed(bruck, i, last), block.bytes);
	}
}

/* In place what goes is set aside, for what comes takes its place. */
static void emit_tails(struct coll_build *b, const struct bruck *bruck)
{
	const struct coll_call *call = bruck->call;
	u32 distance;

	for (distance = 1; distance < call->ranks; distance++) {
		u32 above = rank_plus(call->rank, distance, call->ranks), copied = COLL_NONE;
		struct coll_block to = block_tail(bruck, block_to(call, above));
		u64 kept = to.place;

		if (!to.bytes)
			continue;
		if (call->in_place) {
			kept = coll_emit_scratch(b, to.bytes);
			copied = coll_emit_copy(b, kept, to.place, to.bytes);
			coll_emit_after(b, copied);
			coll_emit_recv(b, above, to.place, to.bytes);
		}
		coll_emit_after(b, copied);
		coll_emit_send(b, above, kept, to.bytes);
	}
	for (distance = 1; distance < call->ranks && !call->in_place; distance++) {
		u32 below = rank_minus(call->rank, distance, call->ranks);
		struct coll_block from = block_tail(bruck, block_from(call, below));

		if (from.bytes)
			coll_emit_recv(b, below, from.place, from.bytes);
	}
}

static u64 padded_bytes(const struct coll_call *call, const struct coll_tuning *tuning)
{
	return call->collective == COLL_ALLTOALL ? call_bytes(call) : tuning->bound * call->element;
}

static void alltoall_bruck_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	struct bruck bruck = {
		.call = call,
		.bytes = padded_bytes(call, tuning),
		.rounds = log2_ceil(call->ranks),
	};
	u32 k;

	emit_copy_own(b, call);
	for (k = 0; bruck.bytes && k < bruck.rounds; k++)
		emit_round(b, &bruck, k);
	if (bruck.bytes)
		emit_unpack_all(b, &bruck);
	emit_tails(b, &bruck);
}

static const char *alltoall_bruck_refuses(const struct coll_call *call,
					  const struct coll_tuning *tuning)
{
	if (tuning->bound == COLL_UNSET)
		return "it needs the option `bound`: elements of a block that travel in rounds";
	if (tuning->bound > COLL_BYTES_MAX / call->element / call->ranks)
		return "`bound` is larger than any buffer";
	return NULL;
}

static double alltoall_bruck_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const double n = (double)call->ranks * padded_bytes(call, tuning);

	return symmetric_cost(call, m,
			      log2_ceil(call->ranks) * (m->alpha + n / 2 * (m->beta + m->gamma)) +
				      n * m->gamma);
}

const struct coll_algo coll_alltoall_bruck = {
	.collective = COLL_ALLTOALL,
	.name = "bruck",
	.about = "log2 p rounds of half the blocks: short blocks",
	.ordered = true,
	.cost = alltoall_bruck_cost,
	.emit = alltoall_bruck_emit,
};

const struct coll_algo coll_alltoallv_bruck = {
	.collective = COLL_ALLTOALLV,
	.name = "bruck",
	.about = "log2 p rounds of half the blocks, padded to `bound` elements: short blocks",
	.ordered = true,
	.options = "bound",
	.refuses = alltoall_bruck_refuses,
	.cost = alltoall_bruck_cost,
	.emit = alltoall_bruck_emit,
};
