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
	ROUNDS = 3,			/* of a batch, which is timed as one */
	BATCHES = 3,			/* at most, of each size: the quickest counts */
	STEPS = 3,			/* brief batches, a long round that is not timed, long batches */
	TIMES_LONGER = 10,		/* than the option measure_time they may take */
};

/* Exchanges of all ranks with their partners. */
struct crowd_exchange {
	struct coll_group *all, *pair;	/* pair NULL: this rank has no partner */
	size_t bytes;
	uint8_t *data;
	uint64_t start, elapsed;	/* ... since, by the slowest rank: all ranks know the same */
	uint64_t brief_ns, long_ns;	/* of the quickest batch, by its slowest rank; 0: there was no time */
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

/* The longer of wires and work has the other's share of one rank behind it: overlap_cost(). */
double coll_crowded_work(const struct coll_crowd *crowd, double beta, uint32_t node)
{
	const double crowding = crowding_of(crowd), wires = node * beta;
	const double longer = crowd->seconds - wires / node, shorter = (crowd->seconds - wires) * node;
	const double beside = longer > wires ? longer : shorter;

	return beside > 0 ? beside / (crowding + 1 - crowding / crowd->ranks) : 0;
}

/* Both directions at once. The own block of an alltoall would be copied as well. */
static int exchange_once(struct crowd_exchange *x, size_t bytes)
{
	const size_t displs[2] = { 0, 0 };
	size_t counts[2] = { bytes, bytes };

	counts[x->pair->rank] = 0;
	return coll_alltoallv(x->data, counts, displs, x->data + bytes, counts, displs, COLL_UINT8, x->pair);
}

/*
 * All ranks begin after a barrier; one that has no partner waits for the others. No barrier is between the rounds,
 * which would be latencies of the slowest links. So pairs that have the cores first are rounds ahead of others, and
 * each pair has some round for itself; but the batch ends when all ranks' bytes have gone.
 */
static int exchange_batch(struct crowd_exchange *x, size_t bytes, int rounds, uint64_t *least)
{
	int error = coll_barrier(x->all), i;
	const uint64_t start = coll_now();
	uint64_t told[2], now;

	for (i = 0; i < rounds && x->pair && !error; i++)
		error = exchange_once(x, bytes);
	now = coll_now();
	told[0] = now - start;
	told[1] = now - x->start;
	if (!error)
		error = coll_allreduce(COLL_IN_PLACE, told, 2, COLL_UINT64, COLL_MAX, x->all);
	if (error)
		return error;
	x->elapsed = told[1];
	if (!*least || told[0] < *least)
		*least = told[0];
	return 0;
}

static uint64_t exchange_most_ns(const struct coll_group *all)
{
	return TIMES_LONGER * all->options.measure_ns;
}

/*
 * A stop of one rank makes a batch longer, and the start of a barrier, a cold cache and the window of a new
 * connection do: so none counts that is not the quickest, and the first long round does not. What there is no time for
 * is left out, alike on all ranks.
 */
static int exchange_batches(struct crowd_exchange *x)
{
	const uint64_t most = exchange_most_ns(x->all);
	uint64_t connected = 0, warmed = 0;
	const struct {
		size_t bytes;
		int rounds, batches;
		uint64_t *least, until;
	} step[STEPS] = {
		{ BRIEF, ROUNDS, BATCHES, &x->brief_ns, most / 2 },
		{ x->bytes, 1, 1, &warmed, most / 4 * 3 },
		{ x->bytes, ROUNDS, BATCHES, &x->long_ns, most },
	};
	int error = exchange_batch(x, BRIEF, 1, &connected), i, k;

	x->start = coll_now();
	x->elapsed = 0;
	for (i = 0; i < STEPS && !error && (!i || *step[i - 1].least); i++)
		for (k = 0; k < step[i].batches && !error && x->elapsed < step[i].until; k++)
			error = exchange_batch(x, step[i].bytes, step[i].rounds, step[i].least);
	return error;
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
		error = exchange_batches(x);
	if (x->pair)
		coll_pair_end(all, x->pair);
	free(x->data);
	return coll_pair_failed(all, &partner->pair, error);
}

/* `crowd->seconds` is 0 where there was no time for it. */
static int crowd_measure(struct coll_group *all, const struct coll_partner *partner, size_t bytes,
			 struct coll_crowd *crowd)
{
	struct crowd_exchange x = { .all = all, .bytes = bytes };
	const int error = exchange_partners(&x, partner);

	*crowd = (struct coll_crowd){ .ranks = partner->ranks,
				      .crowding = all->context->options.machine.crowding * partner->share };
	if (x.long_ns)
		crowd->seconds = ((double)x.long_ns - x.brief_ns) * 1e-9 / ROUNDS / bytes;
	return error;
}

/*
 * Whether by the costs so far there is no time for the least that tells something: the round that connects, a brief
 * batch, a long round and a long batch, each between two collectives of all ranks. A byte of each rank takes so many seconds.
 */
static bool crowd_is_slow(const struct coll_group *all, size_t bytes, double seconds)
{
	const struct coll_machine *machine = &all->context->options.machine;
	const double far = machine->wan_alpha > machine->alpha ? machine->wan_alpha : machine->alpha;

	return (STEPS + 1) * 2 * far + (1 + ROUNDS) * seconds * bytes > 1e-9 * exchange_most_ns(all);
}

/* Sets what no option has given; a pair alone may have found it. Returns whether it was set. */
static bool crowd_take(double *value, double *found, double now)
{
	if (!(now > 0 && now < 1) || coll_cost_is_given(*value, *found))
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
	struct coll_level_cost *cost = &machine->inside[coll_class_level(class)];
	const double beta = coll_inside_cost(machine, coll_class_level(class)).beta;
	struct coll_crowd crowd;
	int error;

	if (!partner->ranks || coll_cost_is_given(cost->beta, found->cost.beta) ||
	    crowd_is_slow(all, BYTES_INSIDE, machine->crowding * beta))
		return 0;
	error = crowd_measure(all, partner, BYTES_INSIDE, &crowd);
	if (!error && inside_take(cost, &found->cost, coll_crowded_beta(&crowd)))
		found->together = crowd.ranks;
	return error;
}

static int between_measure(struct coll_group *all, const struct coll_partner *partner)
{
	struct coll_context *context = all->context;
	struct coll_machine *machine = &context->options.machine;
	struct coll_class_cost *found = &context->costs.of[COLL_CLASS_CLUSTER];
	struct coll_crowd crowd;
	int error;

	if (coll_cost_is_given(machine->byte_work, found->byte_work) ||
	    crowd_is_slow(all, BYTES_BETWEEN, partner->node * machine->beta))	/* then cores hardly count */
		return 0;
	error = crowd_measure(all, partner, BYTES_BETWEEN, &crowd);
	if (!error && crowd_take(&machine->byte_work, &found->byte_work,
				 coll_crowded_work(&crowd, machine->beta, partner->node)))
		found->together = crowd.ranks;
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

	if (machine->crowding <= 1 || machine->beta <= 0 || !places->node)
		return 0;
	error = coll_pair_failed(all, NULL, coll_partners_choose(places, all->ranks, all->rank, partner));
	if (!error)
		error = insides_measure(all, partner);
	if (!error && partner[PARTNER_AWAY].node)
		error = between_measure(all, &partner[PARTNER_AWAY]);
	return error;
}
