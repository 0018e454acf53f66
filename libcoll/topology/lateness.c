// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "colld_noise.h"
#include "costs.h"
#include "counted_noise.h"
#include "libcoll/base/fit.h"
#include "late_calls.h"
#include "late_links.h"
#include "late_ranks.h"
#include "lateness.h"

enum {
	WAITED_PART = 4,	/* of the usual time a rank waited at least: else it came later */
	USUAL_SAMPLES_MIN = 4,	/* fewer do not tell the quartile */
	MEMORY_EXCHANGES = 2000,	/* of links: one in 300 that is late keeps more than LATE_LEAST */
	EXCHANGES_MIN = 4,	/* fewer in time do not tell that there is no noise */
};

static const double forgotten_most = 0.5;

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
		coll_late_ranks_stop(late, sample->rank[i], sample->held[i] * 1e-9);
		any = true;
	}
	return any;
}

/* ---- all of it ------------------------------------------------------------------- */

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

static void exchange_add(struct coll_lateness *late, const struct coll_sample *sample, double usual)
{
	struct coll_late_sums *sums = &late->of[sample->class];
	const double excess = exchange_excess(sample, usual);
	struct coll_late_sums all;
	bool stopped;

	sums->exchanges++;
	sums->looked++;
	sums->usual += usual;
	sums->late += excess > 0;
	sums->excess += excess;
	stopped = stops_add(late, sample, usual);
	all = all_classes(late);
	coll_counted_look(&late->late_quiet, excess > 0, all.late, all.exchanges);
	coll_counted_look(&late->stop_quiet, stopped, all.stops, all.looked);
	coll_late_ranks_add(late, sample, usual, excess <= 0);
	coll_late_links_add(&late->links, sample, usual, excess);
}

/*
 * Where calls are long, as noise makes them, two surveys have some fifty exchanges: too few to meet
 * LATE_LEAST late ones, if one in a hundred is late. A rank is looked at for all of the call that it
 * waits, so its stops are met sooner.
 */
static void late_forget(struct coll_lateness *late, double seconds, uint32_t exchanges)
{
	const double keep = seconds > 0 ? fmax(forgotten_most, 1 / (1 + seconds / LATE_MEMORY_SECONDS)) :
					  forgotten_most;
	const double keep_links = fmax(keep, 1 - (double)exchanges / MEMORY_EXCHANGES);
	int class;

	coll_late_calls_fade(&late->calls, keep);
	coll_late_ranks_fade(late, keep);
	coll_late_links_fade(&late->links, keep_links);
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
	double before;

	order_by_run(found, order);
	for (i = 0; i < found->samples; i++)
		exchanges += sample_is_new(&found->sample[i], found);
	late_forget(late, found->seconds, exchanges);
	before = all_classes(late).late;
	for (class = 0; class < COLL_CLASSES; class++)
		scale[class] = usual_scale(machine, class, found);
	for (i = 0; i < found->samples; i++) {
		const struct coll_sample *sample = &found->sample[order[i]];

		if (sample_is_new(sample, found) && coll_usual_alpha(machine, sample->class) > 0)
			exchange_add(late, sample,
				     scale[sample->class] *
					     seconds_by_costs(machine, sample->class, sample->bytes));
	}
	coll_late_calls_add(&late->calls, found, all_classes(late).late > before);
}

/* ---- noise ---------------------------------------------------------------------- */

static struct coll_noise_rate noise_of_ranks(const struct coll_late_sums *all)
{
	return coll_counted_noise(all->stops / all->waited, all->stopped / all->stops);
}

/* Also that there is none: algo/common/algo.h. */
static bool noise_is_given(const struct coll_noise_rate *value, const struct coll_noise_rate *found)
{
	return value->rate > 0 ? !coll_cost_is_found(value->rate, found->rate) : value->duration > 0;
}

/* What is in memory of one kind of noise. */
struct noise_seen {
	struct coll_noise_rate noise;	/* with at least one event */
	double events, exchanges;
	bool ended;			/* those are from before */
};

static bool noise_is_over(const struct noise_seen *seen)
{
	return seen->events < 1 ? seen->exchanges >= EXCHANGES_MIN : seen->ended;
}

static bool noise_differs(const struct coll_noise_rate *counts, const struct noise_seen *seen)
{
	if (counts->rate <= 0)
		return seen->events >= LATE_LEAST;
	return coll_counted_changed(counts->duration, seen->noise.duration, seen->events) ||
	       coll_counted_changed(counts->rate, seen->noise.rate, seen->events);
}

/* Noise begins to count, changes or ends, at this age. Returns whether it did. */
static bool noise_counts(struct coll_noise_rate *counts, double *age, const struct noise_seen *seen)
{
	if (noise_is_over(seen)) {
		if (counts->rate <= 0 || *age < LATE_MEMORY_SECONDS)
			return false;
		*counts = (struct coll_noise_rate){ 0, 0 };
		return true;
	}
	if (seen->noise.rate <= 0 || !noise_differs(counts, seen))
		return false;
	if (counts->rate <= 0)
		*age = 0;
	counts->rate = coll_counted_round(seen->noise.rate);
	counts->duration = coll_counted_round(seen->noise.duration);
	return true;
}

static bool noise_follow(struct coll_noise_rate *counts, double *age, const struct noise_seen *seen, uint32_t now,
			 uint32_t *call)
{
	const bool changed = noise_counts(counts, age, seen);

	if (changed)
		*call = now;
	return changed;
}

/* Memory begins anew: old events of noise that is over do not count once more when a new one comes. */
static void late_end(struct coll_lateness *late, const struct coll_lateness *before)
{
	int class;

	if (before->link.rate > 0 && late->link.rate <= 0)
		late->calls = (struct coll_late_calls){ 0 };
	for (class = 0; class < COLL_CLASSES; class++) {
		if (before->link.rate > 0 && late->link.rate <= 0)
			late->of[class].exchanges = late->of[class].usual = late->of[class].late =
				late->of[class].excess = 0;
		if (before->rank.rate > 0 && late->rank.rate <= 0)
			late->of[class].looked = late->of[class].waited = late->of[class].stops =
				late->of[class].stopped = 0;
	}
}

/*
 * Where one rank's links alone are bad: as if all had its noise, the less often. So a butterfly meets as many
 * events as it does, whatever algorithm the exchanges are of.
 */
static struct noise_seen links_of_bad(const struct coll_late_links *links, uint32_t ranks,
				      struct noise_seen all)
{
	const struct coll_late_link *bad = coll_late_links_bad(links);

	double parts = ranks / 2.;
	uint32_t reached;

	all.ended |= links->ended;
	if (!bad)
		return all;
	for (reached = 2; links->one_link && reached < ranks; reached *= 2)
		parts += ranks / 2.;		/* in one exchange of all */
	return (struct noise_seen){
		.noise = { bad->noise.rate / parts, bad->noise.duration },
		.events = fmax(bad->late, LATE_LEAST), .exchanges = bad->met,
	};
}

/*
 * Calls that were held up tell it where hardly a sample was late: in short ones. Where they told it, and calls do not
 * wait for late messages any more, few samples are no evidence that there are none. That one rank's links are bad, and
 * still are, is told by samples alone.
 */
static struct noise_seen links_of_calls(struct coll_lateness *late, const struct coll_late_sums *all,
					struct noise_seen links)
{
	const double usual = all->exchanges > 0 ? all->usual / all->exchanges : 0;
	const struct coll_noise_rate noise = coll_late_calls_noise(&late->calls, usual);
	const bool ended = coll_late_calls_ended(&late->calls);

	late->by_calls = false;
	if (coll_late_links_bad(&late->links))
		return links;
	late->by_calls = noise.rate > 0 && late->calls.seen > links.events && links.events < LATE_LEAST &&
			 (late->calls.go_on || (!links.ended && !ended));
	if (late->by_calls)
		return (struct noise_seen){ .noise = noise, .events = late->calls.seen,
					    .exchanges = late->calls.exchanges };
	links.ended |= ended && late->calls.count;
	if (late->calls.count && noise_is_over(&links) && !links.ended)
		return (struct noise_seen){ .noise = late->link, .events = 1 };
	return links;
}

static bool late_follow(struct coll_lateness *late, const struct coll_samples_found *found)
{
	const struct coll_late_sums all = all_classes(late);
	const struct coll_lateness before = *late;
	struct noise_seen links = { { 0, 0 }, all.late, all.exchanges, coll_counted_ended(&late->late_quiet) };
	struct noise_seen ranks = { { 0, 0 }, all.stops, all.looked, coll_counted_ended(&late->stop_quiet) };
	const double seconds = found->seconds > 0 ? found->seconds : LATE_MEMORY_SECONDS;
	bool changed;

	late->link_age += seconds;
	late->rank_age += seconds;
	if (all.late >= 1)
		links.noise = coll_counted_link_noise(all.late, all.exchanges, all.usual, all.excess);
	if (all.stops >= 1)
		ranks.noise = noise_of_ranks(&all);
	links = links_of_bad(&late->links, found->ranks, links);
	links = links_of_calls(late, &all, links);
	changed = noise_follow(&late->link, &late->link_age, &links, found->call, &late->link_call);
	late->calls.count = changed ? late->by_calls : late->calls.count;
	late->by_colld = !found->own_cores || !found->held;	/* the messages do not tell them */
	if (late->by_colld) {
		ranks = (struct noise_seen){ .exchanges = EXCHANGES_MIN };
		ranks.events = coll_colld_noise(&late->colld, &ranks.noise);
		ranks.noise = coll_counted_noise(ranks.noise.rate, ranks.noise.duration);
	}
	changed |= noise_follow(&late->rank, &late->rank_age, &ranks, found->call, &late->rank_call);
	if (changed)
		late_end(late, &before);
	return changed;
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
	const struct coll_late was = machine->late;
	bool changed, leaves, alone;

	coll_colld_noise_take(&late->colld, found);
	if (tells_noise(found)) {
		late_add(late, machine, found);
		coll_late_links_follow(&late->links, found->shared ? 0 : found->ranks,
				       found->seconds > 0 ? found->seconds : LATE_MEMORY_SECONDS);
		changed = !given && late_follow(late, found);
		leaves = coll_late_ranks_follow(late, found, all_classes(late).stops);
	} else {
		changed = !given && (late->link.rate > 0 || late->rank.rate > 0);
		leaves = late->leaves.ranks;
		*late = (struct coll_lateness){ .link = { 0, 0 } };
	}
	machine->late = late->leaves;
	if (given)	/* as many ranks have that as the option says */
		machine->late.alone = machine->late.links_alone = false;
	/* Noise may be given, or not be any more, since: plans from before would go by other numbers than new ones. */
	alone = machine->late.alone != was.alone || machine->late.links_alone != was.links_alone;
	if (leaves)
		late->leaves_call = found->call;
	if (changed) {
		machine->link_noise = late->link;
		machine->noise[0] = late->rank;
	}
	return changed || leaves || alone;
}
