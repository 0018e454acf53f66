/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Partial results: vectors in which the parts of some ranks are already combined. The steps that
 * several reducing algorithms share.
 */
#ifndef COLL_PARTIAL_H
#define COLL_PARTIAL_H

#include "blocks.h"
#include "ranks.h"

/* "Anywhere in scratch", where a place for a result is asked for. */
#define COLL_ANYWHERE (~(u64)0)

struct coll_partial {
	u64 place;
	u32 ready;	/* the op after which it is there; COLL_NONE: from the start */
};

/* What I have at the start: my own part. */
static inline struct coll_partial partial_input(const struct coll_call *call)
{
	return (struct coll_partial){ call_input(call), COLL_NONE };
}

/* As coll_emit_send() and coll_emit_recv(); a message that both sides know is empty is not sent. */
u32 coll_emit_send_nonempty(struct coll_build *b, u32 peer, u64 from, u64 bytes);
u32 coll_emit_recv_nonempty(struct coll_build *b, u32 peer, u64 to, u64 bytes);

/* One rank and no message: the result is the input. */
void coll_emit_single_rank(struct coll_build *b, const struct coll_call *call, u64 bytes);

/*
 * OUT = left (reduction) right. An operand may overlap OUT in any way (in place,
 * reduce_scatter's blocks do): then the result is made in `spare`, one of the
 * two operands, and copied.
 */
u32 coll_emit_reduce_out(struct coll_build *b, u64 left, u64 right, u64 spare, u64 bytes);

/*
 * An excess rank of the fold: sends the vector at `mine` to `proxy`, receives the
 * result at `out`, which may be the same address.
 */
void coll_emit_excess_rank(struct coll_build *b, const struct coll_call *call, u32 proxy, u64 mine,
			   u64 out);

/* Its proxy: the vector at `mine` reduced with the excess rank's, at `out`. */
struct coll_partial coll_emit_proxy(struct coll_build *b, const struct coll_call *call,
				    u32 excess_rank, u64 mine, u64 out);

/*
 * OUT = the sum of the vectors of the first `ranks` ranks, in their order: mine, if I am one of
 * them, and the others' straight from them. `reading`: my sends of my vector, or COLL_NONE; in
 * place OUT stays until they are done.
 */
struct coll_partial coll_emit_sum(struct coll_build *b, const struct coll_call *call, u32 ranks,
				  u32 reading);

/*
 * My part of the binomial tree with root `top`: combines the vectors of my subtree's ranks
 * at `out`. With top 0 each subtree is a run of ranks, and their order is kept.
 */
struct coll_partial coll_emit_subtree(struct coll_build *b, const struct coll_call *call, u32 top,
				      u64 out);

/* My parent in that tree; the top has none: COLL_NONE. */
static inline u32 subtree_parent(const struct coll_call *call, u32 top)
{
	const u32 relative = rank_minus(call->rank, top, call->ranks);

	return relative ? rank_plus(top, tree_parent(relative), call->ranks) : COLL_NONE;
}

/*
 * Recursive halving, nearest first: in step i the virtual ranks `vrank` and vrank ^ 2^i
 * exchange halves of the rest of the vector, and each reduces the half that it keeps. Each
 * virtual rank's share then has runs of 2^(i + 1) virtual ranks in rank order, so order is
 * kept. The number of a virtual rank's share is its bits reversed.
 */
struct coll_halves {
	u64 kept, kept_bytes;	/* offsets and sizes in the vector */
	u64 sent, sent_bytes;
};

struct coll_halves coll_halves_at(const struct coll_call *call, u32 vranks, u32 vrank, u32 step);

/*
 * All steps. rank[i] is the partner's rank in step i. The result is what `mine`
 * is reduced to: offsets count from its place, at `out`; of an `out` of
 * COLL_ANYWHERE only the half kept in step 0 exists (or, if `mine` is in
 * scratch, all of it where it is). reading[i], if not COLL_NONE, is the send of
 * step i out of the same place: until it is done, its half must stay.
 */
struct coll_partial coll_emit_halving(struct coll_build *b, const struct coll_call *call,
				      const struct coll_fold *fold, u32 vrank, const u32 *rank,
				      struct coll_partial mine, u64 out, u32 *reading);

enum { STEPS_MAX = 24 };	/* log2 COLL_RANKS_MAX */

#endif
