// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circuits. A *session* of a node is a connect and the next release of the same circuit. The i-th
 * session of one end is the i-th of the other. A message without bytes is a signal and needs no
 * circuit.
 */
#include <string.h>

#include "verify.h"

enum { BOTH, OUT, IN, WAYS };

static u32 way_of(const struct coll_op *op)
{
	return op->flags & COLL_CIRCUIT_OUT ? OUT : op->flags & COLL_CIRCUIT_IN ? IN : BOTH;
}

/* The same circuit as seen from the other end. */
static u32 way_back(u32 way)
{
	return way == OUT ? IN : way == IN ? OUT : BOTH;
}

static u32 circuits_wavelengths(const struct world *w)
{
	const u64 most = w->vcase->tuning.wavelengths;

	return most < COLL_NONE ? most : COLL_NONE;
}

/* ---- in a run ------------------------------------------------------------- */

void verify_circuits_reset(struct world *w)
{
	u32 i;

	w->circuits_up = 0;
	for (i = 0; i < w->ranks && w->ports; i++) {
		memset(w->rank[i].circuit_end, 0, w->ranks * sizeof(*w->rank[i].circuit_end));
		w->rank[i].held[0] = w->rank[i].held[1] = 0;
	}
}

void verify_circuits_connect(struct world *w, u32 rank, u32 op)
{
	const u32 peer = world_partner(w, rank, op), way = way_of(world_op(w, rank, op));
	struct circuit_end *mine, *theirs;
	u32 held;

	if (!w->ports) {
		world_add_item(w, ITEM_UP, rank, op);
		return;
	}
	mine = &w->rank[rank].circuit_end[peer];
	theirs = &w->rank[peer].circuit_end[rank];
	if (mine->way[way].requested)
		world_fail(w, rank, op, "it requests a circuit that it has");
	mine->way[way].requested = true;
	mine->way[way].connect = op;
	held = ++w->rank[rank].held[way == IN];
	if (held > w->ports[rank])
		world_fail(w, rank, op, "it requests %u circuits at once; k is %u", held,
			   w->ports[rank]);
	/* Up when both ends have requested it, and both have released the one before. */
	if (!theirs->way[way_back(way)].requested || theirs->way[way_back(way)].up)
		return;
	mine->way[way].up = theirs->way[way_back(way)].up = true;
	if (++w->circuits_up > circuits_wavelengths(w))
		world_fail(w, rank, op, "it needs %u circuits at once; there are %u wavelengths",
			   w->circuits_up, circuits_wavelengths(w));
	world_add_item(w, ITEM_UP, rank, op);
	world_add_item(w, ITEM_UP, peer, theirs->way[way_back(way)].connect);
}

void verify_circuits_release(struct world *w, u32 rank, u32 op)
{
	const u32 peer = world_partner(w, rank, op), way = way_of(world_op(w, rank, op));
	struct circuit_end *mine, *theirs;

	if (!w->ports)
		return;
	mine = &w->rank[rank].circuit_end[peer];
	theirs = &w->rank[peer].circuit_end[rank];
	if (!mine->way[way].requested) {
		world_fail(w, rank, op, "it releases a circuit that it has not requested");
		return;
	}
	mine->way[way].requested = false;
	w->rank[rank].held[way == IN]--;
	if (mine->way[way].up && !theirs->way[way_back(way)].up)
		w->circuits_up--;	/* the other end has released it already */
	mine->way[way].up = false;
}

static bool is_held(const struct world *w, u32 rank, u32 peer, u32 way, bool up)
{
	const struct circuit_end *circuit_end = &w->rank[rank].circuit_end[peer];

	return up ? circuit_end->way[way].up || circuit_end->way[BOTH].up :
		    circuit_end->way[way].requested || circuit_end->way[BOTH].requested;
}

void verify_circuits_send(struct world *w, u32 rank, u32 op)
{
	const u32 peer = world_partner(w, rank, op);

	if (w->ports && world_op(w, rank, op)->bytes && !is_held(w, rank, peer, OUT, true))
		world_fail(w, rank, op, "it sends to rank %u, to which no circuit is up", peer);
}

void verify_circuits_arrive(struct world *w, u32 rank, u32 op)
{
	const u32 peer = world_partner(w, rank, op);

	if (w->ports && world_op(w, rank, op)->bytes && !is_held(w, rank, peer, IN, false))
		world_fail(w, rank, op,
			   "its message arrives after the release of the circuit to rank %u", peer);
}

/* ---- proved for all runs ------------------------------------------------------ */

struct span {
	u32 peer, way;
	u32 connect, release;
	u32 number;		/* index among those with this peer and direction */
};

struct spans {
	struct span *span;
	u32 count;
	u64 *before;		/* order_in_rank() */
	u32 words;
};

static bool is_before(const struct spans *spans, u32 first, u32 second)
{
	return spans->before[(size_t)second * spans->words + first / 64] >> first % 64 & 1;
}

static bool find_spans(struct world *w, u32 rank, struct spans *spans)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	u32 i, k;

	spans->words = (s->ops + 63) / 64;
	spans->before = order_in_rank(w, s, spans->words);
	spans->span = arena_get(&w->arena, s->ops, sizeof(*spans->span));
	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = world_op(w, rank, i);
		struct span *last = NULL;

		if (op->kind != COLL_OP_CONNECT && op->kind != COLL_OP_RELEASE)
			continue;
		for (k = spans->count; k-- > 0 && !last;)
			if (spans->span[k].peer == world_partner(w, rank, i) &&
			    spans->span[k].way == way_of(op))
				last = &spans->span[k];
		if (op->kind == COLL_OP_CONNECT) {
			if (last && (last->release == COLL_NONE ||
				     !is_before(spans, last->release, i)))
				world_fail(w, rank, i, "it requests a circuit that it may have");
			spans->span[spans->count++] = (struct span){
				world_partner(w, rank, i), way_of(op), i, COLL_NONE,
				last ? last->number + 1 : 0
			};
		} else if (!last || last->release != COLL_NONE ||
			   !is_before(spans, last->connect, i)) {
			world_fail(w, rank, i, "it releases a circuit that it may not have");
		} else {
			last->release = i;
		}
		if (w->failure.failed)
			return false;
	}
	for (i = 0; i < spans->count; i++)
		if (spans->span[i].release == COLL_NONE) {
			world_fail(w, rank, spans->span[i].connect,
				   "it requests a circuit and never releases it");
			return false;
		}
	return true;
}

/* The session that contains a message, or NULL. */
static const struct span *span_of(struct world *w, u32 rank, u32 index,
				  const struct spans *spans)
{
	const struct coll_op *op = world_op(w, rank, index);
	const u32 way = op->kind == COLL_OP_SEND ? OUT : IN;
	u32 i;

	for (i = 0; i < spans->count; i++) {
		const struct span *span = &spans->span[i];

		if (span->peer != world_partner(w, rank, index) ||
		    (span->way != BOTH && span->way != way) ||
		    !is_before(spans, index, span->release))
			continue;
		/*
		 * At the sender the circuit must be up. At the receiver it must not be released
		 * before.
		 */
		return way == IN || is_before(spans, span->connect, index) ? span : NULL;
	}
	return NULL;
}

static void match_messages_of(struct world *w, u32 rank, const struct spans *all)
{
	u32 i;

	for (i = 0; i < w->rank[rank].schedule->ops && !w->failure.failed; i++) {
		const struct coll_op *op = world_op(w, rank, i);
		const u32 peer = world_partner(w, rank, i), other = w->rank[rank].counterpart[i];
		const struct span *here, *there;

		if (op->kind != COLL_OP_SEND || !op->bytes)
			continue;
		here = span_of(w, rank, i, &all[rank]);
		there = span_of(w, peer, other, &all[peer]);
		if (!here)
			world_fail(w, rank, i, "it sends to rank %u without a circuit", peer);
		else if (!there)
			world_fail(w, peer, other,
				   "the circuit from rank %u may be released before it is done",
				   rank);
		else if (here->number != there->number || here->way != way_back(there->way))
			world_fail(w, rank, i,
				   "it uses circuit %u to rank %u, which takes it from circuit %u",
				   here->number, peer, there->number);
	}
}

/* Both ends must have the same number of sessions of a circuit. */
static void match_ends(struct world *w, u32 rank, const struct spans *all)
{
	u32 i, k, last;

	for (i = 0; i < all[rank].count && !w->failure.failed; i++) {
		const struct span *span = &all[rank].span[i];
		const struct spans *theirs = &all[span->peer];

		last = COLL_NONE;
		for (k = 0; k < theirs->count; k++)
			if (theirs->span[k].peer == rank &&
			    theirs->span[k].way == way_back(span->way))
				last = theirs->span[k].number;
		if (last == COLL_NONE || last < span->number)
			world_fail(w, rank, span->connect,
				   "it requests a circuit to rank %u, which does not", span->peer);
	}
}

static void match_ports(struct world *w, u32 rank, const struct spans *spans)
{
	bool *before = arena_get(&w->arena, (size_t)spans->count * spans->count, sizeof(bool));
	u32 *mine = arena_get(&w->arena, spans->count, sizeof(u32)), count, most, side, i, k;

	for (side = 0; side < 2; side++) {
		for (i = count = 0; i < spans->count; i++)
			if ((spans->span[i].way == IN) == side)
				mine[count++] = i;
		for (i = 0; i < count; i++)
			for (k = 0; k < count; k++)
				before[(size_t)i * count + k] =
					is_before(spans, spans->span[mine[i]].release,
						  spans->span[mine[k]].connect);
		most = count > w->ports[rank] ? order_at_once(w, before, count) : 0;
		if (most > w->ports[rank])
			world_fail(w, rank, COLL_NONE,
				   "up to %u circuits can be requested at once; k is %u", most,
				   w->ports[rank]);
	}
}

static bool released_before(struct world *w, struct world_order *order, const u32 *one,
			    const u32 *other, const struct spans *all)
{
	/*
	 * one session: rank, span, peer's rank, peer's span; up when both ends of `other` have
	 * requested it
	 */
	u32 side, end;

	for (end = 0; end < 4; end += 2) {
		for (side = 0; side < 4; side += 2)
			if (!order_is_sure(w, order, one[side],
					   all[one[side]].span[one[side + 1]].release, other[end],
					   all[other[end]].span[other[end + 1]].connect))
				break;
		if (side == 4)
			return true;
	}
	return false;
}

/* Each circuit once: from its sender, or in duplex from the lower rank. */
static void match_wavelengths(struct world *w, struct world_order *order, const struct spans *all)
{
	u32 (*circuit)[4], count = 0, rank, most, i, k;
	bool *before;

	for (rank = 0; rank < w->ranks; rank++)
		count += all[rank].count;
	circuit = arena_get(&w->arena, count, sizeof(*circuit));
	for (count = rank = 0; rank < w->ranks; rank++)
		for (i = 0; i < all[rank].count; i++) {
			const struct span *span = &all[rank].span[i];

			if (span->way == IN || (span->way == BOTH && span->peer < rank))
				continue;
			for (k = 0; k < all[span->peer].count; k++) {
				const struct span *back = &all[span->peer].span[k];

				if (back->peer == rank && back->way == way_back(span->way) &&
				    back->number == span->number)
					break;
			}
			circuit[count][0] = rank;
			circuit[count][1] = i;
			circuit[count][2] = span->peer;
			circuit[count++][3] = k;
		}
	before = arena_get(&w->arena, (size_t)count * count, sizeof(bool));
	for (k = 0; k < count; k++)
		for (i = 0; i < count; i++)
			before[(size_t)i * count + k] =
				i != k &&
				released_before(w, order, circuit[i], circuit[k], all);
	most = order_at_once(w, before, count);
	if (most > circuits_wavelengths(w))
		world_fail(w, COLL_NONE, COLL_NONE,
			   "up to %u circuits can be up at once; there are %u wavelengths", most,
			   circuits_wavelengths(w));
}

void match_circuits(struct world *w, struct world_order *order)
{
	struct spans *all;
	u32 i;

	if (!w->ports)
		return;
	all = arena_get_zero(&w->arena, w->ranks, sizeof(*all));
	for (i = 0; i < w->ranks; i++)
		if (!find_spans(w, i, &all[i]))
			return;
	for (i = 0; i < w->ranks && !w->failure.failed; i++)
		match_ends(w, i, all);
	for (i = 0; i < w->ranks && !w->failure.failed; i++)
		match_messages_of(w, i, all);
	for (i = 0; i < w->ranks && !w->failure.failed; i++)
		match_ports(w, i, &all[i]);
	if (!w->failure.failed && circuits_wavelengths(w) != COLL_NONE && order_fits(order))
		match_wavelengths(w, order, all);
}
