// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Recursive doubling (Hillis, Steele 1986): in round k rank r sends its sum over the ranks
 * (r - 2^k, r] to rank r + 2^k, and puts the sum from rank r - 2^k before its own. Any number of
 * ranks.
 *
 *	ceil(log2 p) (alpha + n beta + n gamma)
 *
 * Nothing is overwritten while it is being sent: a sum is computed where the other operand
 * arrived, and only the last one goes to OUT.
 */
#include "algo/common/partial.h"

static bool has_below(const struct coll_call *call, u32 distance)
{
	return distance <= call->rank;
}

static bool has_above(const struct coll_call *call, u32 distance)
{
	return distance < call->ranks - call->rank;
}

static void emit_scan(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	struct coll_partial sum = partial_input(call);
	u32 distance, first = COLL_NONE;	/* the send that reads my input */

	(void)tuning;
	for (distance = 1; distance < call->ranks; distance *= 2) {
		const bool last = !has_below(call, 2 * distance);
		u32 received = COLL_NONE, sent = COLL_NONE;
		u64 below = out;

		if (has_below(call, distance)) {
			below = coll_emit_scratch(b, n);
			received = coll_emit_recv(b, call->rank - distance, below, n);
		}
		if (has_above(call, distance)) {
			coll_emit_after(b, sum.ready);
			sent = coll_emit_send(b, call->rank + distance, sum.place, n);
		}
		if (distance == 1)
			first = sent;
		if (!has_below(call, distance))
			continue;
		coll_emit_after(b, sum.ready);
		coll_emit_after(b, received);
		if (last && call->in_place)
			coll_emit_after(b, first);
		sum.ready = coll_emit_reduce(b, last ? out : below, below, sum.place, n);
		sum.place = last ? out : below;
	}
	if (!call->rank && !call->in_place)
		coll_emit_copy(b, out, sum.place, n);
}

/*
 * Two sums: with my part, for the ranks above, and without it, the result. In
 * place, the result stays in scratch until my part in OUT has been used.
 */
struct exscan {
	const struct coll_call *call;
	bool detour;
	struct coll_partial with, without;
	u32 sent;	/* the send that reads my input */
	u32 used;	/* the reduction that reads it and the first prefix */
};

/* Computed first, and only if a rank waits for it. */
static void add_with(struct coll_build *b, struct exscan *x, u32 distance,
		     struct coll_partial below)
{
	const u64 n = call_bytes(x->call), next = coll_emit_scratch(b, n);

	coll_emit_after(b, x->with.ready);
	coll_emit_after(b, below.ready);
	x->with.ready = coll_emit_reduce(b, next, below.place, x->with.place, n);
	x->with.place = next;
	if (distance == 1)
		x->used = x->with.ready;
}

static void add_without(struct coll_build *b, struct exscan *x, u32 distance,
			struct coll_partial below)
{
	const bool last = !has_below(x->call, 2 * distance);
	const u64 n = call_bytes(x->call), out = COLL_ADDRESS(COLL_OUT, 0);

	if (distance == 1)
		x->without = below;
	if (distance == 1 && !(last && x->detour))
		return;
	coll_emit_after(b, x->used);
	coll_emit_after(b, below.ready);
	if (last && x->detour)
		coll_emit_after(b, x->sent);
	if (distance == 1) {
		coll_emit_copy(b, out, below.place, n);
		return;
	}
	coll_emit_after(b, x->without.ready);
	x->without.ready = coll_emit_reduce(b, last ? out : x->without.place, below.place,
					    x->without.place, n);
}

static void emit_exscan(struct coll_build *b, const struct coll_call *call,
			const struct coll_tuning *tuning)
{
	const u64 n = call_bytes(call);
	struct exscan x = {
		.call = call,
		.detour = call->in_place && has_above(call, 1),
		.with = partial_input(call),
		.sent = COLL_NONE,
		.used = COLL_NONE,
	};
	u32 distance;

	(void)tuning;
	for (distance = 1; distance < call->ranks; distance *= 2) {
		struct coll_partial below = { COLL_ADDRESS(COLL_OUT, 0), COLL_NONE };
		u32 sent;

		if (has_below(call, distance)) {
			if (distance > 1 || x.detour)
				below.place = coll_emit_scratch(b, n);
			below.ready = coll_emit_recv(b, call->rank - distance, below.place, n);
		}
		if (has_above(call, distance)) {
			coll_emit_after(b, x.with.ready);
			sent = coll_emit_send(b, call->rank + distance, x.with.place, n);
			x.sent = distance == 1 ? sent : x.sent;
		}
		if (!has_below(call, distance))
			continue;
		if (has_above(call, 2 * distance))
			add_with(b, &x, distance, below);
		add_without(b, &x, distance, below);
	}
}

/* Rounds that wait for each other: if p is no power of two, the last one's messages are early. */
static double cost_scan(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m)
{
	(void)tuning;
	return symmetric_cost(call, m,
			      log2_floor(call->ranks) * m->alpha +
				      log2_ceil(call->ranks) * call_bytes(call) *
					      (m->beta + m->gamma));
}

/* The second sum, but for the first round. */
static double cost_exscan(const struct coll_call *call, const struct coll_tuning *tuning,
			  const struct coll_machine *m)
{
	const u32 rounds = log2_ceil(call->ranks);

	return cost_scan(call, tuning, m) +
	       (rounds ? rounds - 1 : 0) * (double)call_bytes(call) * m->gamma;
}

const struct coll_algo coll_scan_doubling = {
	.collective = COLL_SCAN,
	.name = "doubling",
	.about = "recursive doubling: log2 p rounds of the whole vector",
	.ordered = true,
	.cost = cost_scan,
	.emit = emit_scan,
};

const struct coll_algo coll_scan_world = {
	.collective = COLL_SCAN,
	.name = "world",
	.about = "over all ranks as if they were near each other: doubling",
	.ordered = true,
	.cost = cost_scan,
	.emit = emit_scan,
	.baseline = true,
};

const struct coll_algo coll_exscan_doubling = {
	.collective = COLL_EXSCAN,
	.name = "doubling",
	.about = "recursive doubling of two sums: log2 p rounds of the whole vector",
	.ordered = true,
	.cost = cost_exscan,
	.emit = emit_exscan,
};

const struct coll_algo coll_exscan_world = {
	.collective = COLL_EXSCAN,
	.name = "world",
	.about = "over all ranks as if they were near each other: doubling",
	.ordered = true,
	.cost = cost_exscan,
	.emit = emit_exscan,
	.baseline = true,
};
