// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The algorithm of a call, and what its tuning leaves open: lanes, segment, redundancy.
 * All of it by the algorithms' own cost formulas.
 */
#include "algo/common/levels.h"
#include "algo/redundancy/leaf.h"
#include "algo/redundancy/redundancy.h"
#include "algo/redundancy/replicas.h"
#include "tuning.h"

struct coll_machine coll_machine_or_usual(const struct coll_machine *machine)
{
	struct coll_machine m = *machine;

	if (m.alpha <= 0)
		m.alpha = 20e-6;
	if (m.overhead <= 0)
		m.overhead = m.alpha < 10e-6 ? m.alpha / 5 : 2e-6;
	if (m.beta <= 0)
		m.beta = COLL_USUAL_BETA;
	if (m.byte_gap <= 0)
		m.byte_gap = m.beta;
	if (m.gamma <= 0)
		m.gamma = 0.1e-9;
	return m;
}

u32 coll_lanes_choose(const struct coll_call *call, const struct coll_machine *machine)
{
	const struct coll_machine m = coll_machine_or_usual(machine);
	const u32 most = coll_clusters_smallest(call);
	u32 best = 1, n;

	/* Equally fast: the fewer. */
	for (n = 2; n <= most; n++)
		if (coll_across_beta(&m, n) < coll_across_beta(&m, best) * 0.999)
			best = n;
	return best;
}

/* Flat, for clusters or for levels: the cheapest is of those of one kind and of those for levels. */
enum algo_kind { ALGO_FLAT, ALGO_FOR_CLUSTERS, ALGO_FOR_LEVELS };

static enum algo_kind algo_kind_of(const struct coll_algo *algo)
{
	return algo->levels ? ALGO_FOR_LEVELS : algo->clusters ? ALGO_FOR_CLUSTERS : ALGO_FLAT;
}

/* The predicted seconds without noise. */
static double quiet_seconds(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_tuning *tuning, const struct coll_machine *m)
{
	return algo_kind_of(algo) == ALGO_FLAT ? coll_flat_cost(algo, call, tuning, m) :
						 algo->cost(call, tuning, m);
}

enum { SEGMENT_MIN = 1 << 13 };	/* shorter ones are not tried: headers, and urgent messages */

/* More segments are to gain a percent at least: each is messages. */
static const double segment_gain = 0.99, across_gain = 0.99;

/* Chooses the segment where it is open. Returns the predicted seconds without noise. */
static double segment_seconds(const struct coll_algo *algo, const struct coll_call *call,
			      const struct coll_machine *m, struct coll_tuning *tuning)
{
	const u64 n = cut_count(call) * call->element;
	struct coll_tuning tried = *tuning;
	double least = 0, cost;
	u64 parts;

	if (!coll_algo_has_option(algo, "segment") || n < 2 * SEGMENT_MIN ||
	    tuning->segment != COLL_UNSET)
		return quiet_seconds(algo, call, tuning, m);
	for (parts = 1; n / parts >= SEGMENT_MIN && parts < SEGMENTS_MAX; parts += (parts + 1) / 2) {
		tried.segment = (n + parts - 1) / parts;
		cost = quiet_seconds(algo, call, &tried, m);
		if (parts > 1 && cost >= least * segment_gain)
			continue;
		tuning->segment = tried.segment;
		least = cost;
	}
	return least;
}

void coll_segment_choose(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const struct coll_machine m = coll_machine_or_usual(machine);

	segment_seconds(algo, call, &m, tuning);
}

/* Not all ranks have the same numbers of such a call, and all must choose alike. */
static bool counts_are_hidden(const struct coll_call *call)
{
	return call->collective == COLL_GATHERV || call->collective == COLL_SCATTERV ||
	       call->collective == COLL_ALLTOALLV;
}

/* Whether an algorithm between nodes is to be chosen, for one by levels. */
static bool across_is_open(const struct coll_algo *algo, const struct coll_call *call,
			   const struct coll_tuning *tuning)
{
	return coll_algo_has_option(algo, "across") && tuning->across == COLL_UNSET &&
	       call_has_levels(call) && !counts_are_hidden(call);
}

/* The same, each with its segment. Another one than the usual is to gain a percent at least. */
static double across_seconds(const struct coll_algo *algo, const struct coll_call *call,
			     const struct coll_machine *m, struct coll_tuning *tuning)
{
	struct coll_tuning best = *tuning, tried;
	double least = segment_seconds(algo, call, m, &best), cost;
	const bool open = across_is_open(algo, call, tuning);
	u64 across;

	for (across = 0; across < COLL_ACROSS && open; across++) {
		if (!coll_across_fits(call, across))
			continue;
		tried = *tuning;
		tried.across = across;
		cost = segment_seconds(algo, call, m, &tried);
		if (cost >= least * across_gain)
			continue;
		best = tried;
		least = cost;
	}
	*tuning = best;
	return least;
}

static bool noise_is_known(const struct coll_machine *m)
{
	return m->noise[0].rate > 0 || m->link_noise.rate > 0;
}

void coll_redundancy_choose(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const bool relayed = coll_algo_has_option(algo, "relays");
	const struct coll_machine m = coll_machine_or_usual(machine);
	struct coll_redundancy best;

	if (!coll_algo_has_option(algo, "T") || tuning->redundancy != COLL_UNSET ||
	    tuning->relays != COLL_UNSET || !noise_is_known(&m))
		return;
	best = coll_redundancy_best(call, relayed ? ~0u : 0, &m);
	tuning->redundancy = best.exchanges;
	if (relayed)
		tuning->relays = best.relays;
}

/* Whether the late ranks are of this call's numbering: a phase of another algorithm has its own. */
static bool late_are_known(const struct coll_call *call, const struct coll_machine *m)
{
	return m->late.ranks && m->late.ranks == call->ranks && !call->near;
}

void coll_late_choose(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const struct coll_machine m = coll_machine_or_usual(machine);
	struct coll_tuning tried;
	double least = 0, cost;
	u32 i;

	if (!coll_algo_has_option(algo, "late") || tuning->late[0] != COLL_NONE ||
	    !late_are_known(call, &m))
		return;
	for (i = 0; i < COLL_LATE_MAX; i++)
		tuning->late[i] = m.late.rank[i];
	if (!coll_algo_has_option(algo, "radix") || tuning->radix != COLL_UNSET)
		return;
	tried = *tuning;
	for (tried.radix = 2; tried.radix < 2 * (u64)call->ranks; tried.radix *= 2) {
		cost = algo->cost(call, &tried, &m) +
		       coll_leaf_begin_delay(call, &tried, true, &m) +
		       (m.late.links_alone ? coll_leaf_links_delay(call, &tried, true, &m) : 0);
		if (tried.radix > 2 && cost >= least)
			continue;
		tuning->radix = tried.radix;
		least = cost;
	}
}

/* Chooses all that is left open. Returns the predicted seconds without noise. */
static double tuning_seconds(const struct coll_algo *algo, const struct coll_call *call,
			     const struct coll_machine *m, struct coll_tuning *tuning)
{
	const double seconds = across_seconds(algo, call, m, tuning);
	const bool costs_more = coll_algo_has_option(algo, "T") || coll_algo_has_option(algo, "late");

	coll_redundancy_choose(algo, call, m, tuning);
	coll_late_choose(algo, call, m, tuning);
	return costs_more ? quiet_seconds(algo, call, tuning, m) : seconds;
}

void coll_tuning_choose(const struct coll_algo *algo, const struct coll_call *call,
			const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const struct coll_machine m = coll_machine_or_usual(machine);

	tuning_seconds(algo, call, &m, tuning);
}

static bool takes_late(const struct coll_algo *algo, const struct coll_tuning *tuning)
{
	return coll_algo_has_option(algo, "late") && tuning->late[0] != COLL_NONE;
}

/* The redundant exchanges of an algorithm; most have none. */
static struct coll_redundancy redundancy_in(const struct coll_algo *algo,
					    const struct coll_call *call,
					    const struct coll_tuning *tuning)
{
	if (!coll_algo_has_option(algo, "T"))
		return (struct coll_redundancy){ 0, 0 };
	return coll_algo_has_option(algo, "relays") ? coll_redundancy_relayed_of(call, tuning) :
					    coll_redundancy_of(call, tuning);
}

/* Without the noise of ranks, of links, that is the late ranks' alone. */
static struct coll_machine machine_of_others(const struct coll_machine *m)
{
	struct coll_machine others = *m;
	u32 i;

	for (i = 0; m->late.alone && i < COLL_NOISES_MAX; i++)	/* the first ends the list */
		others.noise[i] = i + 1 < COLL_NOISES_MAX ? m->noise[i + 1] : (struct coll_noise_rate){ 0, 0 };
	if (m->late.links_alone)
		others.link_noise.rate = 0;
	return others;
}

/* Noise that is the late ones' alone: no more than it would be if they were no leaves. */
static double leaf_noise_seconds(const struct coll_call *call, const struct coll_tuning *tuning,
				 bool last, const struct coll_machine *m)
{
	const struct coll_redundancy none = { 0, 0 };
	const double plain = coll_redundancy_delay(call, none, m);
	const struct coll_machine others = machine_of_others(m);
	double leaf = coll_redundancy_delay(call, none, &others);

	if (m->late.alone)
		leaf += coll_leaf_stops_delay(call, tuning, last, m);
	if (m->late.links_alone)
		leaf += coll_leaf_links_delay(call, tuning, last, m);
	return leaf < plain ? leaf : plain;
}

/* What noise and late ranks add to an algorithm. */
static double noise_seconds(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_tuning *tuning, const struct coll_machine *m)
{
	const bool last = coll_algo_has_option(algo, "radix");
	const double late = late_are_known(call, m) ? m->late.part * m->late.behind : 0;

	if (late_are_known(call, m) && takes_late(algo, tuning) && tuning->late[0] == m->late.rank[0])
		return leaf_noise_seconds(call, tuning, last, m) +
		       coll_leaf_begin_delay(call, tuning, last, m);
	if (coll_algo_has_option(algo, "replicas")) {
		const struct coll_replicas with = coll_replicas_of(call, tuning);

		return coll_replicas_delay(call, &with, m) + late;
	}
	return coll_redundancy_delay(call, redundancy_in(algo, call, tuning), m) + late;
}

/* The predicted seconds of one that fits, with what is left open chosen for it. */
static double algo_seconds(const struct coll_algo *algo, const struct coll_call *call,
			   const struct coll_tuning *tuning, const struct coll_machine *m)
{
	struct coll_tuning chosen = *tuning;
	const double quiet = tuning_seconds(algo, call, m, &chosen);

	return quiet + noise_seconds(algo, call, &chosen, m);
}

double coll_algo_predict(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, const struct coll_machine *machine)
{
	const struct coll_machine m = coll_machine_or_usual(machine);

	return algo_seconds(algo, call, tuning, &m);
}

/* Equal but for rounding, which differs from processor to processor: the first of the list. */
static const double shorter = 1 - 1e-9;

static const struct coll_algo *algo_cheapest(const struct coll_call *call,
					     const struct coll_tuning *tuning,
					     const struct coll_machine *m, enum algo_kind kind)
{
	const struct coll_algo *const *algo, *best = NULL;
	double least = 0;

	for (algo = coll_algos; *algo; algo++) {
		struct coll_tuning named = *tuning;
		double cost;

		/* Other ranks may not know the counts: such algorithms are chosen by name only. */
		if ((*algo)->collective != call->collective || (*algo)->needs_counts ||
		    (*algo)->baseline ||
		    (algo_kind_of(*algo) != kind && algo_kind_of(*algo) != ALGO_FOR_LEVELS) ||
		    (algo_kind_of(*algo) == ALGO_FOR_LEVELS && !call_has_levels(call)) ||
		    coll_algo_refuses(*algo, call, tuning))
			continue;
		/* Without late ranks it is a butterfly. With some it is to gain a percent at least. */
		coll_late_choose(*algo, call, m, &named);
		if (coll_algo_has_option(*algo, "late") && !takes_late(*algo, &named))
			continue;
		/* Replicas' messages are for noise alone, and those that share a core are delayed together. */
		if (coll_algo_has_option(*algo, "replicas") && (!noise_is_known(m) || m->crowding > 1))
			continue;
		cost = algo_seconds(*algo, call, &named, m) *
		       (takes_late(*algo, &named) || coll_algo_has_option(*algo, "replicas") ? 1.01 : 1);
		if (!best || cost < least * shorter) {
			best = *algo;
			least = cost;
		}
	}
	return best;
}

/*
 * Only algorithms made for clusters limit the links between clusters to n, so one of these is
 * taken if any fits. Otherwise the cost takes all links for far ones.
 */
const struct coll_algo *coll_algo_choose(const struct coll_call *call,
					 const struct coll_tuning *tuning,
					 const struct coll_machine *machine)
{
	struct coll_machine m = coll_machine_or_usual(machine);
	const struct coll_algo *best = NULL;

	if (coll_clusters_count(call) > 1) {
		best = algo_cheapest(call, tuning, &m, ALGO_FOR_CLUSTERS);
		m.alpha = coll_across_alpha(call, &m);
	}
	return best ? best : algo_cheapest(call, tuning, &m, ALGO_FLAT);
}
