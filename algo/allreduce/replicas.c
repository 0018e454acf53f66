// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * By replicas: no rank's delay is its node's. The first R ranks of a node, its replicas, all have the
 * node's sum, so each can exchange it with other nodes: replica r does with replica r of the node that
 * differs in a bit of its number, as in a butterfly. After each exchange the replica that has the new
 * sum first sends it to the others of its node, which no longer wait for theirs: a message inside a
 * node costs little. The ranks that are no replicas give their vectors, and take the first result.
 *
 * With R >= 3, fewer than half of a node's replicas may be delayed once their vectors are sent, and
 * no other rank waits for them. By induction: before exchange i all replicas of all nodes but the
 * delayed ones have their nodes' sums. Of the R pairs of replicas of two nodes one is not delayed, on either side.
 * It exchanges, and each of the two sends the new sum to all of its node. With two replicas each
 * exchanges with both, and one may be delayed. docs/guide/replicas.md has the proof.
 *
 * So no replica leaves an exchange out: its message is sent as soon as the sum before it is there, by
 * whatever way. A delayed rank sends its messages when it goes on. What may never begin or come late
 * is optional and in scratch; the application's buffers are touched by the first copy and the last.
 *
 *	log2(N) (alpha + (R - 1) o + R n beta + n gamma) + 2 alpha_node + (k + R) (o_node + n beta_node)
 *	+ k n gamma	for N = 2^K nodes of k ranks; two exchanges more for other numbers
 */
#include <math.h>

#include "algo/common/levels.h"
#include "algo/redundancy/replicas.h"
#include "algo/redundancy/rescue.h"

struct replica {
	const struct coll_call *call;
	const struct coll_tuning *tuning;
	struct coll_clusters c;		/* the nodes */
	struct coll_partial mine;	/* the sum so far: of the node, and of nodes */
	struct coll_rescue relayed;	/* who has sent it */
	u32 sums[STEPS_MAX + 3], count;	/* of each sum so far: the op that has it */
};

static u32 count_of(const struct replica *r, u32 node)
{
	return replicas_of(r->tuning, cluster_size(&r->c, node));
}

static void add_sum(struct replica *r, struct coll_partial sum)
{
	r->mine = sum;
	r->sums[r->count++] = sum.ready;
}

/* ---- inside the node ------------------------------------------------------ */

/* My vector to the replicas, from scratch: it is not waited for that they take it. */
static void emit_contribution(struct coll_build *b, const struct replica *r,
			      struct coll_partial own)
{
	const u32 *member = cluster_ranks(&r->c, r->c.mine);
	u32 i;

	for (i = 0; i < count_of(r, r->c.mine); i++) {
		if (i == r->c.index)
			continue;
		coll_emit_after(b, own.ready);
		coll_emit_optional(b);
		coll_emit_send(b, member[i], own.place, call_bytes(r->call));
	}
}

/*
 * The sum of a node's vectors: neighbours first, so that most is done when the last one comes. The own
 * vector is left as it is, it may still be on its way. All replicas combine in the same order.
 */
static struct coll_partial emit_node_sum(struct coll_build *b, const struct replica *r,
					 struct coll_partial own)
{
	const u32 size = cluster_size(&r->c, r->c.mine), *member = cluster_ranks(&r->c, r->c.mine);
	const u64 n = call_bytes(r->call);
	u64 *place = r->c.displs, left;
	u32 *ready = r->c.op, distance, i;

	for (i = 0; i < size; i++) {
		place[i] = i == r->c.index ? own.place : coll_emit_scratch(b, n);
		ready[i] = i == r->c.index ? own.ready : coll_emit_recv(b, member[i], place[i], n);
	}
	for (distance = 1; distance < size; distance *= 2)
		for (i = 0; i + distance < size; i += 2 * distance) {
			left = place[i];
			if (left == own.place)
				place[i] = place[i + distance];
			coll_emit_after(b, ready[i]);
			coll_emit_after(b, ready[i + distance]);
			ready[i] = coll_emit_reduce(b, place[i], left, place[i + distance], n);
		}
	return (struct coll_partial){ place[0], ready[0] };
}

/* The last sum to those replicas of the node that have not sent it. */
static void emit_relay(struct coll_build *b, struct replica *r)
{
	const u32 *member = cluster_ranks(&r->c, r->c.mine);
	u32 i, j;

	for (i = 0, j = 0; j < r->relayed.count; i++) {
		if (i == r->c.index)
			continue;
		coll_emit_after(b, r->mine.ready);
		coll_emit_optional(b);
		coll_emit_unless(b, r->relayed.received[j++]);
		coll_emit_send(b, member[i], r->mine.place, call_bytes(r->call));
	}
	r->relayed.count = 0;
}

/* The next one may come from any other replica of the node. */
static struct coll_rescue emit_relayed(struct coll_build *b, const struct replica *r)
{
	const u32 *member = cluster_ranks(&r->c, r->c.mine);
	struct coll_rescue relayed = COLL_RESCUE_NONE;
	u32 i;

	for (i = 0; i < count_of(r, r->c.mine); i++)
		if (i != r->c.index)
			coll_emit_rescue(b, &relayed, member[i], call_bytes(r->call));
	coll_emit_rescue_any(b, &relayed);
	return relayed;
}

/* ---- between nodes ---------------------------------------------------------- */

/* The sum to the replicas of another node that I am linked with. */
static void emit_sends(struct coll_build *b, const struct replica *r, u32 node)
{
	const u32 *member = cluster_ranks(&r->c, node), count = count_of(r, node);
	u32 i;

	for (i = 0; i < count; i++) {
		if (!replicas_are_linked(count_of(r, r->c.mine), r->c.index, count, i))
			continue;
		coll_emit_after(b, r->mine.ready);
		coll_emit_optional(b);
		coll_emit_send(b, member[i], r->mine.place, call_bytes(r->call));
	}
}

/* Another node's sum from those replicas: all of them have the same bits, and the first will do. */
static struct coll_rescue emit_recvs(struct coll_build *b, const struct replica *r, u32 node)
{
	const u32 *member = cluster_ranks(&r->c, node), count = count_of(r, node);
	struct coll_rescue theirs = COLL_RESCUE_NONE;
	u32 i;

	for (i = 0; i < count; i++)
		if (replicas_are_linked(count_of(r, r->c.mine), r->c.index, count, i))
			coll_emit_rescue(b, &theirs, member[i], call_bytes(r->call));
	return theirs;
}

/* The first of them, in one place. */
static struct coll_partial emit_first(struct coll_build *b, const struct coll_rescue *theirs, u64 n)
{
	struct coll_partial first = { theirs->final[0], theirs->received[0] };
	u32 copied[STEPS_MAX], i;

	if (theirs->count == 1)
		return first;
	first.place = coll_emit_scratch(b, n);
	for (i = 0; i < theirs->count; i++) {
		coll_emit_after(b, theirs->received[i]);
		coll_emit_optional(b);
		copied[i] = coll_emit_copy(b, first.place, theirs->final[i], n);
	}
	for (i = 0; i < theirs->count; i++)
		coll_emit_any(b, copied[i]);
	coll_emit_optional(b);
	first.ready = coll_emit_join(b);
	return first;
}

/* What happens with the sum of another node: both nodes exchange, or one gives and gets. */
enum step { STEP_EXCHANGE, STEP_FROM_EXCESS, STEP_RESULT };

/* A step with another node, after which all replicas of this one have a new sum. */
static void emit_step(struct coll_build *b, struct replica *r, u32 node, enum step step)
{
	const u64 n = call_bytes(r->call);
	const struct coll_rescue received = emit_recvs(b, r, node);
	const struct coll_rescue relayed = emit_relayed(b, r);
	const bool below = node < r->c.mine;
	struct coll_partial sum = { coll_emit_scratch(b, n), COLL_NONE }, theirs;
	struct coll_ways ways;

	if (step != STEP_FROM_EXCESS)
		emit_sends(b, r, node);
	emit_relay(b, r);
	theirs = emit_first(b, &received, n);
	coll_emit_after(b, theirs.ready);
	if (step != STEP_RESULT)
		coll_emit_after(b, r->mine.ready);
	coll_emit_optional(b);
	coll_emit_unless(b, relayed.any);
	if (step == STEP_RESULT)
		sum.ready = coll_emit_copy(b, sum.place, theirs.place, n);
	else
		sum.ready = coll_emit_reduce(b, sum.place, below ? theirs.place : r->mine.place,
					     below ? r->mine.place : theirs.place, n);
	ways = coll_emit_ways(b, &relayed, sum, n);
	coll_emit_after_ways(b, &ways);
	sum.ready = coll_emit_join(b);
	add_sum(r, sum);
	r->relayed = relayed;
}

/* The butterfly of the nodes, folded to a power of two as that of ranks is. */
static void emit_steps(struct coll_build *b, struct replica *r)
{
	const struct coll_fold fold = fold_of(r->c.count);
	const u32 node = r->c.mine;
	u32 vnode, i;

	if (fold_is_excess(&fold, node)) {
		emit_step(b, r, node + 1, STEP_RESULT);
		return;
	}
	vnode = fold_virtual_rank(&fold, node);
	if (fold_is_proxy(&fold, vnode))
		emit_step(b, r, fold_excess_rank(vnode), STEP_FROM_EXCESS);
	for (i = 0; i < fold.exchanges; i++)
		emit_step(b, r, fold_rank(&fold, vnode ^ 1u << i), STEP_EXCHANGE);
	if (fold_is_proxy(&fold, vnode))
		emit_sends(b, r, fold_excess_rank(vnode));
}

/* ---- the result ------------------------------------------------------------- */

/*
 * The result to the node's other ranks, and to OUT: once all sums were there, for then the sends of
 * all of them have begun. Ops start in list order.
 */
static void emit_end(struct coll_build *b, struct replica *r)
{
	const u32 size = cluster_size(&r->c, r->c.mine), *member = cluster_ranks(&r->c, r->c.mine);
	const u32 count = count_of(r, r->c.mine);
	const u64 n = call_bytes(r->call);
	u32 i;

	emit_relay(b, r);
	for (i = count; i < size; i++) {
		if (!replicas_serve(count, r->c.index, i))
			continue;
		coll_emit_after(b, r->mine.ready);
		coll_emit_optional(b);
		coll_emit_send(b, member[i], r->mine.place, n);
	}
	for (i = 0; i < r->count; i++)
		coll_emit_after(b, r->sums[i]);
	coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0), r->mine.place, n);
}

/* A rank that is no replica takes the first result that comes. */
static void emit_served(struct coll_build *b, const struct replica *r, struct coll_partial own)
{
	const u32 *member = cluster_ranks(&r->c, r->c.mine), count = count_of(r, r->c.mine);
	const u64 n = call_bytes(r->call);
	struct coll_rescue result = COLL_RESCUE_NONE;
	u32 copied[STEPS_MAX], i;

	for (i = 0; i < count; i++)
		if (replicas_serve(count, i, r->c.index))
			coll_emit_rescue(b, &result, member[i], n);
	for (i = 0; i < result.count; i++) {
		coll_emit_after(b, result.received[i]);
		coll_emit_after(b, own.ready);
		coll_emit_optional(b);
		copied[i] = coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 0), result.final[i], n);
	}
	for (i = 0; i < result.count; i++)
		coll_emit_any(b, copied[i]);
	coll_emit_join(b);
}

static void allreduce_replicas_emit(struct coll_build *b, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	const struct coll_call view = coll_nodes_view(call, false);
	struct replica r = { .call = call, .tuning = tuning, .relayed = COLL_RESCUE_NONE };
	struct coll_partial own;

	if (call->ranks == 1) {
		coll_emit_single_rank(b, call, call_bytes(call));
		return;
	}
	r.c = coll_clusters_make(b, &view, tuning);
	own.place = coll_emit_scratch(b, call_bytes(call));
	own.ready = coll_emit_copy(b, own.place, call_input(call), call_bytes(call));
	emit_contribution(b, &r, own);
	if (r.c.index >= count_of(&r, r.c.mine)) {
		emit_served(b, &r, own);
		return;
	}
	add_sum(&r, emit_node_sum(b, &r, own));
	emit_steps(b, &r);
	emit_end(b, &r);
}

static const char *allreduce_replicas_refuse(const struct coll_call *call,
					     const struct coll_tuning *tuning)
{
	if (tuning->replicas != COLL_UNSET && tuning->replicas > COLL_REPLICAS_MAX)
		return "`replicas` must be 1 to 16";
	return coll_nodes_refuse(call, tuning);
}

/* ---- costs ------------------------------------------------------------------ */

/* A rank's mean work, where ranks share cores: inside a node messages are work, and reductions. */
static double replicas_share(const struct coll_call *call, const struct coll_replicas *with,
			     double members, const struct coll_machine *near,
			     const struct coll_machine *m)
{
	const double n = call_bytes(call), r = with->replicas;
	const double inside = r * (members - 1) + with->steps * r * (r - 1) +
			      (members - r) * (replicas_spare(with->replicas) + 1);

	return (inside * (near->alpha + n * near->beta) +
		with->steps * replicas_links(with->replicas, with->replicas) *
			(coll_wire_work(m) + n * m->beta) +
		r * (members + with->steps) * n * m->gamma) / members + 2 * n * m->gamma;
}

static double allreduce_replicas_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				      const struct coll_machine *m)
{
	const struct coll_level *node = coll_nodes_view(call, false).near;
	const double n = call_bytes(call);
	struct coll_machine near;
	struct coll_replicas with;
	double inside, exchange, links, served;

	if (call->ranks == 1 || !call->levels)
		return 0;
	near = coll_machine_inside(m, node->kind);
	with = coll_replicas_of(call, tuning);
	links = replicas_links(with.replicas, with.replicas);
	served = (double)(node->largest - with.replicas) * (replicas_spare(with.replicas) + 1) /
		 with.replicas;
	/* To the replicas, which take all vectors; and at the end to each other, and to all others. */
	inside = (with.replicas - 1) * (near.overhead + n * near.byte_gap) +
		 fan_cost(&near, node->largest - 1, n) + (node->largest + 1) * n * m->gamma +
		 (with.replicas - 1) * (near.overhead + n * near.byte_gap) +
		 fan_cost(&near, ceil(served), n);
	exchange = m->alpha + (links - 1) * m->overhead + n * (links * m->beta + m->gamma);
	return crowded_cost(call, m, inside + with.steps * exchange,
			    replicas_share(call, &with, node->largest, &near, m));
}

const struct coll_algo coll_allreduce_replicas = {
	.collective = COLL_ALLREDUCE,
	.name = "replicas",
	.about = "several ranks of each node have its sum and exchange it: a delayed one delays no other",
	.ordered = true,
	.levels = true,
	.regular = COLL_REGULAR_NODES,
	.options = "replicas",
	.refuses = allreduce_replicas_refuse,
	.cost = allreduce_replicas_cost,
	.emit = allreduce_replicas_emit,
};
