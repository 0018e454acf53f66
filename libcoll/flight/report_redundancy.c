// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <string.h>

#include "algo/redundancy/redundancy.h"
#include "report_redundancy.h"

enum {
	RELAYS_MOST = 3,
	RANKS_LEAST = 4,	/* of two or three there is no other way for a result */
	EVENTS_LEAST = 3,	/* fewer are no noise */
	STOLEN_LEAST_NS = 20000,
};

/* Of latency, in which a rank can do nothing else: as of a machine that nobody has measured. */
static const double overhead_part = 0.1;

static bool has_redundancy(const struct coll_flight_call *call)
{
	return !strcmp(call->algo, "butterfly-redundant") || !strcmp(call->algo, "butterfly-relayed") ||
	       !strcmp(call->algo, "butterfly-leaf") || !strcmp(call->algo, "butterfly-leaf-last");
}

/* Allreduces of all ranks have T and leaves; those that use them already say nothing of what they would gain. */
static bool site_fits(const struct coll_flight_job *job, const struct report_usual *usual)
{
	const struct coll_flight_page *page = &job->seen[0]->page;
	bool all = false, some = false;
	uint32_t i;

	if (usual->collective != COLL_ALLREDUCE || page->ranks < RANKS_LEAST ||
	    page->ranks > COLL_RANKS_MAX)
		return false;
	for (i = 0; i < COLL_FLIGHT_CALLS; i++) {
		const struct coll_flight_call *call = &page->call[i];

		if (!call->since || call->collective != usual->collective ||
		    call->count * call->element != usual->bytes)
			continue;
		*(call->ranks == page->ranks ? &all : &some) = true;
		if (call->ranks == page->ranks && has_redundancy(call))
			return false;
	}
	/* Neither: the calls have left the record. */
	return all || !some;
}

/* ---- the machine ------------------------------------------------------------ */

/* The slower way: all of a result's messages have to come. */
static double way_ns(const struct report_usual *usual)
{
	return fmax(usual->ns[0], usual->ns[1]);
}

/* Seconds of the shortest message. */
static double latency_of(const struct report_flights *flights)
{
	double least = 0;
	size_t i;

	for (i = 0; i < flights->count; i++) {
		const double ns = way_ns(&flights->usual[i]);

		if (ns > 0 && (ns < least || !(least > 0)))
			least = ns;
	}
	return least / 1e9;
}

/* Of the records that these ranks have in calls of this kind. */
struct stops {
	double took, stolen;		/* ns */
	uint64_t events;
};

static void add_stop(struct stops *stops, const struct coll_flight_timed *run)
{
	const double ns = (double)run->stolen * COLL_FLIGHT_TICK;

	if (!run->ended || run->ended < run->began)
		return;
	stops->took += run->ended - run->began;
	if (ns < STOLEN_LEAST_NS)
		return;
	stops->events++;
	stops->stolen += ns;
}

static struct coll_noise_rate rate_of(const struct stops *stops)
{
	if (stops->events < EVENTS_LEAST || !(stops->took > 0))
		return (struct coll_noise_rate){ 0, 0 };
	return (struct coll_noise_rate){ .rate = 1e9 * stops->events / stops->took,
					 .duration = stops->stolen / stops->events / 1e9 };
}

static struct coll_noise_rate noise_of_ranks(const struct report_runs *runs)
{
	struct stops stops = { 0, 0, 0 };
	size_t i;

	for (i = 0; i < runs->count; i++)
		add_stop(&stops, runs->record[i].run);
	return rate_of(&stops);
}

struct coll_noise_rate coll_report_noise_of_rank(const struct report_runs *runs, const struct report_usual *usual,
						 uint32_t rank)
{
	struct stops stops = { 0, 0, 0 };
	size_t i;

	for (i = 0; i < runs->count; i++)
		if (runs->record[i].rank == rank && runs->record[i].run->collective == usual->collective &&
		    runs->record[i].run->bytes == usual->bytes)
			add_stop(&stops, runs->record[i].run);
	return rate_of(&stops);
}

/* docs/guide/tuning.md, "Noise that the job meets": from the part of late messages to events. */
static struct coll_noise_rate noise_of_messages(const struct report_usual *usual)
{
	const double late = usual->messages ? (double)usual->late / usual->messages : 0;
	double longer;

	if (usual->late < EVENTS_LEAST || late >= 1)
		return (struct coll_noise_rate){ 0, 0 };
	longer = usual->late_ns / usual->late / 1e9;
	return (struct coll_noise_rate){ .rate = -log1p(-late) / (way_ns(usual) / 1e9 + longer),
					 .duration = longer };
}

struct coll_machine coll_report_machine(const struct report_runs *runs, const struct report_usual *usual)
{
	const double alpha = latency_of(runs->flights), way = way_ns(usual) / 1e9;
	struct coll_machine machine = {
		.alpha = alpha, .overhead = overhead_part * alpha, .crowding = 1,
		.beta = usual->bytes ? (way - alpha) / usual->bytes : 0,
		.link_noise = noise_of_messages(usual),
	};

	machine.noise[0] = noise_of_ranks(runs);
	return machine;
}

/* ---- the gain ------------------------------------------------------------------ */

static void take_site(struct report_redundancy *redundancy, const struct report_runs *runs,
		      const struct report_usual *usual, uint32_t ranks)
{
	const struct coll_machine machine = coll_report_machine(runs, usual);
	const struct coll_call call = { .collective = usual->collective, .ranks = ranks, .element = 1,
					.count = usual->bytes };
	const struct coll_redundancy none = { 0, 0 },
				     best = coll_redundancy_best(&call, RELAYS_MOST, &machine);
	const double without = coll_redundancy_delay(&call, none, &machine);

	if (!best.exchanges || !(without > 0))
		return;
	redundancy->site[redundancy->sites++] = (struct redundant_site){
		.collective = usual->collective,
		.bytes = usual->bytes,
		.exchanges = best.exchanges,
		.relays = best.relays,
		.share = fmax(0, 1 - coll_redundancy_delay(&call, best, &machine) / without),
		.price = 1e9 * (coll_redundancy_cost(&call, best, &machine) -
				coll_redundancy_cost(&call, none, &machine)),
	};
}

/* The one with the most messages after `before`, or NULL. */
static const struct report_usual *next_site(const struct coll_flight_job *job,
					    const struct report_flights *flights,
					    const struct report_usual *before)
{
	const struct report_usual *next = NULL;
	size_t i;

	for (i = 0; i < flights->count; i++) {
		const struct report_usual *usual = &flights->usual[i];

		if (!(way_ns(usual) > 0) || !site_fits(job, usual))
			continue;
		if (before && (usual->messages > before->messages ||
			       (usual->messages == before->messages && usual <= before)))
			continue;
		if (!next || usual->messages > next->messages)
			next = usual;
	}
	return next;
}

void coll_report_redundancy_find(struct report_redundancy *redundancy,
				 const struct coll_flight_job *job, const struct report_runs *runs)
{
	const struct report_usual *usual = NULL;

	*redundancy = (struct report_redundancy){ .sites = 0 };
	while (redundancy->fitting < REPORT_REDUNDANT_SITES &&
	       (usual = next_site(job, runs->flights, usual))) {
		redundancy->fit[redundancy->fitting++] = usual;
		take_site(redundancy, runs, usual, job->seen[0]->page.ranks);
	}
}

uint32_t coll_report_fit_of(const struct report_redundancy *redundancy, const struct coll_flight_timed *run)
{
	uint32_t i;

	for (i = 0; i < redundancy->fitting; i++)
		if (redundancy->fit[i]->collective == run->collective && redundancy->fit[i]->bytes == run->bytes)
			break;
	return i;
}

const struct redundant_site *coll_report_redundancy_of(const struct report_redundancy *redundancy,
						       const struct coll_flight_timed *run)
{
	uint32_t i;

	for (i = 0; i < redundancy->sites; i++)
		if (redundancy->site[i].collective == run->collective &&
		    redundancy->site[i].bytes == run->bytes)
			return &redundancy->site[i];
	return NULL;
}
