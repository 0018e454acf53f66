// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "algo/common/levels.h"
#include "crowded_costs.h"
#include "libcoll/base/clock.h"
#include "libcoll/exec/group.h"

enum {
	BRIEF = 8,			/* bytes of the shortest message */
	BYTES_INSIDE = 1 << 19,		/* of long ones: more than a ring in memory holds, ... */
	BYTES_BETWEEN = 1 << 15,
	ROUNDS_CONNECT = 1,		/* which are no part of it */
	ROUNDS_LEAST = 3,		/* of brief ones, where latencies are long, ... */
	ROUNDS_BRIEF = 9,		/* ... and else: sockets and caches are new in the first ones */
	ROUNDS_LONG = 3,
	TIMES_LONGER = 10,		/* than the option measure_time the long ones may take */
};

/* Exchanges of all ranks with their partners. */
struct crowd_exchange {
	struct coll_group *all, *pair;	/* NULL: this rank has no partner */
	size_t bytes;
	uint8_t *data;
	int briefs;			/* rounds of short messages */
	uint64_t ns[ROUNDS_BRIEF + 1];	/* of each of these, and of all long ones together */
};

/* Ranks per core: few ranks have no more than one. */
static double crowding_of(const struct coll_crowd *crowd)
{
	return crowd->crowding < crowd->ranks ? crowd->crowding : crowd->ranks;
}

double coll_crowded_beta(const struct coll_crowd *crowd)
{
	const double crowding = crowding_of(crowd);

	return crowd->seconds > 0 ? crowd->seconds / (crowding + 1 - crowding / crowd->ranks) : 0;
}

double coll_crowded_work(const struct coll_crowd *crowd, double beta, uint32_t node)
{
	const double crowding = crowding_of(crowd), beside = crowd->seconds - node * beta;

	return beside > 0 && crowd->ranks > 1 ? beside / (crowding - crowding / crowd->ranks) : 0;
}

/* Both directions at once. The own block of an alltoall would be copied as well. */
static int exchange_once(struct crowd_exchange *x, size_t bytes)
{
	const size_t displs[2] = { 0, 0 };
	size_t counts[2] = { bytes, bytes };

	counts[x->pair->rank] = 0;
	return coll_alltoallv(x->data, counts, displs, x->data + bytes, counts, displs, COLL_UINT8, x->pair);
}

static int exchange_timed(struct crowd_exchange *x, size_t bytes, int rounds, uint64_t *ns)
{
	const uint64_t start = coll_now();
	int error = 0, i;

	for (i = 0; i < rounds && x->pair && !error; i++)
		error = exchange_once(x, bytes);
	*ns = coll_now() - start;
	return error;
}

/*
 * All ranks begin together with each size; one that has no partner waits for the others. No barrier is
 * between rounds of a size, which would be latencies of the slowest links. So pairs that have the cores first are rounds
 * ahead of others, and each pair has some round for itself; but all long ones together end when all ranks' bytes have gone.
 */
static int exchange_rounds(struct crowd_exchange *x)
{
	int error = coll_barrier(x->all), i;

	for (i = 0; i < x->briefs && !error; i++)
		error = exchange_timed(x, BRIEF, 1, &x->ns[i]);
	if (!error)
		error = coll_barrier(x->all);
	return error ? error : exchange_timed(x, x->bytes, ROUNDS_LONG, &x->ns[x->briefs]);
}

static int exchange_partners(struct crowd_exchange *x, const struct coll_partner *partner)
{
	struct coll_group *all = x->all, *world = all->context->world;
	int error = 0;

	x->data = calloc(2, x->bytes);
	if (!x->data)
		error = -ENOMEM;
	if (!error && partner->index != COLL_NONE)
		error = coll_group_pair_to_measure(world, ~world->id - 3 - PAIRS_MAX * COLL_CLASSES - partner->index,
						   partner->pair.rank, &x->pair);
	if (!error && x->pair)
		x->pair->options.deadline_ns = all->options.deadline_ns / 4;
	if (!error)
		error = exchange_rounds(x);
	if (x->pair)
		coll_pair_end(all, x->pair);
	free(x->data);
	error = coll_pair_failed(all, &partner->pair, error);
	return error ? error : coll_allreduce(COLL_IN_PLACE, x->ns, x->briefs + 1, COLL_UINT64, COLL_MAX, all);
}

/* The quickest brief round, in seconds: others' work on the cores makes some longer, and none shorter. */
static double quickest_brief(const struct crowd_exchange *x)
{
	uint64_t least = x->ns[ROUNDS_CONNECT];
	int i;

	for (i = ROUNDS_CONNECT + 1; i < x->briefs; i++)
		least = x->ns[i] < least ? x->ns[i] : least;
	return least * 1e-9;
}

static int crowd_measure(struct coll_group *all, const struct coll_partner *partner, size_t bytes,
			 struct coll_crowd *crowd)
{
	const struct coll_machine *machine = &all->context->options.machine;
	const bool far = machine->alpha * ROUNDS_BRIEF > 1e-9 * all->options.measure_ns;
	struct crowd_exchange x = { .all = all, .bytes = bytes, .briefs = far ? ROUNDS_LEAST : ROUNDS_BRIEF };
	const int error = exchange_partners(&x, partner);

	*crowd = (struct coll_crowd){ .ranks = all->ranks, .crowding = machine->crowding };
	crowd->seconds = (x.ns[x.briefs] * 1e-9 / ROUNDS_LONG - quickest_brief(&x)) / bytes;
	return error;
}

/* Whether the long rounds take too long where a byte of each rank takes so many seconds. */
static bool crowd_is_slow(const struct coll_group *all, size_t bytes, double seconds)
{
	return seconds * bytes * ROUNDS_LONG > TIMES_LONGER * 1e-9 * all->options.measure_ns;
}

/*
 * Sets what no option has given; a pair alone may have found it. By times of other ranks, which may say anything.
 * Returns whether it was set.
 */
static bool crowd_take(double *value, double *found, double now)
{
	if (!(now > 0 && now < 1) || (*value > 0 && !coll_cost_is_found(*value, *found)))
		return false;
	*value = *found = now;
	return true;
}

/* The gap that a pair has found stays its part of beta. */
static bool inside_take(struct coll_level_cost *cost, struct coll_level_cost *found, double now)
{
	const double before = cost->beta;

	if (!crowd_take(&cost->beta, &found->beta, now))
		return false;
	if (before > 0 && coll_cost_is_found(cost->byte_gap, found->byte_gap))
		cost->byte_gap = found->byte_gap *= cost->beta / before;
	return true;
}

static int inside_measure(struct coll_group *all, const struct coll_partner *partner, enum coll_link_class class)
{
	struct coll_context *context = all->context;
	struct coll_machine *machine = &context->options.machine;
	struct coll_class_cost *found = &context->costs.of[class];
	const double beta = coll_inside_cost(machine, coll_class_level(class)).beta;
	struct coll_crowd crowd;
	int error;

	if (crowd_is_slow(all, BYTES_INSIDE, machine->crowding * beta))
		return 0;
	error = crowd_measure(all, partner, BYTES_INSIDE, &crowd);
	if (!error && inside_take(&machine->inside[coll_class_level(class)], &found->cost, coll_crowded_beta(&crowd)))
		found->together = all->ranks;
	return error;
}

static int between_measure(struct coll_group *all, const struct coll_partner *partner)
{
	struct coll_context *context = all->context;
	struct coll_machine *machine = &context->options.machine;
	struct coll_class_cost *found = &context->costs.of[COLL_CLASS_CLUSTER];
	struct coll_crowd crowd;
	int error;

	if (crowd_is_slow(all, BYTES_BETWEEN, partner->node * machine->beta))	/* then cores hardly count */
		return 0;
	error = crowd_measure(all, partner, BYTES_BETWEEN, &crowd);
	if (!error && crowd_take(&machine->byte_work, &found->byte_work,
				 coll_crowded_work(&crowd, machine->beta, partner->node)))
		found->together = all->ranks;
	return error;
}

/* Of each class of links that is inside of nodes. */
static int insides_measure(struct coll_group *all, const struct coll_partner partner[PARTNERS])
{
	const enum coll_link_class nearest = all->context->nearest;
	int error = 0;

	if (partner[PARTNER_NEXT].node < 2)
		return 0;
	if (nearest == COLL_CLASS_DOMAIN)
		error = inside_measure(all, &partner[PARTNER_ACROSS], COLL_CLASS_NODE);
	return error ? error : inside_measure(all, &partner[PARTNER_NEXT], nearest);
}

int coll_crowded_costs_measure(struct coll_group *all, const struct coll_places *places)
{
	const struct coll_machine *machine = &all->context->options.machine;
	struct coll_partner partner[PARTNERS];
	int error;

	if (machine->crowding <= 1 || machine->beta <= 0 || !places->node ||
	    (machine->byte_work > 0 && machine->inside[COLL_LEVEL_NODE].beta > 0))
		return 0;
	error = coll_pair_failed(all, NULL, coll_partners_choose(places, all->ranks, all->rank, partner));
	if (!error)
		error = insides_measure(all, partner);
	if (!error && partner[PARTNER_AWAY].node)
		error = between_measure(all, &partner[PARTNER_AWAY]);
	return error;
}
