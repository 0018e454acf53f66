// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The order of ops of all ranks: which ops are done, in every run, when an op starts. It follows
 * from waits and from messages.
 */
#include <string.h>

#include "verify.h"

enum { WORLD_OPS_MAX = 4096 };	/* the work grows with the square */

/*
 * sure[] gets what is done in every run when op i of a rank starts. `done` may still contain too
 * much, never too little.
 */
static void sure_at_start(const struct world *w, const struct world_order *o, u32 rank, u32 i,
			  u64 *sure)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	const struct coll_op *op = &coll_ops(s)[i];
	u32 k, word;

	memset(sure, 0, o->words * sizeof(u64));
	for (k = 0; k < op->waits; k++) {
		const u64 *way = o->done + (size_t)(o->base[rank] + coll_waits(s)[op->wait + k]) *
					   o->words;
		bool common = op->flags & COLL_WAIT_ANY && k;

		for (word = 0; word < o->words; word++)
			sure[word] = common ? sure[word] & way[word] : sure[word] | way[word];
	}
}

/* Computes done[] of one op again; returns whether it shrank. */
static bool order_improve(const struct world *w, struct world_order *o, u32 rank, u32 i, u64 *sure,
			  u64 *theirs)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	const struct coll_op *op = &coll_ops(s)[i];
	const u32 number = o->base[rank] + i;
	u64 *done = o->done + (size_t)number * o->words;
	bool changed = false;
	u32 word;

	sure_at_start(w, o, rank, i, sure);
	sure[number / 64] |= 1ULL << number % 64;
	if (op->kind == COLL_OP_RECV) {
		sure_at_start(w, o, coll_op_rank(s, op), w->rank[rank].counterpart[i], theirs);
		for (word = 0; word < o->words; word++)
			sure[word] |= theirs[word];
	}
	for (word = 0; word < o->words; word++) {
		changed |= sure[word] != done[word];
		done[word] = sure[word];
	}
	return changed;
}

/*
 * Starts with "everything is done" and shrinks to the greatest fixed point. Ops whose waits form a
 * cycle never start, and would prove anything.
 */
static void order_make(struct world *w, struct world_order *o)
{
	u64 *sure = arena_get(&w->arena, o->words, sizeof(u64));
	u64 *theirs = arena_get(&w->arena, o->words, sizeof(u64));
	bool changed = true;
	u32 rank, i;

	o->done = arena_get(&w->arena, (size_t)o->ops * o->words, sizeof(u64));
	memset(o->done, 0xff, (size_t)o->ops * o->words * sizeof(u64));
	while (changed) {
		changed = false;
		for (rank = 0; rank < w->ranks; rank++)
			for (i = 0; i < w->rank[rank].schedule->ops; i++)
				changed |= order_improve(w, o, rank, i, sure, theirs);
	}
	o->made = true;
}

void order_init(struct world *w, struct world_order *o)
{
	u32 i;

	*o = (struct world_order){ .base = arena_get(&w->arena, w->ranks, sizeof(u32)) };
	for (i = 0; i < w->ranks; i++) {
		o->base[i] = o->ops;
		o->ops += w->rank[i].schedule->ops;
	}
	o->words = (o->ops + 63) / 64;
}

bool order_fits(const struct world_order *o)
{
	return o->ops <= WORLD_OPS_MAX;
}

bool order_is_sure(struct world *w, struct world_order *o, u32 first_rank, u32 first,
		   u32 second_rank, u32 second)
{
	const u32 number = o->base[first_rank] + first, queried = o->base[second_rank] + second;

	if (!o->made) {
		order_make(w, o);
		o->sure = arena_get(&w->arena, o->words, sizeof(u64));
		o->queried = COLL_NONE;
	}
	if (o->queried != queried)
		sure_at_start(w, o, second_rank, second, o->sure);
	o->queried = queried;
	return o->sure[number / 64] >> number % 64 & 1;
}

/* ---- antichains -------------------------------------------------------------- */

struct matching {
	const bool *before;
	u32 count;
	u32 *match, *tried;	/* per item: the earlier item matched with it, + 1 */
};

/* Matches this item with a later one; may rematch others. */
static bool match_later(struct matching *m, u32 thing, u32 round)
{
	u32 later;

	for (later = 0; later < m->count; later++) {
		if (!m->before[(size_t)thing * m->count + later] || m->tried[later] == round)
			continue;
		m->tried[later] = round;
		if (!m->match[later] || match_later(m, m->match[later] - 1, round)) {
			m->match[later] = thing + 1;
			return true;
		}
	}
	return false;
}

/*
 * Dilworth's theorem: the number of items less the size of a maximum matching of each with a later
 * one.
 */
u32 order_at_once(struct world *w, const bool *before, u32 count)
{
	struct matching m = {
		.before = before,
		.count = count,
		.match = arena_get_zero(&w->arena, count, sizeof(u32)),
		.tried = arena_get_zero(&w->arena, count, sizeof(u32)),
	};
	u32 matched = 0, i;

	for (i = 0; i < count; i++)
		matched += match_later(&m, i, i + 1);
	return count - matched;
}
