// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Butterflies for few ranks that are often late (option `late`): they are leaves. A late rank sends
 * its vector, and then nobody waits for it any more: in each exchange a rank that is not late and has
 * the same sum, first its partner of exchange 1, sends for it. The late rank receives all messages
 * as it would in the butterfly, and computes the result itself, when it can. So there are as many
 * messages as in the butterfly, and no more on a way; only its partner sends two in an exchange.
 *
 *	K (alpha + n beta + n gamma) + o + n G	for 2^K ranks; two messages more for other numbers
 *
 * In the leaf-last form the others do not even wait for its vector before they begin: that takes a
 * tree of its own to all of them, while they exchange theirs, and is added last. A rank that comes
 * later than the others by less than the exchanges take more than the tree delays nobody. The
 * operation must commute.
 *
 *	max(K (alpha + n (beta + gamma)) + o + n G,  late by + h (alpha + n beta + (r-1) (o + n G)))
 *	+ n gamma	for a tree of radix r and height h; p messages more
 *
 * Both sides of an exchange combine the same operands in the same order, so all ranks compute the
 * same bits; in order of ranks also those of the butterfly.
 *
 * A long message is not sent before its receive has begun, so sends to a late rank are optional: a
 * rank is done without them. They have begun by then, for ops start in list order and the result
 * comes last, and are from scratch, which outlives the call.
 */
#include "algo/common/partial.h"
#include "algo/redundancy/leaf.h"

struct leaf {
	const struct coll_call *call;
	struct coll_leaves set;
	struct coll_partial mine;	/* place COLL_ANYWHERE: nothing yet */
	u32 vrank, reading;		/* reading: done when OUT may be written */
	u64 result;			/* where the result is made: OUT, or COLL_ANYWHERE in scratch */
};

/* OUT is not to be written before this op is done. */
static void leaf_before_result(struct coll_build *b, struct leaf *leaf, u32 op)
{
	leaf->reading = leaf->reading == COLL_NONE ? op : emit_both(b, leaf->reading, op);
}

/* The vector in scratch: my input is copied there, before the result ends the run. */
static struct coll_partial leaf_in_scratch(struct coll_build *b, struct leaf *leaf,
					   struct coll_partial from)
{
	struct coll_partial copy;

	if (COLL_ADDRESS_BUFFER(from.place) == COLL_SCRATCH)
		return from;
	copy.place = coll_emit_scratch(b, call_bytes(leaf->call));
	copy.ready = coll_emit_copy(b, copy.place, from.place, call_bytes(leaf->call));
	leaf_before_result(b, leaf, copy.ready);
	return copy;
}

static void leaf_send_optional(struct coll_build *b, const struct leaf *leaf, u32 to,
			       struct coll_partial from)
{
	coll_emit_after(b, from.ready);
	coll_emit_optional(b);
	coll_emit_send(b, to, from.place, call_bytes(leaf->call));
}

static void leaf_send(struct coll_build *b, struct leaf *leaf, u32 to, struct coll_partial from)
{
	u32 sent;

	if (coll_leaf_is_late(&leaf->set, to)) {
		leaf_send_optional(b, leaf, to, leaf_in_scratch(b, leaf, from));
		return;
	}
	coll_emit_after(b, from.ready);
	sent = coll_emit_send(b, to, from.place, call_bytes(leaf->call));
	if (from.place == COLL_ADDRESS(COLL_OUT, 0))
		leaf_before_result(b, leaf, sent);
}

/* ---- exchanges ----------------------------------------------------------------- */

/* To my partner, and to those of mute ranks of my block that I send for. */
static void leaf_sends(struct coll_build *b, struct leaf *leaf, u32 i)
{
	const struct coll_leaves *set = &leaf->set;
	u32 k;

	if (coll_leaf_sender(set, leaf->vrank, i) == leaf->vrank)
		leaf_send(b, leaf, coll_leaf_rank(set, leaf->vrank ^ 1u << i), leaf->mine);
	for (k = 0; k < set->mutes; k++)
		if (set->mute[k] != leaf->vrank && set->mute[k] >> i == leaf->vrank >> i &&
		    coll_leaf_sender(set, set->mute[k], i) == leaf->vrank)
			leaf_send(b, leaf, coll_leaf_rank(set, set->mute[k] ^ 1u << i), leaf->mine);
}

/* Exchange i (0 ..), whose sum goes to `out`, or where the other operand arrived. */
static void leaf_exchange(struct coll_build *b, struct leaf *leaf, u32 i, u64 out)
{
	const u32 partner = leaf->vrank ^ 1u << i, from = coll_leaf_sender(&leaf->set, partner, i);
	const u64 n = call_bytes(leaf->call);
	struct coll_partial theirs = { COLL_ANYWHERE, COLL_NONE }, sum;

	if (from != COLL_NONE) {
		theirs.place = coll_emit_scratch(b, n);
		theirs.ready = coll_emit_recv(b, coll_leaf_rank(&leaf->set, from), theirs.place, n);
	}
	leaf_sends(b, leaf, i);
	if (from == COLL_NONE)
		return;
	if (leaf->mine.place == COLL_ANYWHERE) {
		leaf->mine = theirs;
		return;
	}
	coll_emit_after(b, leaf->mine.ready);
	coll_emit_after(b, theirs.ready);
	if (out != COLL_ANYWHERE)	/* the result replaces what is being sent, in place */
		coll_emit_after(b, leaf->reading);
	sum.place = out != COLL_ANYWHERE ? out : theirs.place;
	sum.ready = coll_emit_reduce(b, sum.place,
				     partner < leaf->vrank ? theirs.place : leaf->mine.place,
				     partner < leaf->vrank ? leaf->mine.place : theirs.place, n);
	leaf->mine = sum;
}

static void leaf_exchanges(struct coll_build *b, struct leaf *leaf)
{
	const u32 exchanges = leaf->set.fold.exchanges;
	const bool ends = !leaf->set.last || !leaf->set.lates;
	u32 i;

	for (i = 0; i < exchanges; i++)
		leaf_exchange(b, leaf, i, ends && i + 1 == exchanges ? leaf->result : COLL_ANYWHERE);
}

/* ---- vectors that are taken last ------------------------------------------------- */

/* The vector of late[which], which a node of its tree receives and sends on. */
static struct coll_partial leaf_tree(struct coll_build *b, struct leaf *leaf, u32 which, u32 radix)
{
	const struct coll_leaf_tree tree = coll_leaf_tree_of(&leaf->set, which, radix);
	const u32 node = leaf->call->rank == leaf->set.late[which] ?
				 0 : coll_leaf_node(&leaf->set, &tree, leaf->vrank);
	struct coll_partial vector = partial_input(leaf->call);
	u64 child;
	u32 i;

	if (node) {
		vector.place = coll_emit_scratch(b, call_bytes(leaf->call));
		vector.ready = coll_emit_recv(b, coll_leaf_node_rank(&leaf->set, &tree, which,
								     (node - 1) / tree.radix),
					      vector.place, call_bytes(leaf->call));
	}
	for (i = 1; i <= tree.radix; i++) {
		child = (u64)node * tree.radix + i;
		if (child >= tree.nodes)
			break;
		leaf_send(b, leaf, coll_leaf_node_rank(&leaf->set, &tree, which, child), vector);
	}
	return vector;
}

static void leaf_add_last(struct coll_build *b, struct leaf *leaf, const struct coll_partial *vector)
{
	const u64 n = call_bytes(leaf->call);
	u32 k;

	for (k = 0; k < leaf->set.lates; k++) {
		const bool ends = k + 1 == leaf->set.lates && leaf->result != COLL_ANYWHERE;
		const u64 to = ends ? leaf->result : coll_emit_scratch(b, n);

		coll_emit_after(b, leaf->mine.ready);
		coll_emit_after(b, vector[k].ready);
		if (ends)
			coll_emit_after(b, leaf->reading);
		leaf->mine.ready = coll_emit_reduce(b, to, leaf->mine.place, vector[k].place, n);
		leaf->mine.place = to;
	}
}

/* A late rank aside: its vector, and the result from its host. */
static void leaf_emit_aside(struct coll_build *b, struct leaf *leaf, u32 radix)
{
	u32 which, i;

	for (which = 0; leaf->set.late[which] != leaf->call->rank; which++)
		;
	for (i = 0; leaf->set.aside[i] != leaf->call->rank; i++)
		;
	leaf_tree(b, leaf, which, radix);
	coll_emit_after(b, leaf->reading);
	coll_emit_recv(b, coll_leaf_rank(&leaf->set, coll_leaf_host(&leaf->set, i)),
		       COLL_ADDRESS(COLL_OUT, 0), call_bytes(leaf->call));
}

/* ---- all of it --------------------------------------------------------------------- */

/* The ranks without a virtual rank that I give the result. */
static u32 leaf_served(const struct leaf *leaf, u32 rank[COLL_LATE_MAX + 1])
{
	u32 count = 0, i;

	if (fold_is_proxy(&leaf->set.fold, leaf->vrank))
		rank[count++] = coll_leaf_excess_rank(&leaf->set, leaf->vrank);
	for (i = 0; i < leaf->set.asides; i++)
		if (coll_leaf_host(&leaf->set, i) == leaf->vrank)
			rank[count++] = leaf->set.aside[i];
	return count;
}

/* To a late rank it goes from scratch, and to OUT only then. */
static u64 leaf_result_place(const struct leaf *leaf)
{
	u32 rank[COLL_LATE_MAX + 1], count = leaf_served(leaf, rank);

	while (count)
		if (coll_leaf_is_late(&leaf->set, rank[--count]))
			return COLL_ANYWHERE;
	return COLL_ADDRESS(COLL_OUT, 0);
}

static void leaf_serve(struct coll_build *b, struct leaf *leaf)
{
	u32 rank[COLL_LATE_MAX + 1], count = leaf_served(leaf, rank), i;

	for (i = 0; i < count; i++)
		if (coll_leaf_is_late(&leaf->set, rank[i]))
			leaf_send_optional(b, leaf, rank[i], leaf->mine);
	for (i = 0; i < count; i++) {
		if (coll_leaf_is_late(&leaf->set, rank[i]))
			continue;
		coll_emit_after(b, leaf->mine.ready);
		coll_emit_send(b, rank[i], leaf->mine.place, call_bytes(leaf->call));
	}
	if (leaf->result != COLL_ANYWHERE)
		return;
	coll_emit_after(b, leaf->mine.ready);
	coll_emit_after(b, leaf->reading);
	coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0), leaf->mine.place, call_bytes(leaf->call));
}

static void leaf_emit_virtual_rank(struct coll_build *b, struct leaf *leaf, u32 radix)
{
	const u32 late = leaf->set.last ? leaf->set.lates : 0;
	struct coll_partial vector[COLL_LATE_MAX];
	u32 k;

	leaf->result = leaf_result_place(leaf);
	for (k = 0; k < late; k++)
		vector[k] = leaf_tree(b, leaf, k, radix);
	if (late && coll_leaf_is_mute(&leaf->set, leaf->vrank))
		leaf->mine.place = COLL_ANYWHERE;
	else if (fold_is_proxy(&leaf->set.fold, leaf->vrank))
		leaf->mine = coll_emit_proxy(b, leaf->call,
					     coll_leaf_excess_rank(&leaf->set, leaf->vrank),
					     leaf->mine.place, COLL_ANYWHERE);
	leaf_exchanges(b, leaf);
	if (late)
		leaf_add_last(b, leaf, vector);
	leaf_serve(b, leaf);
}

static void leaf_emit(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning, bool last)
{
	const u32 radix = coll_leaf_radix(call, tuning);
	struct leaf leaf = { .call = call, .set = coll_leaves_of(call, tuning, last),
			     .mine = partial_input(call), .reading = COLL_NONE };

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	if (coll_leaf_is_aside(&leaf.set, call->rank)) {
		leaf_emit_aside(b, &leaf, radix);
		return;
	}
	leaf.vrank = coll_leaf_virtual_rank(&leaf.set, call->rank);
	if (coll_leaf_is_excess(&leaf.set, call->rank))
		coll_emit_excess_rank(b, call, coll_leaf_rank(&leaf.set, leaf.vrank),
				      leaf.mine.place, COLL_ADDRESS(COLL_OUT, 0));
	else
		leaf_emit_virtual_rank(b, &leaf, radix);
}

static void allreduce_butterfly_leaf_emit(struct coll_build *b, const struct coll_call *call,
					  const struct coll_tuning *tuning)
{
	leaf_emit(b, call, tuning, false);
}

static void allreduce_butterfly_leaf_last_emit(struct coll_build *b, const struct coll_call *call,
					       const struct coll_tuning *tuning)
{
	leaf_emit(b, call, tuning, true);
}

static double allreduce_butterfly_leaf_cost(const struct coll_call *call,
					    const struct coll_tuning *tuning,
					    const struct coll_machine *m)
{
	return coll_leaf_cost(call, tuning, false, m);
}

static double allreduce_butterfly_leaf_last_cost(const struct coll_call *call,
						 const struct coll_tuning *tuning,
						 const struct coll_machine *m)
{
	return coll_leaf_cost(call, tuning, true, m);
}

const struct coll_algo coll_allreduce_butterfly_leaf = {
	.collective = COLL_ALLREDUCE,
	.name = "butterfly-leaf",
	.about = "butterfly in which late ranks are leaves: others send for them after exchange 1",
	.ordered = true,
	.options = "late",
	.refuses = coll_leaves_refuse,
	.cost = allreduce_butterfly_leaf_cost,
	.emit = allreduce_butterfly_leaf_emit,
};

const struct coll_algo coll_allreduce_butterfly_leaf_last = {
	.collective = COLL_ALLREDUCE,
	.name = "butterfly-leaf-last",
	.about = "butterfly of the others; late ranks' vectors take a tree and are added last",
	.options = "late,radix",
	.refuses = coll_leaves_refuse,
	.cost = allreduce_butterfly_leaf_last_cost,
	.emit = allreduce_butterfly_leaf_last_emit,
};
