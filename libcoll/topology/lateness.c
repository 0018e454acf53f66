// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "colld_noise.h"
#include "costs.h"
#include "fit.h"
#include "lateness.h"

enum {
	WAITED_PART = 4,	/* of the usual time a rank waited at least: else it came later */
	USUAL_SAMPLES_MIN = 4,	/* fewer do not tell the quartile */
	IN_TIME_TIMES = 3,	/* who waits longer was not the last to come */
	MEMORY_EXCHANGES = 2000,	/* of links: one in 300 that is late keeps more than LATE_LEAST */
	EXCHANGES_MIN = 4,	/* fewer in time do not tell that noise has ended; */
	MISSED_EVENTS = 10,	/* so many that were to be expected and did not come do */
	NOISE_BITS = 8,		/* of a number that counts */
	LEAF_LEAST = 8,		/* times that a rank was waited for, in memory, before it is a leaf */
	LEAF_SHARE = 8,		/* ... of so many times that it was met */
	LEAF_AGAIN = 2,		/* a leaf may be seen half as often */
	LEAF_ABOVE = 2,		/* times as often as those that are none: else many ranks are late */
	LEAF_OF = 8,		/* ranks, one of which may be a leaf */
	LOG_TERMS = 24,		/* of a series, for eight digits */
};

static const double memory_seconds = 2, forgotten_most = 0.5, change_least = 1.5, share_most = 0.95,
		    rate_most = 1e9, duration_most = 1000;	/* as options take them */

/* ---- exchanges ---------------------------------------------------------------- */

/* By the costs in use. The WAN's byte time is that of all its links. */
static double seconds_by_costs(const struct coll_machine *machine, enum coll_link_class class,
			       uint64_t bytes)
{
	const struct coll_level_cost cost = coll_costs_of(machine, class);
	const double beta = class == COLL_CLASS_WAN || cost.beta <= 0 ? machine->beta : cost.beta;

	return coll_usual_alpha(machine, class) + bytes * beta;
}

/* What the costs of a class are to be multiplied with, by the latest exchanges. */
static double usual_scale(const struct coll_machine *machine, enum coll_link_class class,
			  const struct coll_samples_found *found)
{
	double ratio[SAMPLE_CELLS];
	uint32_t known = 0, i;

	for (i = 0; i < found->samples; i++) {
		const struct coll_sample *sample = &found->sample[i];

		if (sample->class == class && coll_sample_is_good(sample))
			ratio[known++] = sample->ns * 1e-9 /
					 seconds_by_costs(machine, class, sample->bytes);
	}
	return known < USUAL_SAMPLES_MIN ? 1 : coll_fit_quartile(ratio, known);
}

static bool both_waited(const struct coll_sample *sample, double usual)
{
	const double least = usual * 1e9 / WAITED_PART;

	return coll_sample_waited(sample, 0) >= least && coll_sample_waited(sample, 1) >= least;
}

/* Seconds of delays of both messages; 0: none is late. */
static double exchange_excess(const struct coll_sample *sample, double usual)
{
	const double held = (double)sample->held[0] + sample->held[1];
	const double away = (double)sample->away[0] + sample->away[1];
	const double excess = (2. * sample->ns - held - away) * 1e-9 - 2 * usual;

	return excess > LATE_TIMES * usual && both_waited(sample, usual) ? excess : 0;
}

/* ---- ranks that are waited for ---------------------------------------------------- */

static double rank_weight(const struct coll_late_rank *one)
{
	return one->late + one->stops;
}

/* Its entry, or one that has faded. NULL: others were met more often. */
static struct coll_late_rank *late_rank(struct coll_lateness *late, uint32_t rank)
{
	struct coll_late_rank *least = late->rank_of, *one;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		if (one->rank == rank && rank_weight(one) > 0)
			return one;
		if (rank_weight(one) < rank_weight(least))
			least = one;
	}
	if (rank_weight(least) >= 1)
		return NULL;
	*least = (struct coll_late_rank){ .rank = rank };
	return least;
}

/*
 * Its peer waited long for its message, which was under way no longer than usual, and it had
 * neither waited itself nor kept its answer back for others.
 */
static void came_late_add(struct coll_lateness *late, const struct coll_sample *sample,
			  double usual)
{
	int i;

	for (i = 0; i < 2; i++) {
		const double waited = sample->waited[i] * 1e-9, peer = sample->waited[!i] * 1e-9;
		struct coll_late_rank *one;

		if (sample->answered[i] || waited > IN_TIME_TIMES * usual ||
		    peer <= waited + LATE_TIMES * usual)
			continue;
		one = late_rank(late, sample->rank[i]);
		if (!one)
			continue;
		one->late++;
		one->behind += peer - fmax(waited, usual);
	}
}

/* What a rank that has an entry was seen in. */
static void rank_met(struct coll_lateness *late, const struct coll_sample *sample)
{
	struct coll_late_rank *one;
	int i;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++)
		for (i = 0; i < 2; i++) {
			if (one->rank != sample->rank[i] || rank_weight(one) <= 0)
				continue;
			one->met++;
			one->waited += sample->waited[i] * 1e-9;
		}
}

static void rank_stops(struct coll_lateness *late, uint32_t rank, double seconds)
{
	struct coll_late_rank *one = late_rank(late, rank);

	if (!one)
		return;
	one->stops++;
	one->stopped += seconds;
}

/* Returns whether there were any. */
static bool stops_add(struct coll_lateness *late, const struct coll_sample *sample, double usual)
{
	struct coll_late_sums *sums = &late->of[sample->class];
	bool any = false;
	int i;

	for (i = 0; i < 2; i++) {
		sums->waited += sample->waited[i] * 1e-9;
		if (sample->held[i] * 1e-9 <= LATE_TIMES * usual)
			continue;
		sums->stops++;
		sums->stopped += sample->held[i] * 1e-9;
		rank_stops(late, sample->rank[i], sample->held[i] * 1e-9);
		any = true;
	}
	return any;
}

/* ---- all of it ------------------------------------------------------------------- */

static void exchange_add(struct coll_lateness *late, const struct coll_sample *sample, double usual)
{
	struct coll_late_sums *sums = &late->of[sample->class];
	const double excess = exchange_excess(sample, usual);

	sums->exchanges++;
	sums->looked++;
	sums->usual += usual;
	sums->late += excess > 0;
	sums->excess += excess;
	late->in_time = excess > 0 ? 0 : late->in_time + 1;
	late->unstopped = stops_add(late, sample, usual) ? 0 : late->unstopped + 1;
	if (excess <= 0)
		came_late_add(late, sample, usual);
	rank_met(late, sample);
}

/*
 * Where calls are long, as noise makes them, two surveys have some fifty exchanges: too few to meet
 * LATE_LEAST late ones, if one in a hundred is late. A rank is looked at for all of the call that it
 * waits, so its stops are met sooner.
 */
static void late_forget(struct coll_lateness *late, double seconds, uint32_t exchanges)
{
	const double keep = seconds > 0 ? fmax(forgotten_most, 1 / (1 + seconds / memory_seconds)) :
					  forgotten_most;
	const double keep_links = fmax(keep, 1 - (double)exchanges / MEMORY_EXCHANGES);
	struct coll_late_rank *one;
	int class;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		one->late *= keep;
		one->behind *= keep;
		one->stops *= keep;
		one->stopped *= keep;
		one->met *= keep;
		one->waited *= keep;
	}
	for (class = 0; class < COLL_CLASSES; class++) {
		struct coll_late_sums *sums = &late->of[class];

		sums->exchanges *= keep_links;
		sums->usual *= keep_links;
		sums->late *= keep_links;
		sums->excess *= keep_links;
		sums->looked *= keep;
		sums->waited *= keep;
		sums->stops *= keep;
		sums->stopped *= keep;
	}
}

static bool sample_is_new(const struct coll_sample *sample, const struct coll_samples_found *found)
{
	return (int32_t)(sample->run - found->from) >= 0 &&
	       (int32_t)(sample->run - found->until) < 0;
}

/* What comes after what is the order of runs; of the table it is another. */
static void order_by_run(const struct coll_samples_found *found, uint8_t order[SAMPLE_CELLS])
{
	uint32_t i, at;

	for (i = 0; i < found->samples; i++) {
		for (at = i; at; at--) {
			const uint32_t before = found->sample[order[at - 1]].run;

			if ((int32_t)(before - found->sample[i].run) <= 0)
				break;
			order[at] = order[at - 1];
		}
		order[at] = i;
	}
}

static void late_add(struct coll_lateness *late, const struct coll_machine *machine,
		     const struct coll_samples_found *found)
{
	double scale[COLL_CLASSES];
	uint8_t order[SAMPLE_CELLS];
	uint32_t class, exchanges = 0, i;

	order_by_run(found, order);
	for (i = 0; i < found->samples; i++)
		exchanges += sample_is_new(&found->sample[i], found);
	late_forget(late, found->seconds, exchanges);
	for (class = 0; class < COLL_CLASSES; class++)
		scale[class] = usual_scale(machine, class, found);
	for (i = 0; i < found->samples; i++) {
		const struct coll_sample *sample = &found->sample[order[i]];

		if (sample_is_new(sample, found) && coll_usual_alpha(machine, sample->class) > 0)
			exchange_add(late, sample,
				     scale[sample->class] *
					     seconds_by_costs(machine, sample->class, sample->bytes));
	}
}

/* ---- noise ---------------------------------------------------------------------- */

static struct coll_late_sums all_classes(const struct coll_lateness *late)
{
	struct coll_late_sums all = late->of[0];
	int class;

	for (class = 1; class < COLL_CLASSES; class++) {
		all.exchanges += late->of[class].exchanges;
		all.looked += late->of[class].looked;
		all.usual += late->of[class].usual;
		all.late += late->of[class].late;
		all.excess += late->of[class].excess;
		all.waited += late->of[class].waited;
		all.stops += late->of[class].stops;
		all.stopped += late->of[class].stopped;
	}
	return all;
}

/* Ranks with another libm, whose sums differ by a bit, are to choose alike. */
static double noise_round(double value)
{
	int exponent;
	const double part = frexp(value, &exponent);

	return ldexp(floor(ldexp(part, NOISE_BITS) + 0.5), exponent - NOISE_BITS);
}

/* -log(1 - part), of sums and products alone: part is at most 0.8. */
static double minus_log(double part)
{
	const double z = part / (2 - part);
	double power = z, sum = 0;
	int i;

	for (i = 0; i < LOG_TERMS; i++, power *= z * z)
		sum += 2 * power / (2 * i + 1);
	return sum;
}

/* What options take, and no more than all the time. Of no numbers there is no noise. */
static struct coll_noise_rate noise_within(double rate, double duration)
{
	if (!(rate > 0 && duration > 0))
		return (struct coll_noise_rate){ 0, 0 };
	duration = fmin(duration, duration_most);
	return (struct coll_noise_rate){ fmin(rate, fmin(rate_most, 1 / duration)), duration };
}

/* There must be a late exchange. */
static struct coll_noise_rate noise_of_links(const struct coll_late_sums *all)
{
	const double share = fmin(all->late / all->exchanges, share_most);
	const double chance = 1 - sqrt(1 - share);
	const double excess = all->excess / all->late * (1 - chance / 2);

	return noise_within(minus_log(chance) / (all->usual / all->exchanges + excess), excess);
}

static struct coll_noise_rate noise_of_ranks(const struct coll_late_sums *all)
{
	return noise_within(all->stops / all->waited, all->stopped / all->stops);
}

/* Also that there is none: algo/common/algo.h. */
static bool noise_is_given(const struct coll_noise_rate *value, const struct coll_noise_rate *found)
{
	return value->rate > 0 ? !coll_cost_is_found(value->rate, found->rate) : value->duration > 0;
}

/* What is in memory of one kind of noise. */
struct noise_seen {
	struct coll_noise_rate noise;	/* with at least one event */
	double events, exchanges, since;	/* since: exchanges without an event */
};

static bool noise_is_over(const struct noise_seen *seen)
{
	return seen->events < 1 ? seen->exchanges >= EXCHANGES_MIN :
				  seen->since * seen->events >= MISSED_EVENTS * seen->exchanges;
}

/* By more than events of a number by chance differ, twice their deviation. */
static bool has_changed(double before, double now, double events)
{
	const double least = fmax(change_least, 1 + 2 / sqrt(events));

	return now > before * least || before > now * least;
}

static bool noise_differs(const struct coll_noise_rate *counts, const struct noise_seen *seen)
{
	if (counts->rate <= 0)
		return seen->events >= LATE_LEAST;
	return has_changed(counts->duration, seen->noise.duration, seen->events) ||
	       has_changed(counts->rate, seen->noise.rate, seen->events);
}

/* Noise begins to count, changes or ends, at this age. Returns whether it did. */
static bool noise_follow(struct coll_noise_rate *counts, double *age, const struct noise_seen *seen)
{
	if (noise_is_over(seen)) {
		if (counts->rate <= 0 || *age < memory_seconds)
			return false;
		*counts = (struct coll_noise_rate){ 0, 0 };
		return true;
	}
	if (seen->noise.rate <= 0 || !noise_differs(counts, seen))
		return false;
	if (counts->rate <= 0)
		*age = 0;
	counts->rate = noise_round(seen->noise.rate);
	counts->duration = noise_round(seen->noise.duration);
	return true;
}

/* Old events of noise that is over do not count once more when a new one comes. */
static void late_end(struct coll_lateness *late, const struct coll_lateness *before)
{
	int class;

	for (class = 0; class < COLL_CLASSES; class++) {
		if (before->link.rate > 0 && late->link.rate <= 0)
			late->of[class].late = late->of[class].excess = 0;
		if (before->rank.rate > 0 && late->rank.rate <= 0)
			late->of[class].stops = late->of[class].stopped = 0;
	}
}

static bool late_follow(struct coll_lateness *late, const struct coll_samples_found *found)
{
	const struct coll_late_sums all = all_classes(late);
	const struct coll_lateness before = *late;
	struct noise_seen links = { { 0, 0 }, all.late, all.exchanges, late->in_time };
	struct noise_seen ranks = { { 0, 0 }, all.stops, all.looked, late->unstopped };
	const double seconds = found->seconds > 0 ? found->seconds : memory_seconds;
	bool changed;

	late->link_age += seconds;
	late->rank_age += seconds;
	if (all.late >= 1)
		links.noise = noise_of_links(&all);
	if (all.stops >= 1)
		ranks.noise = noise_of_ranks(&all);
	changed = noise_follow(&late->link, &late->link_age, &links);
	late->by_colld = !found->own_cores || !found->held;	/* the messages do not tell them */
	if (late->by_colld) {
		ranks = (struct noise_seen){ .exchanges = EXCHANGES_MIN };
		ranks.events = coll_colld_noise(&late->colld, &ranks.noise);
		ranks.noise = noise_within(ranks.noise.rate, ranks.noise.duration);
	}
	changed |= noise_follow(&late->rank, &late->rank_age, &ranks);
	if (changed)
		late_end(late, &before);
	return changed;
}

/* ---- late ranks ------------------------------------------------------------------ */

static bool is_leaf(const struct coll_lateness *late, uint32_t rank)
{
	uint32_t i;

	for (i = 0; late->leaves.ranks && i < COLL_LATE_MAX; i++)
		if (late->leaves.rank[i] == rank)
			return true;
	return false;
}

/* How often it came late, or had no core. */
static double leaf_weight(const struct coll_late_rank *one, bool stops)
{
	return stops ? one->stops : one->late;
}

/* Often enough; one that is a leaf already, half of that. */
static bool makes_leaf(const struct coll_lateness *late, const struct coll_late_rank *one, bool stops)
{
	const double times = (is_leaf(late, one->rank) ? LEAF_AGAIN : 1) * leaf_weight(one, stops);

	return times >= LEAF_LEAST && times * LEAF_SHARE >= one->met;
}

/* The late ranks of this group, the most frequent first. Returns how many. */
static uint32_t late_in_order(const struct coll_lateness *late, uint32_t ranks, bool stops,
			      const struct coll_late_rank *order[COLL_LATE_RANKS])
{
	const struct coll_late_rank *one;
	uint32_t count = 0, at;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		if (one->rank >= ranks || leaf_weight(one, stops) <= 0)
			continue;
		for (at = count++; at && leaf_weight(order[at - 1], stops) < leaf_weight(one, stops); at--)
			order[at] = order[at - 1];
		order[at] = one;
	}
	return count;
}

/* The first of them that are leaves: few, and apart from the others. */
static uint32_t leaves_count(const struct coll_lateness *late, uint32_t ranks, bool stops,
			     const struct coll_late_rank *const *order, uint32_t known)
{
	const uint32_t most = ranks < LEAF_OF ? 1 : ranks / LEAF_OF;
	uint32_t count = 0, i;

	for (i = 0; i < known && i < most && makes_leaf(late, order[i], stops); i++) {
		const double next = i + 1 < known ? leaf_weight(order[i + 1], stops) : 0;

		if (leaf_weight(order[i], stops) >= LEAF_ABOVE * next)
			count = i + 1;
	}
	return ranks > 2 ? count : 0;
}

static void leaves_add(struct coll_late *leaves, uint32_t at, uint32_t rank)
{
	for (; at && leaves->rank[at - 1] > rank; at--)
		leaves->rank[at] = leaves->rank[at - 1];
	leaves->rank[at] = rank;
}

/*
 * The late ranks in memory, in order, with their means: those that come late to their calls, else those
 * that stop. Where ranks share cores, stops are the job's own.
 */
static struct coll_late leaves_found(const struct coll_lateness *late, uint32_t ranks, bool stops)
{
	const struct coll_late_rank *order[COLL_LATE_RANKS];
	uint32_t known = late_in_order(late, ranks, false, order);
	uint32_t count = leaves_count(late, ranks, false, order, known), i;
	struct coll_late leaves = { .ranks = 0 };
	struct coll_late_rank sum = { .rank = 0 };

	if (!count && stops) {
		known = late_in_order(late, ranks, true, order);
		count = leaves_count(late, ranks, true, order, known);
	}
	if (!count)
		return leaves;
	leaves.ranks = ranks;
	for (i = 0; i < COLL_LATE_MAX; i++)
		leaves.rank[i] = COLL_NONE;
	for (i = 0; i < count; i++) {
		leaves_add(&leaves, i, order[i]->rank);
		sum.late += order[i]->late;
		sum.behind += order[i]->behind;
		sum.stops += order[i]->stops;
		sum.stopped += order[i]->stopped;
		sum.met += order[i]->met;
		sum.waited += order[i]->waited;
	}
	leaves.part = noise_round(fmin(sum.late / sum.met, 1));
	leaves.behind = sum.late > 0 ? noise_round(fmin(sum.behind / sum.late, duration_most)) : 0;
	if (stops && sum.stops > 0 && sum.waited > 0)
		leaves.stops = noise_within(noise_round(sum.stops / sum.waited),
					    noise_round(sum.stopped / sum.stops));
	leaves.alone = sum.stops > 0 &&
		       sum.stops * LEAF_SHARE >= all_classes(late).stops * (LEAF_SHARE - 1);
	return leaves;
}

static bool same_leaves(const struct coll_late *one, const struct coll_late *other)
{
	bool same = one->ranks == other->ranks && one->alone == other->alone;
	uint32_t i;

	for (i = 0; same && one->ranks && i < COLL_LATE_MAX; i++)
		same = one->rank[i] == other->rank[i];
	return same;
}

/* So few events, and numbers that change by half each time they are looked at: not to follow. */
static bool leaves_differ(const struct coll_late *counts, const struct coll_late *found)
{
	const double cost = counts->part * counts->behind, now = found->part * found->behind;

	return !same_leaves(counts, found) || has_changed(cost, now, LEAF_LEAST) ||
	       has_changed(counts->stops.rate, found->stops.rate, LEAF_LEAST);
}

/* Late ranks begin to count, change or end, all for 2 s at least. Returns whether they did. */
static bool leaves_follow(struct coll_lateness *late, const struct coll_samples_found *found)
{
	const struct coll_late leaves = leaves_found(late, found->shared ? 0 : found->ranks,
						     found->own_cores && found->held);

	late->leaves_age += found->seconds > 0 ? found->seconds : memory_seconds;
	if (!leaves_differ(&late->leaves, &leaves) ||
	    (late->leaves.ranks && late->leaves_age < memory_seconds))
		return false;
	late->leaves = leaves;
	late->leaves_age = 0;
	return true;
}

/* Without accounts, where ranks share cores, a rank without a core looks like a late message. */
static bool tells_noise(const struct coll_samples_found *found)
{
	return found->looks && (found->held || found->own_cores);
}

bool coll_lateness(struct coll_machine *machine, struct coll_lateness *late,
		   const struct coll_samples_found *found)
{
	const bool given = noise_is_given(&machine->link_noise, &late->link) ||
			   noise_is_given(&machine->noise[0], &late->rank);
	bool changed, leaves;

	coll_colld_noise_take(&late->colld, found);
	if (tells_noise(found)) {
		late_add(late, machine, found);
		changed = !given && late_follow(late, found);
		leaves = leaves_follow(late, found);
	} else {
		changed = !given && (late->link.rate > 0 || late->rank.rate > 0);
		leaves = late->leaves.ranks;
		*late = (struct coll_lateness){ .call = late->call };
	}
	machine->late = late->leaves;
	if (given)	/* as many ranks have that as the option says */
		machine->late.alone = false;
	if (!changed && !leaves)
		return false;
	late->call = found->call;
	if (!changed)
		return true;
	machine->link_noise = late->link;
	machine->noise[0] = late->rank;
	return true;
}
