// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "partial.h"

u32 coll_emit_send_nonempty(struct coll_build *b, u32 peer, u64 from, u64 bytes)
{
	return bytes ? coll_emit_send(b, peer, from, bytes) : coll_emit_join(b);
}

u32 coll_emit_recv_nonempty(struct coll_build *b, u32 peer, u64 to, u64 bytes)
{
	return bytes ? coll_emit_recv(b, peer, to, bytes) : coll_emit_join(b);
}

void coll_emit_single_rank(struct coll_build *b, const struct coll_call *call, u64 bytes)
{
	if (!call->in_place)
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), bytes);
}

/* Whether the two ranges share bytes without being the same. */
static bool overlaps_askew(u64 a, u64 b, u64 bytes)
{
	return a != b && (a > b ? a - b : b - a) < bytes;
}

u32 coll_emit_reduce_out(struct coll_build *b, u64 left, u64 right, u64 spare, u64 bytes)
{
	const u64 out = COLL_ADDRESS(COLL_OUT, 0);

	if (!overlaps_askew(left, out, bytes) && !overlaps_askew(right, out, bytes))
		return coll_emit_reduce(b, out, left, right, bytes);
	coll_emit_after(b, coll_emit_reduce(b, spare, left, right, bytes));
	return coll_emit_copy(b, out, spare, bytes);
}

void coll_emit_excess_rank(struct coll_build *b, const struct coll_call *call, u32 proxy, u64 mine,
			   u64 out)
{
	u32 sent = coll_emit_send(b, proxy, mine, call_bytes(call));

	if (mine == out)
		coll_emit_after(b, sent);
	coll_emit_recv(b, proxy, out, call_bytes(call));
}

struct coll_partial coll_emit_proxy(struct coll_build *b, const struct coll_call *call,
				    u32 excess_rank, u64 mine, u64 out)
{
	const u64 n = call_bytes(call), theirs = coll_emit_scratch(b, n);
	struct coll_partial sum = { out == COLL_ANYWHERE ? theirs : out, COLL_NONE };
	u32 received = coll_emit_recv(b, excess_rank, theirs, n);

	coll_emit_after(b, received);
	if (excess_rank < call->rank)
		sum.ready = coll_emit_reduce(b, sum.place, theirs, mine, n);
	else
		sum.ready = coll_emit_reduce(b, sum.place, mine, theirs, n);
	return sum;
}

/* The vector of a rank: mine where it is, another's at `to`, or in scratch. */
static struct coll_partial emit_part(struct coll_build *b, const struct coll_call *call, u32 rank, u64 to)
{
	struct coll_partial part = partial_input(call);

	if (rank == call->rank)
		return part;
	part.place = to == COLL_ANYWHERE ? coll_emit_scratch(b, call_bytes(call)) : to;
	part.ready = coll_emit_recv(b, rank, part.place, call_bytes(call));
	return part;
}

struct coll_partial coll_emit_sum(struct coll_build *b, const struct coll_call *call, u32 ranks,
				  u32 reading)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	/* In place OUT has my part: it is written last. */
	const bool kept = call->in_place && (call->rank < ranks || reading != COLL_NONE);
	struct coll_partial sum = emit_part(b, call, 0, kept ? COLL_ANYWHERE : out), part;
	u32 rank;

	for (rank = 1; rank < ranks; rank++) {
		const bool last = rank + 1 == ranks;
		u64 to = out;

		part = emit_part(b, call, rank, COLL_ANYWHERE);
		if (kept && !last)
			to = sum.place == out ? part.place : sum.place;
		coll_emit_after(b, sum.ready);
		coll_emit_after(b, part.ready);
		coll_emit_after(b, kept && last ? reading : COLL_NONE);
		sum.ready = coll_emit_reduce(b, to, sum.place, part.place, n);
		sum.place = to;
	}
	if (sum.place == out)
		return sum;
	coll_emit_after(b, sum.ready);
	coll_emit_after(b, kept ? reading : COLL_NONE);
	return (struct coll_partial){ out, coll_emit_copy(b, out, sum.place, n) };
}

struct coll_partial coll_emit_subtree(struct coll_build *b, const struct coll_call *call, u32 top,
				      u64 out)
{
	const u64 n = call_bytes(call);
	const u32 v = rank_minus(call->rank, top, call->ranks);
	struct coll_partial sum = partial_input(call);
	u32 distance;

	for (distance = 1; distance < call->ranks - v && !(v & distance); distance *= 2) {
		u64 theirs = coll_emit_scratch(b, n);
		u64 to = out != COLL_ANYWHERE ? out : sum.ready == COLL_NONE ? theirs : sum.place;
		u32 received = coll_emit_recv(b, rank_plus(call->rank, distance, call->ranks),
					      theirs, n);

		coll_emit_after(b, sum.ready);
		coll_emit_after(b, received);
		sum.ready = coll_emit_reduce(b, to, sum.place, theirs, n);
		sum.place = to;
	}
	return sum;
}

struct coll_halves coll_halves_at(const struct coll_call *call, u32 vranks, u32 vrank, u32 step)
{
	const u32 size = vranks >> (step + 1);
	u32 kept = 0, sent, j;

	for (j = 0; j <= step; j++)
		if (vrank >> j & 1)
			kept += vranks >> (j + 1);
	sent = kept ^ size;
	return (struct coll_halves){
		.kept = part_offset(call, vranks, kept),
		.kept_bytes = part_offset(call, vranks, kept + size) -
			      part_offset(call, vranks, kept),
		.sent = part_offset(call, vranks, sent),
		.sent_bytes = part_offset(call, vranks, sent + size) -
			      part_offset(call, vranks, sent),
	};
}

struct coll_partial coll_emit_halving(struct coll_build *b, const struct coll_call *call,
				      const struct coll_fold *fold, u32 vrank, const u32 *rank,
				      struct coll_partial mine, u64 out, u32 *reading)
{
	u32 i;

	if (out == COLL_ANYWHERE && mine.ready != COLL_NONE)
		out = mine.place;
	for (i = 0; i < fold->exchanges; i++) {
		const struct coll_halves half = coll_halves_at(call, fold->vranks, vrank, i);
		const u64 theirs = coll_emit_scratch(b, half.kept_bytes),
			  own = mine.place + half.kept;
		const bool below = vrank >> i & 1;
		u32 received = coll_emit_recv_nonempty(b, rank[i], theirs, half.kept_bytes), sent;

		if (out == COLL_ANYWHERE)
			out = theirs - half.kept;
		coll_emit_after(b, mine.ready);
		sent = coll_emit_send_nonempty(b, rank[i], mine.place + half.sent, half.sent_bytes);
		reading[i] = mine.place == out ? sent : COLL_NONE;
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		mine.ready = coll_emit_reduce(b, out + half.kept, below ? theirs : own,
					      below ? own : theirs, half.kept_bytes);
		mine.place = out;
	}
	return mine;
}
