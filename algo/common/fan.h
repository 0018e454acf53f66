/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * All at once: blocks that go straight between the root and their ranks, which is gather and scatter
 * (these mirror each other; the v forms need only the root's counts), and what a message from each
 * rank to each other one costs.
 *
 *	alpha + n beta + (p-2) max(o, n G)	for blocks of n bytes
 *
 * Where the core copies, a message takes o + n G in place of the longer of the two.
 */
#ifndef COLL_FAN_H
#define COLL_FAN_H

#include "blocks.h"
#include "ranks.h"

/* What a rank sends to all others at once: the same bytes; as many to each; or neither, or not all at once. */
enum fan_bytes { FAN_SAME, FAN_ALIKE, FAN_OTHER };

/* Whether it writes that once for all. */
static inline bool fan_is_posted(const struct coll_call *call, const struct coll_machine *m, double n,
				 enum fan_bytes bytes)
{
	return bytes == FAN_SAME ? is_posted(m, call->ranks, n) :
	       bytes == FAN_ALIKE && n > 0 && is_posted(m, call->ranks, n * (call->ranks - 1));
}

/*
 * Each rank sends to all others at once, and when it has sent and the first message is there it
 * receives; what comes is used for `per_byte` seconds. The same bytes it may publish, and so copy once, or post,
 * and so write once; what is alike it may post.
 */
static inline double all_at_once_cost(const struct coll_call *call, const struct coll_machine *m,
				      double n, double per_byte, enum fan_bytes bytes)
{
	const double others = call->ranks - 1;
	const bool posted = fan_is_posted(call, m, n, bytes);
	/* Then one copy is the sender's, one each reader's. */
	const bool once = bytes == FAN_SAME && (posted || is_published(m, call->ranks, n));
	/* Else, where no wire has a byte, what a sender leaves of its time is its receiver's. */
	const double half = n * m->beta / 2;
	const double left = m->copied && m->beta > m->byte_gap ? n * (m->beta - m->byte_gap) : 0;
	const double written = once ? half : m->copied ? others * n * m->byte_gap : 0;
	const double read = once ? half : left, used = n * per_byte;
	const double sends = (posted ? 1 : others) * m->overhead + written;
	const double receives = posted ? m->overhead / 2 : m->overhead;
	const double work = posted ? posted_work(m) : at_once_work(m);
	const double first = m->alpha - m->overhead + n * m->beta;
	const double core = (sends > first ? sends : first) + others * (receives + read + used);
	const double further = receives + (once ? 0 : n * m->byte_gap);
	const double wire = once || posted ? m->alpha + n * m->beta + (others - 1) * further :
					     fan_cost(m, call->ranks - 1, n);
	const double whole = core > wire + used ? core : wire + used;

	if (call->ranks == 1)
		return 0;
	return crowded_cost(call, m, whole, others * (work + used) +
					    (once ? half + others * half : others * n * m->beta));
}

static inline bool fan_gathers(const struct coll_call *call)
{
	return call->collective == COLL_GATHER || call->collective == COLL_GATHERV;
}

static inline void emit_fan_at_root(struct coll_build *b, const struct coll_call *call)
{
	const bool gathers = fan_gathers(call);
	const u64 near = COLL_ADDRESS(gathers ? COLL_IN : COLL_OUT, 0);
	u32 distance;

	for (distance = 0; distance < call->ranks; distance++) {
		const u32 rank = rank_plus(call->root, distance, call->ranks);
		const u64 place =
			COLL_ADDRESS(gathers ? COLL_OUT : COLL_IN, block_offset(call, rank));
		const u64 bytes = block_bytes(call, rank);

		if (!bytes || (!distance && call->in_place))
			continue;
		if (!distance)
			coll_emit_copy(b, gathers ? place : near, gathers ? near : place, bytes);
		else if (gathers)
			coll_emit_recv(b, rank, place, bytes);
		else
			coll_emit_send(b, rank, place, bytes);
	}
}

static inline void emit_fan(struct coll_build *b, const struct coll_call *call,
			    const struct coll_tuning *tuning)
{
	(void)tuning;
	if (call->rank == call->root)
		emit_fan_at_root(b, call);
	else if (!call_bytes(call))
		return;
	else if (fan_gathers(call))
		coll_emit_send(b, call->root, COLL_ADDRESS(COLL_IN, 0), call_bytes(call));
	else
		coll_emit_recv(b, call->root, COLL_ADDRESS(COLL_OUT, 0), call_bytes(call));
}

static inline double fan_blocks_cost(const struct coll_call *call,
				     const struct coll_tuning *tuning,
				     const struct coll_machine *m)
{
	(void)tuning;
	/* Of the v forms the ranks know no size in common. */
	if (call->collective == COLL_GATHERV || call->collective == COLL_SCATTERV)
		return fan_cost(m, call->ranks - 1, 0);
	return crowded_cost(call, m, fan_cost(m, call->ranks - 1, call_bytes(call)),
			    tree_share(call, m->alpha + call_bytes(call) * m->beta));
}

#endif
