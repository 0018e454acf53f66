// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Allreduce of short vectors on a Cayley graph of k neighbours: each rank's vector goes to all
 * ranks on shortest paths, over circuits that are set up once. Then each rank reduces all
 * vectors in the order of ranks. With bidirectional circuits it has the fewest steps that a few
 * ports allow.
 *
 *	D (alpha + (k-1) o) + p/k n beta + p n gamma	for a graph of diameter D
 */
#include "algo/circuits/cayley.h"
#include "algo/common/partial.h"

struct cayley_gathering {
	struct coll_build *b;
	const struct coll_call *call;
	struct coll_cayley g;
	u64 bytes;
	struct coll_partial *part;	/* per element g: the vector of rank v / g */
};

static bool allreduce_cayley_comes(const void *user, u32 element, u32 step, u32 letter)
{
	const struct cayley_gathering *a = user;

	return a->g.way[element].level == step && a->g.way[element].letter == letter;
}

static void emit_letter_send(void *user, u32 step, u32 letter, u32 parts)
{
	struct cayley_gathering *a = user;
	const u32 to = coll_cayley_product(&a->g, a->call->rank, a->g.generator[letter]);
	const u64 message = coll_emit_scratch(a->b, parts * a->bytes);
	u32 packed = COLL_NONE, element, i = 0;

	for (element = 1; element < a->g.ranks; element++) {
		const struct coll_partial *part = &a->part[a->g.way[element].parent];

		if (!allreduce_cayley_comes(a, element, step, letter))
			continue;
		coll_emit_after(a->b, part->ready);
		packed = emit_both(a->b, packed, coll_emit_copy(a->b, message + i++ * a->bytes,
								part->place, a->bytes));
	}
	coll_emit_after(a->b, packed);
	coll_emit_send(a->b, to, message, parts * a->bytes);
}

static void emit_letter_recv(void *user, u32 step, u32 letter, u32 parts)
{
	struct cayley_gathering *a = user;
	const u32 from = coll_cayley_product(&a->g, a->call->rank,
					     coll_cayley_inverse(&a->g, a->g.generator[letter]));
	const u64 landing = coll_emit_scratch(a->b, parts * a->bytes);
	const u32 come = coll_emit_recv(a->b, from, landing, parts * a->bytes);
	u32 element, i = 0;

	for (element = 1; element < a->g.ranks; element++)
		if (allreduce_cayley_comes(a, element, step, letter))
			a->part[element] = (struct coll_partial){ landing + i++ * a->bytes, come };
}

static const struct coll_cayley_walk walk = { allreduce_cayley_comes, emit_letter_send,
					      emit_letter_recv };

/* The vector of this rank, which is v / g. */
static struct coll_partial part_of(const struct cayley_gathering *a, u32 rank)
{
	return a->part[coll_cayley_product(&a->g, coll_cayley_inverse(&a->g, rank), a->call->rank)];
}

static void emit_sum(struct cayley_gathering *a)
{
	const u64 sums = coll_emit_scratch(a->b, a->bytes);
	struct coll_partial sum = part_of(a, 0);
	u32 rank;

	for (rank = 1; rank < a->g.ranks; rank++) {
		const struct coll_partial part = part_of(a, rank);
		const u64 to = rank + 1 < a->g.ranks ? sums : COLL_ADDRESS(COLL_OUT, 0);

		coll_emit_after(a->b, sum.ready);
		coll_emit_after(a->b, part.ready);
		sum.ready = coll_emit_reduce(a->b, to, sum.place, part.place, a->bytes);
		sum.place = to;
	}
}

static void allreduce_cayley_emit(struct coll_build *b, const struct coll_call *call,
				  const struct coll_tuning *tuning)
{
	const u32 p = call->ranks;
	struct cayley_gathering a = { .b = b, .call = call, .bytes = call_bytes(call) };

	if (!a.bytes || p == 1) {
		coll_emit_single_rank(b, call, a.bytes);
		return;
	}
	a.g = coll_cayley_for(call, tuning, b->tables);
	a.part = (struct coll_partial *)((char *)b->tables + p * CAYLEY_TABLE_BYTES);
	a.part[0] = partial_input(call);
	if (call->in_place) {	/* the result may come while the input is still being sent */
		const u64 kept = coll_emit_scratch(b, a.bytes);

		a.part[0] = (struct coll_partial){ kept, coll_emit_copy(b, kept, a.part[0].place,
									a.bytes) };
	}
	coll_cayley_steps(&a.g, &walk, &a);
	emit_sum(&a);
}

static double allreduce_cayley_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				    const struct coll_machine *m)
{
	const double n = (double)call_bytes(call) * call->ranks;

	return coll_cayley_cost(call, tuning, m, n * (m->beta + 2 * m->gamma));
}

const struct coll_algo coll_allreduce_cayley = {
	.collective = COLL_ALLREDUCE,
	.name = "cayley",
	.about = "all vectors to all over the same k circuits, then reduced: short vectors",
	.ordered = true,
	.options = "radix",
	.table_bytes = CAYLEY_TABLE_BYTES + sizeof(struct coll_partial),
	.shared = CAYLEY_SHARED,
	.refuses = coll_cayley_refuses,
	.cost = allreduce_cayley_cost,
	.emit = allreduce_cayley_emit,
	.share = coll_cayley_share,
};
