// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Alltoall on a de Bruijn graph of any number of ranks p (Imase, Itoh 1981): the block for the
 * rank u r^D + x takes from u the path that the D digits of x name, in D steps with r messages
 * each. With r = p blocks go straight, D = 1. Between the two, each step has other circuits:
 * Bruck's algorithm with radix r.
 *
 *	D (alpha + p/r n beta)	where each message has a circuit of its own;
 *	one reconfiguration delay if a node has ports for all of them
 *
 * In step t a rank holds of each origin u at most one run of x: those that begin with the t
 * digits of the path from u to it.
 */
#include "algo/circuits/debruijn.h"

struct debruijn_run {
	u32 first, end;		/* x */
};

struct debruijn_held {
	u64 place;		/* of the run's first block */
	u32 ready;
};

struct debruijn_routing {
	struct coll_build *b;
	const struct coll_call *call;
	struct coll_debruijn g;
	u64 bytes;		/* of a block */
	struct debruijn_held *held, *next;	/* per origin */
	u32 packed;		/* in place: what still reads OUT, joined */
};

/* What `rank` holds of `origin` before step t. */
static struct debruijn_run run_of(const struct debruijn_routing *r, u32 t, u32 rank, u32 origin)
{
	const u32 p = r->g.ranks;
	const u64 span = debruijn_power(&r->g, r->g.steps - t);
	const u32 shift = (u32)(origin * (debruijn_power(&r->g, t) % p) % p);
	const u64 first = rank_minus(rank, shift, p) * span;

	if (first >= p)
		return (struct debruijn_run){ p, p };
	return (struct debruijn_run){ first, first + span < p ? first + span : p };
}

/* The part of it whose next digit is this one. */
static struct debruijn_run part_of(const struct debruijn_routing *r, u32 t, struct debruijn_run run,
				   u32 digit)
{
	const u64 span = debruijn_power(&r->g, r->g.steps - t - 1);
	const u64 first = run.first + digit * span, end = first + span;

	if (first >= run.end)
		return (struct debruijn_run){ run.end, run.end };
	return (struct debruijn_run){ first, end < run.end ? end : run.end };
}

/* Blocks that go from one rank to another in step t. */
static u64 blocks_between(const struct debruijn_routing *r, u32 t, u32 from, u32 digit)
{
	u64 blocks = 0;
	u32 origin;

	for (origin = 0; origin < r->g.ranks; origin++) {
		struct debruijn_run part = part_of(r, t, run_of(r, t, from, origin), digit);

		blocks += part.end - part.first;
	}
	return blocks;
}

/* Where block x of mine lies in the input. */
static u64 input_of(const struct debruijn_routing *r, u32 x)
{
	const u32 p = r->g.ranks;
	const u32 start = (u32)(r->call->rank * (debruijn_power(&r->g, r->g.steps) % p) % p);

	return block_to(r->call, (start + x) % p).place;
}

/* Copies a part to `to`; of the input it may lie in two pieces. Returns its op. */
static u32 emit_gathered(struct debruijn_routing *r, u32 t, u32 origin, struct debruijn_run run,
			 struct debruijn_run part, u64 to)
{
	const u64 n = r->bytes, count = part.end - part.first;
	u32 ahead = 0, copied;

	if (t) {
		coll_emit_after(r->b, r->held[origin].ready);
		return coll_emit_copy(
			r->b, to, r->held[origin].place + (part.first - run.first) * n, count * n);
	}
	while (ahead < count &&
	       input_of(r, part.first + ahead) == input_of(r, part.first) + ahead * n)
		ahead++;
	copied = coll_emit_copy(r->b, to, input_of(r, part.first), ahead * n);
	if (ahead == count)
		return copied;
	return emit_both(r->b, copied, coll_emit_copy(r->b, to + ahead * n,
						      input_of(r, part.first + ahead),
						      (count - ahead) * n));
}

/* All that takes this digit, one origin after the other, at `to`. */
static u32 emit_packed(struct debruijn_routing *r, u32 t, u32 digit, u64 to)
{
	const u32 me = r->call->rank;
	u32 packed = COLL_NONE, origin;

	for (origin = 0; origin < r->g.ranks; origin++) {
		const struct debruijn_run run = run_of(r, t, me, origin);
		const struct debruijn_run part = part_of(r, t, run, digit);

		if (part.first == part.end)
			continue;
		packed = emit_both(r->b, packed, emit_gathered(r, t, origin, run, part, to));
		to += (part.end - part.first) * r->bytes;
	}
	return packed;
}

static void note_held(struct debruijn_routing *r, u32 t, u32 from, u32 digit, u64 place, u32 ready)
{
	u32 origin;

	for (origin = 0; origin < r->g.ranks; origin++) {
		const struct debruijn_run part = part_of(r, t, run_of(r, t, from, origin), digit);

		if (part.first == part.end)
			continue;
		r->next[origin] = (struct debruijn_held){ place, ready };
		place += (part.end - part.first) * r->bytes;
	}
}

static void emit_step(struct debruijn_routing *r, u32 t)
{
	const u32 me = r->call->rank, p = r->g.ranks;
	struct debruijn_held *spent = r->held;
	u32 digit, from, packed;

	for (digit = 0; digit < r->g.radix; digit++) {
		const u32 to = debruijn_next(&r->g, me, digit);
		const u64 bytes = blocks_between(r, t, me, digit) * r->bytes;
		u64 message;

		if (!bytes)
			continue;
		message = coll_emit_scratch(r->b, bytes);
		packed = emit_packed(r, t, digit, message);
		if (!t && r->call->in_place)
			r->packed = emit_both(r->b, r->packed, packed);
		if (to == me) {
			note_held(r, t, me, digit, message, packed);
			continue;
		}
		coll_emit_after(r->b, packed);
		coll_emit_send(r->b, to, message, bytes);
	}
	for (from = 0; from < p; from++) {
		const u64 bytes =
			from == me || debruijn_digit(&r->g, from, me) >= r->g.radix
				? 0
				: blocks_between(r, t, from, debruijn_digit(&r->g, from, me)) *
					  r->bytes;
		u64 landing;

		if (!bytes)
			continue;
		landing = coll_emit_scratch(r->b, bytes);
		note_held(r, t, from, debruijn_digit(&r->g, from, me), landing,
			  coll_emit_recv(r->b, from, landing, bytes));
	}
	r->held = r->next;
	r->next = spent;
}

static void alltoall_debruijn_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	const u32 p = call->ranks;
	struct debruijn_routing r = {
		.b = b,
		.call = call,
		.g = debruijn_of(p, debruijn_radix(tuning)),
		.bytes = call_bytes(call),
		.held = b->tables,
		.next = (struct debruijn_held *)b->tables + p,
		.packed = COLL_NONE,
	};
	u32 t, origin;

	if (!r.bytes)
		return;
	if (p == 1) {
		emit_copy_own(b, call);
		return;
	}
	for (t = 0; t < r.g.steps; t++)
		emit_step(&r, t);
	for (origin = 0; origin < p; origin++) {
		coll_emit_after(b, r.held[origin].ready);
		coll_emit_after(b, r.packed);
		coll_emit_copy(b, block_from(call, origin).place, r.held[origin].place, r.bytes);
	}
}

static double alltoall_debruijn_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	const struct coll_debruijn g = debruijn_of(call->ranks, debruijn_radix(tuning));
	const double n = (double)call_bytes(call) * call->ranks;

	return symmetric_cost(
		call, m,
		g.steps * (m->alpha + (g.radix - 1) * m->overhead + n * (m->beta + 2 * m->gamma)));
}

const struct coll_algo coll_alltoall_debruijn = {
	.collective = COLL_ALLTOALL,
	.name = "debruijn",
	.about = "log_r p steps over the same r circuits; r = p: straight",
	.ordered = true,
	.options = "radix",
	.table_bytes = 2 * sizeof(struct debruijn_held),
	.cost = alltoall_debruijn_cost,
	.emit = alltoall_debruijn_emit,
};
