// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Alltoall on a Cayley graph of k neighbours: a block from v to v g takes the shortest path of
 * g, the same word of generators for all ranks, so in each step all circuits carry nearly the
 * same. That is close to what any graph of k neighbours allows.
 *
 *	D (alpha + (k-1) o) + p l/k n beta	and one reconfiguration delay; l: mean length of a path
 */
#include "algo/circuits/cayley.h"

struct cayley_held {
	u64 place;
	u32 ready;
};

struct cayley_routing {
	struct coll_build *b;
	const struct coll_call *call;
	struct coll_cayley g;
	u64 bytes;		/* of a block */
	struct cayley_held *held;	/* per element: the block that goes its way */
	u32 packed;		/* in place: what still reads OUT, joined */
};

static bool alltoall_cayley_goes(const void *user, u32 element, u32 step, u32 letter)
{
	const struct cayley_routing *r = user;

	return r->g.way[element].level >= step &&
	       coll_cayley_letter(&r->g, element, step) == letter;
}

static void emit_letter_send(void *user, u32 step, u32 letter, u32 blocks)
{
	struct cayley_routing *r = user;
	const u32 to = coll_cayley_product(&r->g, r->call->rank, r->g.generator[letter]);
	const u64 message = coll_emit_scratch(r->b, blocks * r->bytes);
	u32 packed = COLL_NONE, element, i = 0;

	for (element = 1; element < r->g.ranks; element++) {
		if (!alltoall_cayley_goes(r, element, step, letter))
			continue;
		coll_emit_after(r->b, r->held[element].ready);
		packed = emit_both(r->b, packed, coll_emit_copy(r->b, message + i++ * r->bytes,
								r->held[element].place, r->bytes));
	}
	if (step == 1 && r->call->in_place)
		r->packed = emit_both(r->b, r->packed, packed);
	coll_emit_after(r->b, packed);
	coll_emit_send(r->b, to, message, blocks * r->bytes);
}

static void emit_letter_recv(void *user, u32 step, u32 letter, u32 blocks)
{
	struct cayley_routing *r = user;
	const u32 from = coll_cayley_product(&r->g, r->call->rank,
					     coll_cayley_inverse(&r->g, r->g.generator[letter]));
	const u64 landing = coll_emit_scratch(r->b, blocks * r->bytes);
	const u32 come = coll_emit_recv(r->b, from, landing, blocks * r->bytes);
	u32 element, i = 0;

	for (element = 1; element < r->g.ranks; element++)
		if (alltoall_cayley_goes(r, element, step, letter))
			r->held[element] = (struct cayley_held){ landing + i++ * r->bytes, come };
}

static const struct coll_cayley_walk walk = { alltoall_cayley_goes, emit_letter_send,
					      emit_letter_recv };

static void alltoall_cayley_emit(struct coll_build *b, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const u32 p = call->ranks;
	struct cayley_routing r = { .b = b, .call = call, .bytes = call_bytes(call),
			     .packed = COLL_NONE };
	u32 element;

	if (!r.bytes)
		return;
	emit_copy_own(b, call);
	if (p == 1)
		return;
	r.g = coll_cayley_for(call, tuning, b->tables);
	r.held = (struct cayley_held *)((char *)b->tables + p * CAYLEY_TABLE_BYTES);
	for (element = 1; element < p; element++)
		r.held[element] = (struct cayley_held){
			block_to(call, coll_cayley_product(&r.g, call->rank, element)).place,
			COLL_NONE,
		};
	coll_cayley_steps(&r.g, &walk, &r);
	for (element = 1; element < p; element++) {
		const u32 origin =
			coll_cayley_product(&r.g, call->rank, coll_cayley_inverse(&r.g, element));

		coll_emit_after(b, r.held[element].ready);
		coll_emit_after(b, r.packed);
		coll_emit_copy(b, block_from(call, origin).place, r.held[element].place, r.bytes);
	}
}

static double alltoall_cayley_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				   const struct coll_machine *m)
{
	const u32 depth = coll_cayley_depth(call->ranks, tuning);
	const double n = (double)call_bytes(call) * call->ranks;

	return coll_cayley_cost(call, tuning, m, depth * n * (m->beta + 2 * m->gamma));
}

const struct coll_algo coll_alltoall_cayley = {
	.collective = COLL_ALLTOALL,
	.name = "cayley",
	.about = "shortest ways over the same k circuits, all ranks alike",
	.ordered = true,
	.options = "radix",
	.table_bytes = CAYLEY_TABLE_BYTES + sizeof(struct cayley_held),
	.shared = CAYLEY_SHARED,
	.refuses = coll_cayley_refuses,
	.cost = alltoall_cayley_cost,
	.emit = alltoall_cayley_emit,
	.share = coll_cayley_share,
};
