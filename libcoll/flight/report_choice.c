// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the choice of algorithms and segments has cost: calls of one collective and of a size within
 * the same octave, made in different ways, are compared by their own times; else the model's least is
 * compared with what it says of the choice.
 */
#include <math.h>
#include <string.h>

#include "report_tally.h"

enum {
	ALONES_LEAST = 8,	/* timed runs of a choice that is compared */
	/* ... of which there are no more: each has all ranks, of which the first has so many runs. */
	COMPARED_MOST = COLL_FLIGHT_TIMED / ALONES_LEAST,
};

/* The choices that are compared. */
struct compared {
	const struct coll_flight_site *site[COMPARED_MOST];
	uint32_t sites;
};

const char *const coll_flight_regret_names[COLL_FLIGHT_REGRETS] = {
	"not-known", "times", "model",
};

/* ---- times -------------------------------------------------------------------- */

/* The first rank says which call a run was, unless another call has got the entry since. */
static struct coll_flight_site *site_of(struct coll_flight_report *report,
					const struct coll_flight_job *job,
					const struct report_record *record)
{
	const struct coll_flight_timed *run = record->run;
	const struct coll_flight_call *call =
		run->call < COLL_FLIGHT_CALLS ? &job->seen[record->index]->page.call[run->call] : NULL;
	uint32_t i;

	if (!call || !call->since || call->since > run->began)
		return NULL;
	for (i = 0; i < report->sites; i++) {
		struct coll_flight_site *site = &report->site[i];

		if (site->collective == run->collective && site->bytes == run->bytes &&
		    site->ranks == call->ranks && site->type == call->type &&
		    site->reduction == call->reduction && site->segment == call->segment && site->asked == !!call->asked &&
		    !strncmp(site->algo, call->algo, sizeof(site->algo) - 1))
			return site;
	}
	return NULL;
}

/*
 * From the last rank's begin to the last one's end, if all were there: what the run takes without
 * waiting for late ranks. ns, or less than 0: not known.
 */
static double run_alone(const struct coll_flight_report *report, const struct report_runs *runs,
			size_t first, size_t end)
{
	double began = -INFINITY, ended = -INFINITY;
	size_t i;

	if (end - first != report->ranks || !isfinite(runs->blur))
		return -1;
	for (i = first; i < end; i++) {
		const struct report_record *one = &runs->record[i];

		if (!one->run->ended)
			return -1;
		began = fmax(began, report_began(one, runs->base));
		ended = fmax(ended, report_time(one, runs->base, one->run->ended));
	}
	return ended - began;
}

void coll_report_choice_run(struct coll_flight_report *report, const struct coll_flight_job *job,
			    const struct report_runs *runs, size_t first, size_t end)
{
	const double alone = run_alone(report, runs, first, end) / 1e9,
		     shortest = alone + runs->blur / 1e9;
	struct coll_flight_site *site;

	if (!(shortest > 0) || alone < 0)
		return;
	site = site_of(report, job, &runs->record[first]);
	if (!site)
		return;
	if (shortest < site->shortest || !(site->shortest > 0))
		site->shortest = shortest;
	site->alones++;
	site->alone += alone;
	site->alone_squares += alone * alone;
}

/* ---- regret ------------------------------------------------------------------------ */

static double alone_mean(const struct coll_flight_site *site)
{
	return site->alone / site->alones;
}

/* Of the mean, squared. */
static double alone_error(const struct coll_flight_site *site)
{
	const double n = site->alones, mean = alone_mean(site);

	return fmax(0, site->alone_squares / n - mean * mean) / (n - 1);
}

/* Of a call with fewer bytes: it would have taken longer by these, at most. */
static double larger_by(const struct coll_flight_site *site, const struct coll_flight_site *other)
{
	return other->bytes && site->bytes > other->bytes ?
		       (double)site->bytes / other->bytes : 1;
}

static bool is_same_choice(const struct coll_flight_site *a, const struct coll_flight_site *b)
{
	return a->segment == b->segment && !strcmp(a->algo, b->algo);
}

static int octave_of(uint64_t bytes)
{
	return bytes ? 64 - __builtin_clzll(bytes) : 0;
}

static bool is_comparable(const struct coll_flight_site *site,
			  const struct coll_flight_site *other)
{
	return site->collective == other->collective && site->ranks == other->ranks &&
	       site->type == other->type && site->reduction == other->reduction &&
	       octave_of(site->bytes) == octave_of(other->bytes) && !is_same_choice(site, other);
}

static void find_compared(const struct coll_flight_report *report, struct compared *compared)
{
	uint32_t i;

	compared->sites = 0;
	for (i = 0; i < report->sites && compared->sites < COMPARED_MOST; i++)
		if (report->site[i].alones >= ALONES_LEAST)
			compared->site[compared->sites++] = &report->site[i];
}

/* The other choice that would take the least time here. NULL: the job has none. */
static const struct coll_flight_site *best_other(const struct compared *compared,
						 const struct coll_flight_site *site)
{
	const struct coll_flight_site *best = NULL;
	double least = INFINITY;
	uint32_t i;

	for (i = 0; site->alones >= ALONES_LEAST && i < compared->sites; i++) {
		const struct coll_flight_site *other = compared->site[i];

		if (!is_comparable(site, other) ||
		    alone_mean(other) * larger_by(site, other) >= least)
			continue;
		best = other;
		least = alone_mean(other) * larger_by(site, other);
	}
	return best;
}

/* Less than the spread of the times explains is no regret. */
static void regret_by_times(struct coll_flight_site *site, const struct coll_flight_site *best,
			    double calls)
{
	const double larger = larger_by(site, best), time = alone_mean(best) * larger;
	const uint64_t fewest = site->alones < best->alones ? site->alones : best->alones;
	const double spread = coll_report_nine_of_ten(fewest - 1) *
			      sqrt(alone_error(site) + larger * larger * alone_error(best));
	const double longer = alone_mean(site) - time;

	site->regret = (struct coll_flight_regret){
		.by = COLL_FLIGHT_REGRET_BY_TIMES,
		.seconds = longer > spread ? longer * calls : 0,
		.least = fmax(0, longer - spread) * calls,
		.most = fmax(0, longer + spread) * calls,
		.segment = best->segment,
		.bytes = best->bytes,
		.time = time,
	};
	memcpy(site->regret.algo, best->algo, sizeof(site->regret.algo));
}

/* Where auto has taken the model's best, the model would compare that with itself. */
static void regret_by_model(struct coll_flight_site *site, double calls)
{
	site->regret = (struct coll_flight_regret){ .least = -1, .most = -1 };
	if (!(site->predicted > 0) || !(site->best > 0) ||
	    (!site->asked && site->predicted <= site->best))
		return;
	site->regret.by = COLL_FLIGHT_REGRET_BY_MODEL;
	site->regret.seconds = fmax(0, site->predicted - site->best) * calls;
}

/* Nothing would have made the calls shorter than no time. */
static void regret_within(struct coll_flight_regret *regret, double seconds)
{
	regret->seconds = fmin(regret->seconds, seconds);
	regret->least = fmin(regret->least, seconds);
	regret->most = fmin(regret->most, seconds);
}

void coll_report_take_regrets(struct coll_flight_report *report)
{
	struct compared compared;
	uint32_t i;

	find_compared(report, &compared);
	for (i = 0; i < report->sites; i++) {
		struct coll_flight_site *site = &report->site[i];
		const struct coll_flight_site *best = best_other(&compared, site);
		const double calls = (double)site->sum.runs / report->here;

		if (best)
			regret_by_times(site, best, calls);
		else
			regret_by_model(site, calls);
		regret_within(&site->regret, site->sum.ns / 1e9 / report->here);
		if (site->asked)
			continue;
		report->regret[site->regret.by] += site->regret.seconds;
		report->by_auto[site->regret.by] += calls;
	}
}
