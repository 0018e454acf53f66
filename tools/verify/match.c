// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Checks of schedules without running them. Each passes coll_check(), has the buffers of its call,
 * works on whole elements, and orders ops that share memory; each message has both ends.
 *
 * The order of ops that share memory is proved for all runs. Random runs, in which a started
 * receive overwrites its buffer and sends read late, would find most of the same races, but by
 * chance. A rank's own waits prove nearly all of the order. Where an *any* wait prevents that, the
 * proof can come through other ranks: a final result that arrives proves that this rank's part was
 * sent. This is tried in small worlds; in large ones the random runs must suffice.
 */
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "verify.h"

/* Bytes [start, end) that an op touches; all buffers share one address space. */
struct touch {
	u64 start, end;
	u32 op;
	bool write;
};

static bool match_check(struct world *w, u32 rank)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	void *work = arena_get(&w->arena, 1, coll_check_bytes(s, s->bytes));
	struct coll_refusal refusal;

	if (!coll_check(s, s->bytes, work, &refusal))
		return true;
	world_fail(w, rank, refusal.op, "the check refuses the schedule: %s", refusal.reason);
	return false;
}

static void match_buffers(struct world *w, u32 rank)
{
	const struct verify_rank *r = &w->rank[rank];
	const u64 *buffer = r->schedule->buffer;

	if (buffer[COLL_IN] != r->want.in_elements * ELEMENT ||
	    buffer[COLL_OUT] != r->want.out_elements * ELEMENT)
		world_fail(w, rank, COLL_NONE,
			   "buffers of %llu and %llu bytes; the call has %llu and %llu",
			   (unsigned long long)buffer[COLL_IN],
			   (unsigned long long)buffer[COLL_OUT],
			   (unsigned long long)r->want.in_elements * ELEMENT,
			   (unsigned long long)r->want.out_elements * ELEMENT);
}

/* Symbols are elements: no range may begin or end inside one. */
static void match_elements(struct world *w, u32 rank)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	const struct coll_op *op = coll_ops(s);
	u32 i;

	for (i = 0; i < s->ops; i++)
		if ((op[i].bytes | op[i].left | op[i].right | op[i].result) % ELEMENT) {
			world_fail(w, rank, i, "cuts an element of %d bytes", ELEMENT);
			return;
		}
}

/* First op per peer (and one past the last), and the ops by peer and slot. */
struct slots {
	u32 *first, *op;
};

static struct slots slots_of(struct world *w, u32 rank, u8 kind)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	const struct coll_op *op = coll_ops(s);
	struct slots slots;
	u32 i;

	slots.first = arena_get(&w->arena, s->peers + 1, sizeof(u32));
	slots.op = arena_get(&w->arena, s->ops, sizeof(u32));
	slots.first[0] = 0;
	for (i = 0; i < s->peers; i++)
		slots.first[i + 1] = slots.first[i] + (kind == COLL_OP_SEND ?
				     coll_peers(s)[i].sends : coll_peers(s)[i].recvs);
	for (i = 0; i < s->ops; i++)
		if (op[i].kind == kind)
			slots.op[slots.first[op[i].peer] + op[i].slot] = i;
	return slots;
}

/* Compares the messages of one rank to one peer with those that the peer expects. */
static void match_pair(struct world *w, u32 from, u32 peer, const struct slots *sends,
		       const struct slots *recvs)
{
	const struct coll_schedule *s = w->rank[from].schedule, *t;
	const u32 to = coll_peers(s)[peer].rank, count = coll_peers(s)[peer].sends;
	u32 back, expected, slot;

	t = w->rank[to].schedule;
	back = coll_peer_find(t, from);
	expected = back == COLL_NONE ? 0 : coll_peers(t)[back].recvs;
	if (count != expected) {
		world_fail(w, from, COLL_NONE,
			   "it sends %u messages to rank %u, which expects %u", count, to,
			   expected);
		return;
	}
	for (slot = 0; slot < count; slot++) {
		u32 a = sends[from].op[sends[from].first[peer] + slot];
		u32 b = recvs[to].op[recvs[to].first[back] + slot];

		w->rank[from].counterpart[a] = b;
		w->rank[to].counterpart[b] = a;
		if (coll_ops(s)[a].bytes != coll_ops(t)[b].bytes)
			world_fail(w, from, a,
				   "its %llu bytes meet a receive of %llu at rank %u, op %u",
				   (unsigned long long)coll_ops(s)[a].bytes,
				   (unsigned long long)coll_ops(t)[b].bytes, to, b);
	}
}

static void match_messages(struct world *w)
{
	struct slots *sends = arena_get(&w->arena, w->ranks, sizeof(*sends));
	struct slots *recvs = arena_get(&w->arena, w->ranks, sizeof(*recvs));
	u32 i, k;

	for (i = 0; i < w->ranks; i++) {
		sends[i] = slots_of(w, i, COLL_OP_SEND);
		recvs[i] = slots_of(w, i, COLL_OP_RECV);
	}
	for (i = 0; i < w->ranks && !w->failure.failed; i++) {
		const struct coll_schedule *s = w->rank[i].schedule;

		for (k = 0; k < s->peers && !w->failure.failed; k++) {
			u32 to = coll_peers(s)[k].rank;

			match_pair(w, i, k, sends, recvs);
			/* A peer sends to this rank, which does not know it. */
			if (coll_peers(s)[k].recvs &&
			    coll_peer_find(w->rank[to].schedule, i) == COLL_NONE)
				world_fail(w, i, COLL_NONE,
					   "it expects messages from rank %u, which sends none",
					   to);
		}
	}
}

/* ---- ops that share memory ---------------------------------------------- */

static int touch_order(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static u32 touches_of(const struct coll_schedule *s, struct touch *touch)
{
	const struct coll_op *op = coll_ops(s);
	u32 i, n = 0;

	for (i = 0; i < s->ops; i++) {
		const u8 kind = op[i].kind;
		const u64 bytes = op[i].bytes;

		if (!bytes)
			continue;
		if (kind != COLL_OP_RECV)
			touch[n++] = (struct touch){ op[i].left, op[i].left + bytes, i, false };
		if (kind == COLL_OP_REDUCE)
			touch[n++] = (struct touch){ op[i].right, op[i].right + bytes, i, false };
		if (kind != COLL_OP_SEND)
			touch[n++] = (struct touch){ op[i].result, op[i].result + bytes, i, true };
	}
	return n;
}

/*
 * before[i]: the ops that are done in every run when op i starts; `words` words each. Of an *any*
 * wait only what all its alternatives have in common counts.
 */
u64 *order_in_rank(struct world *w, const struct coll_schedule *s, u32 words)
{
	u64 *before = arena_get_zero(&w->arena, (size_t)s->ops * words, sizeof(u64));
	u64 *way = arena_get(&w->arena, words, sizeof(u64));
	u32 i, k, word;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		u64 *mine = before + (size_t)i * words;

		for (k = 0; k < op->waits; k++) {
			u32 earlier = coll_waits(s)[op->wait + k];
			bool common = op->flags & COLL_WAIT_ANY && k;

			memcpy(way, before + (size_t)earlier * words, words * sizeof(u64));
			way[earlier / 64] |= 1ULL << earlier % 64;
			for (word = 0; word < words; word++)
				mine[word] = common ? mine[word] & way[word] :
						      mine[word] | way[word];
		}
	}
	return before;
}

static bool is_local(const struct coll_op *op)
{
	return op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY;
}

static bool waits_for(const struct coll_schedule *s, const struct coll_op *op, u32 other)
{
	u32 k;

	for (k = 0; k < op->waits; k++)
		if (coll_waits(s)[op->wait + k] == other)
			return true;
	return false;
}

/* Whether an op waits for `writer` or an alternative, directly or through a join. */
static bool waits_for_way(const struct coll_schedule *s, const struct coll_op *op, u32 writer)
{
	u32 k;

	if (op->flags & COLL_WAIT_ANY)
		return waits_for(s, op, writer);
	for (k = 0; k < op->waits; k++) {
		const struct coll_op *join = &coll_ops(s)[coll_waits(s)[op->wait + k]];

		if (join->flags & COLL_WAIT_ANY && waits_for(s, join, writer))
			return true;
	}
	return false;
}

/*
 * Alternative ways to the same contents, as in the redundant butterfly: `writer` is one, and
 * `other` is another one to the same address, or an op that needs any one of them. Whether the
 * alternatives agree is checked whenever one is executed.
 */
static bool is_redundant(const struct coll_schedule *s, u32 writer, u32 other, bool other_writes)
{
	const struct coll_op *a = &coll_ops(s)[writer], *b = &coll_ops(s)[other];

	if (!(a->flags & COLL_OPTIONAL) || !is_local(a))
		return false;
	if (other_writes)
		return b->flags & COLL_OPTIONAL && is_local(b) && a->result == b->result &&
		       a->bytes == b->bytes;
	return waits_for_way(s, b, writer);
}

/* ---- order through other ranks ------------------------------------------ */

static bool has_any_wait(const struct coll_schedule *s)
{
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].flags & COLL_WAIT_ANY)
			return true;
	return false;
}

/* Whether `first` is done in every run when `second` starts, through other ranks. */
static bool is_ordered_by_others(struct world *w, struct world_order *o, u32 rank, u32 first,
				 u32 second)
{
	if (!has_any_wait(w->rank[rank].schedule))
		return false;
	return !order_fits(o) || order_is_sure(w, o, rank, first, rank, second);
}

static void match_overlap(struct world *w, struct world_order *order, u32 rank, const u64 *before,
			  u32 words, const struct touch *x, const struct touch *y)
{
	struct verify_rank *r = &w->rank[rank];
	const struct touch *first = x->op < y->op ? x : y, *second = x->op < y->op ? y : x;

	if (first->op == second->op || (!x->write && !y->write))
		return;
	if (before[(size_t)second->op * words + first->op / 64] >> first->op % 64 & 1)
		return;
	if (first->write && is_redundant(r->schedule, first->op, second->op, second->write)) {
		r->redundant[first->op] = true;
		if (second->write)
			r->redundant[second->op] = true;
		return;
	}
	if (is_ordered_by_others(w, order, rank, first->op, second->op))
		return;
	world_fail(w, rank, second->op,
		   "it %s memory that op %u %s; the two are not ordered",
		   second->write ? "writes" : "reads", first->op,
		   first->write ? "writes" : "reads");
}

static void match_order(struct world *w, struct world_order *order, u32 rank)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	const u32 words = (s->ops + 63) / 64;
	struct touch *touch = arena_get(&w->arena, 3 * (size_t)s->ops, sizeof(*touch));
	const u64 *before = order_in_rank(w, s, words);
	const u32 n = touches_of(s, touch);
	u32 i, k;

	qsort(touch, n, sizeof(*touch), touch_order);
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n && touch[k].start < touch[i].end; k++)
			match_overlap(w, order, rank, before, words, &touch[i], &touch[k]);
}

void match_schedules(struct world *w)
{
	struct world_order order;
	u32 i;

	for (i = 0; i < w->ranks; i++) {
		if (!match_check(w, i))
			return;
		match_buffers(w, i);
		match_elements(w, i);
	}
	if (w->failure.failed)
		return;
	match_messages(w);
	order_init(w, &order);
	for (i = 0; i < w->ranks && !w->failure.failed; i++)
		match_order(w, &order, i);
	if (!w->failure.failed)
		match_links(w, &order);
	if (!w->failure.failed)
		match_circuits(w, &order);
}
