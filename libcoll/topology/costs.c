// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/levels.h"
#include "core/port.h"
#include "costs.h"
#include "crowded_costs.h"
#include "libcoll/base/fit.h"
#include "libcoll/base/clock.h"
#include "libcoll/exec/failure.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/machine.h"
#include "libcoll/exec/own_costs.h"
#include "pairs.h"

enum {
	BRIEF = 8,			/* bytes of the shortest message */
	HEADERS = 64,			/* at least: of a message and its packet */
	SIZES = 5,
	LONG = 3,			/* of these: 64 KB */
	BURST = 4,			/* messages that follow each other without an answer */
	ROUND = 2 + BURST + 1,		/* messages of a round: there, back, a burst, back */
	ROUNDS_MAX = 24,		/* of a size */
	SAMPLES_MAX = SIZES * (ROUNDS_MAX + 1) + FIT_OCTAVE_MIN,
	GAMMA_BYTES = 1 << 16,
	GAMMA_ROUNDS = 16,
};

/* Seconds: as options take them; and from where on a burst does not tell a small overhead. */
static const double cost_most = 1000, long_latency = 50e-6;
static const uint64_t sizes[SIZES] = { BRIEF, 1 << 10, 1 << 13, 1 << 16, 1 << 18 };

/* ---- one pair ------------------------------------------------------------- */

/* Both ranks of a pair execute the same calls; the first one has the clock and decides. */
struct cost_exchange {
	struct coll_group *pair;
	uint8_t *data;
	uint64_t until;
	uint64_t end;			/* it has failed then: all others wait for this pair */
	bool bytes_tell;		/* a pair's, of a byte's time between all such ranks */
	bool no_bursts;			/* of long messages */
	struct coll_fit_sample ping[SAMPLES_MAX], burst[SAMPLES_MAX];
	uint32_t pings, bursts;
	double posted[ROUNDS_MAX + 1];	/* seconds in which a rank sent one of the shortest messages */
	uint32_t posts;
};

static int exchange_send(struct cost_exchange *x, uint64_t bytes, int from)
{
	return coll_bcast(x->data, bytes, COLL_UINT8, from, x->pair);
}

/* There and back. *seconds: of a message. */
static int exchange_ping(struct cost_exchange *x, uint64_t bytes, double *seconds)
{
	const uint64_t start = coll_now();
	int error = start < x->end ? exchange_send(x, bytes, 0) : -ETIMEDOUT;

	if (!error)
		error = exchange_send(x, bytes, 1);
	*seconds = (coll_now() - start) * 0.5e-9;
	coll_assert(x->pings < SAMPLES_MAX);
	x->ping[x->pings++] = (struct coll_fit_sample){ bytes, *seconds };
	return error;
}

/* Then a burst and an answer. */
static int exchange_round(struct cost_exchange *x, uint64_t bytes, double *seconds)
{
	int error = exchange_ping(x, bytes, seconds), i;
	const uint64_t start = coll_now();
	uint64_t sent;

	for (i = 0; i < BURST && !error; i++)
		error = exchange_send(x, bytes, 0);
	sent = coll_now();
	if (!error)
		error = exchange_send(x, BRIEF, 1);
	coll_assert(x->bursts < SAMPLES_MAX);
	x->burst[x->bursts++] = (struct coll_fit_sample){ bytes, (coll_now() - start) * 1e-9 };
	if (bytes == BRIEF)
		x->posted[x->posts++] = (sent - start) * 1e-9 / BURST;
	return error;
}

/* The first rank's number of rounds becomes that of both. */
static int exchange_agree(struct cost_exchange *x, uint64_t *rounds)
{
	return coll_bcast(rounds, 1, COLL_UINT64, 0, x->pair);
}

/* What fits into `share` of the time that is left, by the time of a message. */
static uint64_t rounds_left(const struct cost_exchange *x, double seconds, uint32_t share, uint64_t least)
{
	const uint64_t now = coll_now();
	const double left = x->until > now ? (x->until - now) * 1e-9 : 0;
	const double rounds = seconds > 0 ? left / share / (ROUND * seconds) : ROUNDS_MAX;

	return rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds > least ? (uint64_t)rounds : least;
}

/*
 * Rounds of a size: one to see how long they take. The first size has as many as a fit needs.
 * *seconds: of a message, where nothing held it up.
 */
static int exchange_size(struct cost_exchange *x, int which, double *seconds)
{
	uint64_t rounds, i;
	double next;
	int error = exchange_round(x, sizes[which], seconds);

	rounds = rounds_left(x, *seconds, SIZES - which, which ? 0 : FIT_SAMPLES_MIN - 1);
	if (rounds < FIT_OCTAVE_MIN - 1 && rounds_left(x, *seconds, 1, 0) >= FIT_OCTAVE_MIN - 1)
		rounds = FIT_OCTAVE_MIN - 1;	/* of what the longer sizes would have */
	if (!error)
		error = exchange_agree(x, &rounds);
	if (!error && rounds > ROUNDS_MAX)
		error = -EPROTO;
	for (i = 0; i < rounds && !error; i++) {
		error = exchange_round(x, sizes[which], &next);
		*seconds = next < *seconds ? next : *seconds;
	}
	return error;
}

static uint32_t long_pings(const struct cost_exchange *x)
{
	uint32_t long_ones = 0, i;

	for (i = 0; i < x->pings; i++)
		long_ones += x->ping[i].bytes >= sizes[LONG];
	return long_ones;
}

/*
 * As many messages of one longer size as tell a byte's time: short ones go at once where a network or its emulation
 * counts tokens. No bursts: where there is no time for these the wire is busy with each byte.
 */
static int exchange_long(struct cost_exchange *x)
{
	double seconds;
	int error = 0, i;

	x->no_bursts = true;
	for (i = 0; i < FIT_OCTAVE_MIN && !error; i++)
		error = exchange_ping(x, sizes[LONG], &seconds);
	return error;
}

/* Within `ns` from when the pair is connected, but for links so slow that this is over with the shortest size. */
static int exchange_all(struct cost_exchange *x, uint64_t ns)
{
	double seconds;
	uint64_t more;
	int which, error = exchange_round(x, BRIEF, &seconds);	/* connects */

	x->pings = x->bursts = x->posts = 0;
	x->until = coll_now() + ns;
	for (which = 0; which < SIZES && !error; which++) {
		/* A message may take longer by as many times as it is longer. */
		if (which) {
			more = rounds_left(x, seconds * (sizes[which] + HEADERS) /
						      (sizes[which - 1] + HEADERS), 1, 0) > 0;
			error = exchange_agree(x, &more);
			if (error || !more)
				break;
		}
		error = exchange_size(x, which, &seconds);
	}
	if (!error && x->bytes_tell && long_pings(x) < FIT_OCTAVE_MIN)
		error = exchange_long(x);
	return error;
}

static double cost_within(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* A burst is a message, as many gaps as follow it, and the answer. */
static void exchange_fit(struct cost_exchange *x, struct coll_class_cost *found)
{
	struct coll_level_cost *cost = &found->cost;
	struct coll_fit_line ping = { 0, 0 }, burst = { 0, 0 };

	if (!coll_fit_line(x->ping, x->pings, &ping))
		return;
	found->samples = x->pings;
	cost->alpha = ping.base;
	cost->beta = ping.slope;
	if (!coll_fit_line(x->burst, x->bursts, &burst))
		return;
	cost->overhead = cost_within((burst.base - 2 * ping.base) / (BURST - 1), ping.base / 100,
				     ping.base);
	/* The difference of two long round trips tells no small overhead; its sender's clock does. */
	if (ping.base > long_latency && cost->overhead < ping.base / 20)
		cost->overhead = cost_within(coll_fit_quartile(x->posted, x->posts), 0, ping.base);
	if (x->no_bursts)
		cost->byte_gap = ping.slope;
	else if (ping.slope > 0 && burst.slope > 0)
		cost->byte_gap = cost_within((burst.slope - ping.slope) / (BURST - 1),
					     ping.slope / 100, ping.slope);
}

static int pair_measure(struct coll_group *all, const struct coll_pair *pair, uint32_t index,
			uint64_t ns, struct coll_class_cost *cost)
{
	struct coll_group *world = all->context->world;
	struct cost_exchange *x = calloc(1, sizeof(*x));
	int error;

	if (x)
		x->data = calloc(1, sizes[SIZES - 1]);
	error = x && x->data ? coll_group_pair_to_measure(world, ~world->id - 3 - index, pair->rank,
						     &x->pair) : -ENOMEM;
	if (!error) {
		x->end = coll_now() + all->options.deadline_ns / 2;
		x->pair->options.deadline_ns = all->options.deadline_ns / 4;
		x->bytes_tell = pair->class != COLL_CLASS_WAN;
		error = exchange_all(x, ns);
		exchange_fit(x, cost);
		coll_pair_end(all, x->pair);
	}
	if (x)
		free(x->data);
	free(x);
	return coll_pair_failed(all, pair, error);
}

/* ---- reductions ------------------------------------------------------------- */

/* The lower median of the ranks; of many, some are asked. */
static int gamma_measure(struct coll_group *all, double *gamma)
{
	const struct coll_own_found mine = { .gamma = coll_own_gamma(GAMMA_BYTES, GAMMA_ROUNDS) };
	const uint32_t own = coll_own_slot_of(all->rank, all->ranks, 0);
	struct coll_own_slot slot[OWN_SLOTS] = { { { 0 } } };
	struct coll_own_found found;
	double value[OWN_SLOTS];
	uint32_t known = 0, i;
	int error;

	if (own != COLL_NONE)
		slot[own] = coll_own_write(&mine);
	error = coll_allreduce(COLL_IN_PLACE, slot, 2 * OWN_SLOTS, COLL_UINT64, COLL_SUM, all);
	for (i = 0; i < OWN_SLOTS && i < all->ranks && !error; i++)
		if (coll_own_read(&slot[i], &found) && found.gamma > 0)
			value[known++] = found.gamma;
	*gamma = known ? coll_fit_median(value, known) : 0;
	return error;
}

/* ---- all ranks -------------------------------------------------------------- */

/* Where each node is one domain, its links are those of the node, as its level is (algo/common/levels.h). */
static bool has_domains(const struct coll_group *world)
{
	return world->levels && world->levels->count && world->levels->level[0].kind == COLL_LEVEL_DOMAIN;
}

void coll_costs_know_nearest(struct coll_context *context, bool one_node)
{
	context->nearest = has_domains(context->world)   ? COLL_CLASS_DOMAIN :
			   one_node || context->node_of ? COLL_CLASS_NODE :
							  COLL_CLASS_CLUSTER;
	coll_group_find_farthest(context->world);
}

struct coll_level_cost coll_costs_of(const struct coll_machine *m, enum coll_link_class class)
{
	if (class == COLL_CLASS_WAN)
		return (struct coll_level_cost){ .alpha = m->wan_alpha, .beta = m->wan_beta };
	if (class == COLL_CLASS_SWITCH)
		return (struct coll_level_cost){ .alpha = m->switch_alpha, .beta = m->switch_beta };
	if (class == COLL_CLASS_CLUSTER)
		return (struct coll_level_cost){ m->alpha, m->overhead, m->beta, m->byte_gap };
	return m->inside[class];
}

/*
 * Whether its links are not measured. One pair finds but the latency of a WAN. Of the others latency and byte time are
 * enough: a file that has no more, as nothing told it, or by hand, is to serve each job alike.
 */
static bool class_is_known(const struct coll_machine *m, enum coll_link_class class)
{
	const struct coll_level_cost cost = coll_costs_of(m, class);

	return cost.alpha > 0 && (class == COLL_CLASS_WAN || cost.beta > 0);
}

/* Where the option does not ask for all of them, usual numbers serve inside of nodes until messages tell more. */
static bool class_is_measured(const struct coll_options *options, enum coll_link_class class)
{
	return class >= COLL_CLASS_SWITCH || coll_options_measure_first(options);
}

/* Drops the pairs of classes that need no measurement. */
static uint32_t pairs_needed(const struct coll_options *options, struct coll_pair *pair, int pairs)
{
	uint32_t needed = 0;
	int i;

	for (i = 0; i < pairs; i++)
		if (class_is_measured(options, pair[i].class) &&
		    !class_is_known(&options->machine, pair[i].class))
			pair[needed++] = pair[i];
	return needed;
}

/* The lower median of a field of the pairs that have it; 0: none has. */
static double median_of(const struct coll_class_cost *cost, uint32_t pairs, size_t offset)
{
	double value[PAIRS_MAX];
	uint32_t known = 0, i;

	for (i = 0; i < pairs; i++) {
		const double next = *(const double *)((const char *)&cost[i] + offset);

		if (next > 0 && next < cost_most)	/* of another rank: it may say anything */
			value[known++] = next;
	}
	return known ? coll_fit_median(value, known) : 0;
}

/* The costs of a class from those of its pairs, which follow each other. */
static struct coll_class_cost class_cost(const struct coll_class_cost *cost, uint32_t pairs)
{
	struct coll_class_cost all = cost[0];
	uint32_t i;

	all.pairs = pairs;
	for (i = 1; i < pairs; i++)
		all.samples += cost[i].samples;
	all.cost.alpha = median_of(cost, pairs, offsetof(struct coll_class_cost, cost.alpha));
	all.cost.overhead = median_of(cost, pairs, offsetof(struct coll_class_cost, cost.overhead));
	all.cost.beta = median_of(cost, pairs, offsetof(struct coll_class_cost, cost.beta));
	all.cost.byte_gap = median_of(cost, pairs, offsetof(struct coll_class_cost, cost.byte_gap));
	return all;
}

static void costs_collect(struct coll_costs *costs, const struct coll_pair *pair,
			  const struct coll_class_cost *cost, uint32_t pairs)
{
	uint32_t first, next;

	for (first = 0; first < pairs; first = next) {
		for (next = first + 1; next < pairs; next++)
			if (pair[next].class != pair[first].class)
				break;
		costs->of[pair[first].class] = class_cost(&cost[first], next - first);
	}
}

static void costs_take(struct coll_context *context, const struct coll_costs *costs)
{
	const struct coll_level_cost *near = &costs->of[COLL_CLASS_CLUSTER].cost;
	struct coll_machine found = {
		.alpha = near->alpha,
		.overhead = near->overhead,
		.beta = near->beta,
		.byte_gap = near->byte_gap,
		.gamma = costs->gamma,
		.switch_alpha = costs->of[COLL_CLASS_SWITCH].cost.alpha,
		.switch_beta = costs->of[COLL_CLASS_SWITCH].cost.beta,
		.wan_alpha = costs->of[COLL_CLASS_WAN].cost.alpha,
	};
	int level;

	for (level = 0; level < COLL_LEVEL_CLUSTER; level++)
		found.inside[level] = costs->of[level].cost;
	coll_options_take(&context->options, &found);
}

/*
 * Pair after pair, each with its part of the time, for which all others wait: far less than their
 * deadline. The first rank's numbers go to all ranks; the
 * next pair begins when it has them.
 */
static int measure_pairs(struct coll_group *all, const struct coll_pair *pair, uint32_t pairs,
			 struct coll_class_cost *cost)
{
	const uint64_t share = all->options.measure_ns / pairs, most = all->options.deadline_ns / 4;
	uint32_t i;
	int error = 0;

	for (i = 0; i < pairs && !error; i++) {
		cost[i] = (struct coll_class_cost){ .rank = { pair[i].rank[0], pair[i].rank[1] } };
		if (all->rank == pair[i].rank[0] || all->rank == pair[i].rank[1])
			error = pair_measure(all, &pair[i], i,
					     share < most ? share : most, &cost[i]);
		if (!error)
			error = coll_bcast(&cost[i], sizeof(cost[i]), COLL_UINT8, pair[i].rank[0], all);
	}
	return error;
}

static int measure_all(struct coll_group *all, const struct coll_places *places, struct coll_pair *pair, int pairs)
{
	struct coll_context *context = all->context;
	const uint32_t needed = pairs_needed(&context->options, pair, pairs);
	struct coll_class_cost cost[PAIRS_MAX * COLL_CLASSES];
	double gamma;
	int error;

	if (!needed && !coll_options_measure_first(&context->options))
		return 0;
	error = needed ? measure_pairs(all, pair, needed, cost) : 0;
	if (!error)
		error = gamma_measure(all, &gamma);
	if (error)
		return error;
	costs_collect(&context->costs, pair, cost, needed);
	context->costs.gamma = gamma < 1 ? gamma : 0;
	costs_take(context, &context->costs);
	return coll_crowded_costs_measure(all, places);
}

bool coll_costs_are_measured(const struct coll_context *context, bool between_nodes)
{
	/* Pairs of whom nobody knows where they are may be of one node. */
	const bool far = coll_options_follow(&context->options) && between_nodes && context->node_of;

	return context->boot->ranks > 1 && (far || coll_options_measure_first(&context->options));
}

int coll_costs_measure(struct coll_context *context)
{
	const struct coll_places places = {
		.cluster = context->cluster,
		.leaf = context->switch_of,
		.node = context->node_of,
		.domain = context->domain_of,
		.below = context->nearest,
	};
	struct coll_pair pair[PAIRS_MAX * COLL_CLASSES];
	const int pairs = coll_pairs_choose(&places, context->boot->ranks, pair);
	struct coll_group *world = context->world, *all;
	int error = pairs < 0 ? pairs : coll_group_to_agree(world, ~world->id - 2, &all);

	if (error)
		return error;
	error = measure_all(all, &places, pair, pairs);
	if (error && all->text[0])
		memcpy(world->text, all->text, sizeof(world->text));
	coll_group_free(all);
	world->options.machine = context->options.machine;
	world->costs = context->costs;
	return error;
}
