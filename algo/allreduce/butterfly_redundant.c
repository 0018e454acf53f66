// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The butterfly that tolerates jitter (paper 1): after K exchanges, T redundant ones with the
 * partners of exchanges 1 .. T carry the *final* result. After exchange j the ranks form 2^j
 * classes that no longer need each other; a class that is not delayed sends its result to one
 * that is. A rank is done at its own last reduction or at the first final result that it
 * receives. Then it sends the result on, except to the ranks from which it came. Partners of
 * exchanges that it has not begun, and now never will, get the result instead of its part.
 *
 * The relayed butterfly does the same in the middle: after some exchanges (`relays` of them,
 * evenly spaced) the ranks of a block, which all have the same sum by then, send it to each
 * other. A delay before that stays in its block.
 *
 * Any number of ranks: an excess rank of the fold is served by its proxy and also by the proxy's
 * partners in the redundant exchanges, so it is rescued whenever its proxy is.
 *
 * docs/guide/redundant-butterfly.md proves that it cannot deadlock although a rank that is done
 * begins no more exchanges, and that all ranks compute the same bits.
 *
 * Everything that a stale message, or an op that may never begin, touches is scratch.
 *
 *	K (alpha + n beta + n gamma)	without noise, 2^K ranks, and for each rank
 *	T (1 + relays) messages more (T more where it serves an excess rank), 2 n gamma of copies
 */
#include "algo/redundancy/redundancy.h"
#include "algo/redundancy/rescue.h"

/* A excess rank gives its part and takes the first final result that comes. */
static void emit_served(struct coll_build *b, const struct coll_call *call,
			const struct coll_fold *fold, u32 redundancy)
{
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	const u32 vrank = call->rank / 2;
	u32 sent, copied[STEPS_MAX + 1], count = 0, j;

	sent = coll_emit_send(b, fold_rank(fold, vrank), call_input(call), n);
	for (j = 0; j <= redundancy; j++) {
		u32 from = fold_rank(fold, j ? vrank ^ 1u << (j - 1) : vrank);
		u64 final = coll_emit_scratch(b, n);
		u32 received;

		coll_emit_optional(b);
		received = coll_emit_recv(b, from, final, n);
		coll_emit_after(b, received);
		if (call->in_place)
			coll_emit_after(b, sent);
		coll_emit_optional(b);
		copied[count++] = coll_emit_copy(b, out, final, n);
	}
	for (j = 0; j < count; j++)
		coll_emit_any(b, copied[j]);
	coll_emit_join(b);
}

/* Partners that may send the result of exchange i. */
static u32 rescue_count(struct coll_redundancy with, u32 i, bool last)
{
	if (!with.exchanges)
		return 0;
	return last || with.exchanges > i ? i + 1 : with.exchanges;
}

/*
 * The redundant receives of a virtual rank: of a block's result from its T partners, of the
 * final one from the partners of all exchanges.
 */
static void emit_rescues(struct coll_build *b, const struct coll_call *call,
			 const struct coll_fold *fold, struct coll_rescue *rescue, u32 count)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	u32 j;

	for (j = 0; j < count; j++)
		coll_emit_rescue(b, rescue, fold_rank(fold, vrank ^ 1u << j), call_bytes(call));
	coll_emit_rescue_any(b, rescue);
}

/*
 * A relay: a block's result that is sent to those of its ranks that may lack it. These sends
 * wait until the next exchange has begun.
 */
struct relay {
	struct coll_rescue rescue;
	struct coll_ways ways;
	u64 place;
};

static void emit_relay(struct coll_build *b, const struct coll_call *call,
		       const struct coll_fold *fold, struct relay *relay)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	u32 j;

	for (j = 0; j < relay->rescue.count; j++) {
		coll_emit_after_ways(b, &relay->ways);
		coll_emit_optional(b);
		coll_emit_unless(b, relay->rescue.received[j]);
		coll_emit_send(b, fold_rank(fold, vrank ^ 1u << j), relay->place, call_bytes(call));
	}
	relay->rescue.count = 0;
}

/*
 * Done once the exchange with this partner has begun, which waits for `ready`, or once the
 * partner has sent the final result: else the partner needs it. As `ready` frees the exchange's
 * send before this op, the send has started when this op is done.
 */
static u32 emit_served_partner(struct coll_build *b, u32 ready, u32 received)
{
	coll_emit_any(b, ready);
	coll_emit_any(b, received);
	coll_emit_optional(b);
	return coll_emit_join(b);
}

static u32 emit_first_way(struct coll_build *b, const struct coll_ways *ways)
{
	coll_emit_after_ways(b, ways);
	coll_emit_optional(b);
	return coll_emit_join(b);
}

/*
 * The K exchanges. Messages may still arrive at a finished rank, so all of them
 * are optional and in scratch. If the result of a reduction may also come from others, the
 * reduction has its own memory, which no stale message reaches, and does not run after a
 * rescue.
 */
static struct coll_partial emit_exchanges(struct coll_build *b, const struct coll_call *call,
					  const struct coll_fold *fold, struct coll_redundancy with,
					  struct coll_partial mine, struct coll_rescue *rescue)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	const u64 n = call_bytes(call);
	struct relay relay = { .rescue.count = 0 };
	u32 ready[STEPS_MAX], i, j;

	for (i = 0; i < fold->exchanges; i++) {
		const u32 partner = fold_rank(fold, vrank ^ 1u << i);
		const bool below = partner < call->rank, last = i + 1 == fold->exchanges;
		const bool shared = last || redundancy_relays_at(fold->exchanges, with, i + 1);
		const u64 theirs = coll_emit_scratch(b, n),
			  next = shared ? coll_emit_scratch(b, n) : theirs;
		u32 received;

		coll_emit_optional(b);
		received = coll_emit_recv(b, partner, theirs, n);
		*rescue = COLL_RESCUE_NONE;
		if (shared)
			emit_rescues(b, call, fold, rescue, rescue_count(with, i, last));
		ready[i] = mine.ready;
		coll_emit_after(b, mine.ready);
		coll_emit_optional(b);
		coll_emit_send(b, partner, mine.place, n);
		emit_relay(b, call, fold, &relay);
		for (j = with.exchanges; last && j < rescue->count; j++)
			rescue->served[j] = emit_served_partner(b, ready[j], rescue->received[j]);
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		coll_emit_optional(b);
		coll_emit_unless(b, rescue->any);
		mine.ready = coll_emit_reduce(b, next, below ? theirs : mine.place,
					      below ? mine.place : theirs, n);
		mine.place = next;
		if (shared && !last) {
			relay = (struct relay){ *rescue, coll_emit_ways(b, rescue, mine, n),
						mine.place };
			mine.ready = emit_first_way(b, &relay.ways);
		}
	}
	return mine;
}

/*
 * The result is sent to the ranks that may lack it, and then copied to OUT. The copy ends the
 * run. Ops start in list order, so by then the sends have begun.
 */
static void emit_handing_on(struct coll_build *b, const struct coll_call *call,
			    const struct coll_fold *fold, const struct coll_rescue *rescue,
			    u32 redundancy, u64 result, const struct coll_ways *ways)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	const u64 n = call_bytes(call);
	u32 j;

	if (fold_is_proxy(fold, vrank)) {
		coll_emit_after_ways(b, ways);
		coll_emit_optional(b);
		coll_emit_send(b, fold_excess_rank(vrank), result, n);
	}
	for (j = 0; j < rescue->count; j++) {
		const u32 partner = vrank ^ 1u << j;

		coll_emit_after_ways(b, ways);
		coll_emit_optional(b);
		coll_emit_unless(b, rescue->served[j]);
		coll_emit_send(b, fold_rank(fold, partner), result, n);
		if (j < redundancy && fold_is_proxy(fold, partner)) {
			coll_emit_after_ways(b, ways);
			coll_emit_optional(b);
			coll_emit_send(b, fold_excess_rank(partner), result, n);
		}
	}
	coll_emit_after_ways(b, ways);
	coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0), result, n);
}

static void emit_virtual_rank(struct coll_build *b, const struct coll_call *call,
		      const struct coll_fold *fold, struct coll_redundancy with)
{
	const u32 vrank = fold_virtual_rank(fold, call->rank);
	struct coll_rescue rescue = COLL_RESCUE_NONE;
	struct coll_partial mine;
	struct coll_ways ways;

	if (fold_is_proxy(fold, vrank)) {
		mine = coll_emit_proxy(b, call, fold_excess_rank(vrank), call_input(call),
				       COLL_ANYWHERE);
	} else {
		mine.place = coll_emit_scratch(b, call_bytes(call));
		mine.ready = coll_emit_copy(b, mine.place, call_input(call), call_bytes(call));
	}
	mine = emit_exchanges(b, call, fold, with, mine, &rescue);
	ways = coll_emit_ways(b, &rescue, mine, call_bytes(call));
	emit_handing_on(b, call, fold, &rescue, with.exchanges, mine.place, &ways);
}

static void emit_with(struct coll_build *b, const struct coll_call *call,
		      struct coll_redundancy with)
{
	const struct coll_fold fold = fold_of(call->ranks);

	if (fold_is_excess(&fold, call->rank))
		emit_served(b, call, &fold, with.exchanges);
	else
		emit_virtual_rank(b, call, &fold, with);
}

static void allreduce_butterfly_redundant_emit(struct coll_build *b, const struct coll_call *call,
					       const struct coll_tuning *tuning)
{
	emit_with(b, call, coll_redundancy_of(call, tuning));
}

static void emit_relayed(struct coll_build *b, const struct coll_call *call,
			 const struct coll_tuning *tuning)
{
	emit_with(b, call, coll_redundancy_relayed_of(call, tuning));
}

static double allreduce_butterfly_redundant_cost(const struct coll_call *call,
						 const struct coll_tuning *tuning,
						 const struct coll_machine *m)
{
	return coll_redundancy_cost(call, coll_redundancy_of(call, tuning), m);
}

static double cost_relayed(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *m)
{
	return coll_redundancy_cost(call, coll_redundancy_relayed_of(call, tuning), m);
}

const struct coll_algo coll_allreduce_butterfly_redundant = {
	.collective = COLL_ALLREDUCE,
	.name = "butterfly-redundant",
	.about = "butterfly with T redundant exchanges of the result: tolerates jitter",
	.ordered = true,
	.regular = COLL_REGULAR | COLL_REGULAR_POWER_OF_TWO,
	.options = "T",
	.cost = allreduce_butterfly_redundant_cost,
	.emit = allreduce_butterfly_redundant_emit,
};

const struct coll_algo coll_allreduce_butterfly_relayed = {
	.collective = COLL_ALLREDUCE,
	.name = "butterfly-relayed",
	.about = "also relays blocks' results on the way: tolerates jitter of many ranks",
	.ordered = true,
	.regular = COLL_REGULAR | COLL_REGULAR_POWER_OF_TWO,
	.options = "T,relays",
	.cost = cost_relayed,
	.emit = emit_relayed,
};
