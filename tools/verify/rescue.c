// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Frozen ranks.
 *
 * The promise of the redundant butterfly, also with relays, for each j <= T: after exchange j the
 * ranks form 2^j classes by the low j bits of their virtual rank (an excess rank belongs to its
 * proxy's class). Freeze any subset of one class, each rank once it has started its sends of
 * exchanges 1 .. j (an excess rank: its vector to its proxy). All other ranks still get the
 * correct result; the frozen ones
 * get it when they continue.
 *
 * With j = T, where no exchange is spare, every subset of small classes is tried. Otherwise the
 * whole class, single ranks and random subsets: the property is monotone (a rank that continues
 * only adds messages), so the whole class is the hardest subset; the others test this reasoning.
 *
 * The promise of the replicas of nodes: of each node so many ranks as replicas_spare() says of the
 * smallest node may be frozen, whichever they are, once they have started to send their vectors, and all
 * others get the result. A node of one rank has none to spare. They are frozen in the same places on all
 * nodes, in places that move on from node to node, and at random.
 *
 * The promise of the option `late`: once the late ranks have started all their sends they may be
 * frozen, and all other ranks get the result. All of them together, and each alone. Of a late rank alone also
 * the links may be bad: nothing that is sent to it arrives, and of what it sends its vector alone, once, or in
 * the leaf-last form to each child of its tree. It gets the result when the rest arrives.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "algo/redundancy/replicas.h"
#include "algo/tuning.h"
#include "verify.h"

enum {
	QUICK_CLASS = 4,	/* every subset of classes up to this size, */
	FULL_CLASS = 8,
	FULL_RANKS = 64,	/* with at most this many ranks */
	SINGLES = 6,		/* else: this many single ranks, */
	RANDOM_PARTS = 2,	/* and random subsets, */
	SOME_CLASSES = 16,	/* and of more ranks only this many classes */
	SPARES_RANDOM = 6,	/* ranks of nodes at random, so often */
};

/* Writes the class's members in ascending order; returns their number. */
static u32 class_members(const struct world *w, u32 j, u32 class, u32 *member)
{
	const struct coll_fold fold = fold_of(w->ranks);
	u32 rank, count = 0;

	for (rank = 0; rank < w->ranks; rank++) {
		u32 host = fold_is_excess(&fold, rank) ? rank + 1 : rank;

		if ((fold_virtual_rank(&fold, host) & ((1u << j) - 1)) == class)
			member[count++] = rank;
	}
	return count;
}

/* The first send to this rank counts towards freezing. */
static void key_send(struct world *w, u32 rank, u32 to)
{
	struct verify_rank *r = &w->rank[rank];
	u32 i;

	for (i = 0; i < r->schedule->ops; i++) {
		const struct coll_op *op = &coll_ops(r->schedule)[i];

		if (op->kind == COLL_OP_SEND && !op->slot &&
		    coll_op_rank(r->schedule, op) == to) {
			r->key[i] = true;
			return;
		}
	}
	world_fail(w, rank, COLL_NONE, "it never sends to rank %u", to);
}

static u32 key_sends(struct world *w, u32 rank, u32 j)
{
	const struct coll_fold fold = fold_of(w->ranks);
	u32 i;

	if (fold_is_excess(&fold, rank)) {
		key_send(w, rank, rank + 1);
		return 1;
	}
	for (i = 0; i < j; i++)
		key_send(w, rank, fold_rank(&fold, fold_virtual_rank(&fold, rank) ^ 1u << i));
	return j;
}

static void words_of_part(struct world *w, u32 class, u32 members, u32 part)
{
	char *words = w->failure.words;
	size_t used = strlen(words);

	snprintf(words + used, sizeof(w->failure.words) - used,
		 " (with %u of the %u ranks of class %u of %u frozen)", part, members, class,
		 1u << w->vcase->frozen_exchanges);
}

static void rescue_part(struct world *w, u32 class, const u32 *member, u32 members,
			const bool *chosen)
{
	const struct arena_mark mark = arena_mark(&w->arena);
	u32 i, part = 0;

	w->mode = (w->mode + 1) % SEND_MODES;
	world_reset(w);
	for (i = 0; i < members; i++) {
		struct verify_rank *r = &w->rank[member[i]];

		part += chosen[i];
		r->to_freeze = chosen[i];
	}
	world_drain(w);
	world_judge(w);
	if (w->failure.failed) {
		words_of_part(w, class, members, part);
		return;
	}
	world_thaw(w);
	world_drain(w);
	world_judge(w);
	if (!w->failure.failed)
		arena_release(&w->arena, mark);
}

static void every_part(struct world *w, u32 class, const u32 *member, u32 members)
{
	bool chosen[32];
	u32 set, i;

	for (set = 1; set < 1u << members && !w->failure.failed; set++) {
		for (i = 0; i < members; i++)
			chosen[i] = set >> i & 1;
		rescue_part(w, class, member, members, chosen);
	}
}

static void some_parts(struct world *w, u32 class, const u32 *member, u32 members)
{
	bool *chosen = arena_get(&w->arena, members, sizeof(bool));
	const u32 singles = members < SINGLES ? members : SINGLES;
	const u32 start = dice_below(&w->random, members);
	u32 part, i;

	for (part = 0; part < 1 + singles + RANDOM_PARTS && !w->failure.failed; part++) {
		for (i = 0; i < members; i++)
			chosen[i] = !part || (part <= singles ?
					      i == (start + part) % members :
					      dice_below(&w->random, 2));
		rescue_part(w, class, member, members, chosen);
		if (members == 1)
			return;
	}
}

static void classes_run(struct world *w, const struct verify_options *options)
{
	const u32 j = w->vcase->frozen_exchanges;
	const u32 small = j != w->vcase->tuning.redundancy || w->ranks > FULL_RANKS ? 1 :
			  options->quick ? QUICK_CLASS : FULL_CLASS;
	u32 *member = arena_get(&w->arena, w->ranks, sizeof(u32));
	const bool sample = w->ranks > FULL_RANKS && 1u << j > SOME_CLASSES;
	const u32 classes = sample ? SOME_CLASSES : 1u << j;
	const u32 start = dice_below(&w->random, 1u << j);
	u32 rank, i;

	for (rank = 0; rank < w->ranks; rank++)
		w->rank[rank].keys = key_sends(w, rank, j);
	for (i = 0; i < classes && !w->failure.failed; i++) {
		u32 class = (start + i) % (1u << j);
		u32 members = class_members(w, j, class, member);

		if (members <= small)
			every_part(w, class, member, members);
		else
			some_parts(w, class, member, members);
	}
}

/* ... and what was held up then. */
static void __attribute__((format(printf, 2, 3))) words_add(struct world *w, const char *format, ...)
{
	const size_t used = strlen(w->failure.words);
	va_list more;

	va_start(more, format);
	vsnprintf(w->failure.words + used, sizeof(w->failure.words) - used, format, more);
	va_end(more);
}

/* Judged while some are held up, and again when nobody is. True: all holds, and the memory since `mark` is free. */
static bool rescue_holds(struct world *w, const struct arena_mark *mark)
{
	world_judge(w);
	if (!w->failure.failed) {
		world_thaw(w);
		world_drain(w);
		world_judge(w);
	}
	if (!w->failure.failed)
		arena_release(&w->arena, *mark);
	return !w->failure.failed;
}

/* Freezes this late rank, or all of them (COLL_NONE). */
static void rescue_late(struct world *w, u32 alone)
{
	const u32 *late = w->vcase->tuning.late;
	const struct arena_mark mark = arena_mark(&w->arena);
	u32 i;

	w->mode = (w->mode + 1) % SEND_MODES;
	world_reset(w);
	for (i = 0; i < COLL_LATE_MAX && late[i] != COLL_NONE; i++)
		w->rank[late[i]].to_freeze = alone == COLL_NONE || alone == late[i];
	world_drain(w);
	if (rescue_holds(w, &mark))
		return;
	if (alone == COLL_NONE)
		words_add(w, " (with the late ranks frozen)");
	else
		words_add(w, " (with rank %u frozen)", alone);
}

/* Its first sends that take its vector: they wait for nothing. */
static u32 vector_sends(const struct world *w, u32 late)
{
	const struct verify_rank *r = &w->rank[late];
	u32 op, sends = 0;

	for (op = 0; op < r->schedule->ops; op++)
		sends += coll_ops(r->schedule)[op].kind == COLL_OP_SEND;
	return sends && !coll_algo_has_option(w->vcase->algo, "radix") ? 1 : sends;
}

/* Its links are bad. Judged without it: it can have finished only if it needs no message. */
static void rescue_links(struct world *w, u32 late)
{
	const struct arena_mark mark = arena_mark(&w->arena);

	w->mode = (w->mode + 1) % SEND_MODES;
	world_reset(w);
	w->cut_off = late;
	w->cut_after = vector_sends(w, late);
	world_drain(w);
	w->rank[late].frozen = true;
	if (!rescue_holds(w, &mark))
		words_add(w, " (with messages of and to rank %u held back)", late);
}

static void late_run(struct world *w)
{
	const u32 *late = w->vcase->tuning.late;
	u32 i, op;

	for (i = 0; i < COLL_LATE_MAX && late[i] != COLL_NONE; i++) {
		struct verify_rank *r = &w->rank[late[i]];

		for (op = r->keys = 0; op < r->schedule->ops; op++) {
			r->key[op] = coll_ops(r->schedule)[op].kind == COLL_OP_SEND;
			r->keys += r->key[op];
		}
	}
	for (i = 0; i < COLL_LATE_MAX && late[i] != COLL_NONE && !w->failure.failed; i++)
		rescue_late(w, late[i]);
	if (!w->failure.failed)
		rescue_late(w, COLL_NONE);
	if (!w->failure.failed && late[1] == COLL_NONE)
		rescue_links(w, late[0]);
}

/* ---- replicas --------------------------------------------------------------- */

/* The sends of its vector count towards the freezing of each rank. */
static void key_vectors(struct world *w, const struct coll_level *nodes)
{
	u32 rank, i;

	for (rank = 0; rank < w->ranks; rank++) {
		const u32 node = nodes->part[rank], first = nodes->first[node];
		const u32 size = nodes->first[node + 1] - first;

		w->rank[rank].keys = 0;
		for (i = 0; i < replicas_of(&w->vcase->tuning, size); i++)
			if (nodes->member[first + i] != rank) {
				key_send(w, rank, nodes->member[first + i]);
				w->rank[rank].keys++;
			}
	}
}

/* How many ranks of a node may be frozen: as its smallest partner may have, but one alone has none. */
static u32 spares_of(const struct world *w, const struct coll_level *nodes)
{
	u32 least = ~0u, node;

	for (node = 0; node < nodes->parts; node++) {
		const u32 size = nodes->first[node + 1] - nodes->first[node];
		const u32 replicas = replicas_of(&w->vcase->tuning, size);

		least = replicas > 1 && replicas < least ? replicas : least;
	}
	return least == ~0u ? 0 : replicas_spare(least);
}

/* Freezes as many ranks of a node: neighbours, or any (COLL_NONE). */
static void freeze_spares(struct world *w, const struct coll_level *nodes, u32 node, u32 start)
{
	const u32 first = nodes->first[node], size = nodes->first[node + 1] - first;
	const u32 spares = spares_of(w, nodes);
	u32 i, which;

	for (i = 0; i < spares && size > 1; i++) {
		which = start == COLL_NONE ? dice_below(&w->random, size) : (start + i) % size;
		w->rank[nodes->member[first + which]].to_freeze = true;
	}
}

static void rescue_spares(struct world *w, const struct coll_level *nodes, u32 turn, u32 moves,
			  bool random)
{
	const struct arena_mark mark = arena_mark(&w->arena);
	u32 node;

	w->mode = (w->mode + 1) % SEND_MODES;
	world_reset(w);
	for (node = 0; node < nodes->parts; node++)
		freeze_spares(w, nodes, node,
			      random ? COLL_NONE : turn + node * moves);
	world_drain(w);
	if (rescue_holds(w, &mark))
		return;
	if (random)
		words_add(w, " (with ranks of each node frozen, at random)");
	else
		words_add(w, " (with ranks of each node frozen from its number %u on, %u further from node to "
			  "node)", turn, moves);
}

static void spares_run(struct world *w)
{
	const struct coll_level *nodes = world_nodes(w);
	u32 turn, moves;

	if (!nodes)
		return;
	key_vectors(w, nodes);
	for (moves = 0; moves < 3; moves++)
		for (turn = 0; turn < nodes->largest && turn < SINGLES && !w->failure.failed; turn++)
			rescue_spares(w, nodes, turn, moves, false);
	for (turn = 0; turn < SPARES_RANDOM && !w->failure.failed; turn++)
		rescue_spares(w, nodes, 0, 0, true);
}

void rescue_run(struct world *w, const struct verify_options *options)
{
	if (coll_algo_has_option(w->vcase->algo, "replicas"))
		spares_run(w);
	else if (w->vcase->tuning.late[0] == COLL_NONE)
		classes_run(w, options);
	else
		late_run(w);
}

void barrier_run(struct world *w)
{
	u32 absent, i;

	for (absent = 0; w->ranks > 1 && absent < w->ranks && !w->failure.failed; absent++) {
		const struct arena_mark mark = arena_mark(&w->arena);

		w->mode = (w->mode + 1) % SEND_MODES;
		world_reset(w);
		w->rank[absent].frozen = true;
		world_drain(w);
		for (i = 0; i < w->ranks; i++)
			if (w->rank[i].finished)
				world_fail(w, i, COLL_NONE,
					   "it left the barrier before rank %u entered it", absent);
		world_thaw(w);
		world_drain(w);
		world_judge(w);
		if (!w->failure.failed)
			arena_release(&w->arena, mark);
	}
}
