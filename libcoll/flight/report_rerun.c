// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_rerun.h"

enum {
	GAPS_LEAST = 8,			/* fewer say nothing of what is usual */
	HELD_LEAST_NS = 20000,		/* without a core for less: the rank was not stopped */
	RECORDS_MOST = 65536,		/* that are rerun: of more, some ... */
	CHAIN_MOST = 16,		/* ... in chains of so many runs at most */
};

static double began_at(const struct report_rerun *rerun, const struct report_record *record)
{
	return report_began(record, rerun->runs->base);
}

static double ended_at(const struct report_rerun *rerun, const struct report_record *record)
{
	return report_time(record, rerun->runs->base, record->run->ended);
}

static double ticks_ns(uint32_t count)
{
	return (double)count * COLL_FLIGHT_TICK;
}

/* ---- usual gaps -------------------------------------------------------------- */

struct gap {
	uint32_t index;
	double ns;
};

static int by_gap(const void *left, const void *right)
{
	const struct gap *a = left, *b = right;

	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Between two runs in which the rank was not without a core. */
static size_t find_gaps(const struct report_rerun *rerun, struct gap *gap)
{
	const struct report_runs *runs = rerun->runs;
	size_t found = 0, i;

	for (i = 0; i < runs->count; i++) {
		const struct report_record *record = &runs->record[i],
					   *before = coll_report_find(runs, record, 1, record->rank);

		if (!before || !before->run->ended || ticks_ns(record->run->stolen_before) >= HELD_LEAST_NS)
			continue;
		gap[found++] = (struct gap){ record->index,
					     fmax(0, began_at(rerun, record) - ended_at(rerun, before)) };
	}
	return found;
}

/* The lower quartile: a rank that is stopped while it sleeps has that left of its gap. */
static bool find_usual_gaps(struct report_rerun *rerun)
{
	struct gap *gap = calloc(rerun->runs->count + 1, sizeof(*gap));
	size_t count, first, end;

	if (!gap)
		return false;
	count = find_gaps(rerun, gap);
	qsort(gap, count, sizeof(*gap), by_gap);
	for (first = 0; first < count; first = end) {
		for (end = first + 1; end < count && gap[end].index == gap[first].index; end++)
			;
		if (end - first >= GAPS_LEAST)
			rerun->usual_gap[gap[first].index] = gap[first + (end - first) / 4].ns;
	}
	free(gap);
	return true;
}

/* ---- chains of runs ------------------------------------------------------------ */

/* Runs of the same ranks, one after the other: so many records each, from this one on. */
struct chain {
	size_t first, ranks, runs;
	const struct rerun_less *less;	/* NULL: nothing */
};

static const struct report_record *chain_run(const struct report_rerun *rerun,
					     const struct chain *chain, size_t run)
{
	return &rerun->runs->record[chain->first + run * chain->ranks];
}

static struct rerun_less less_of(const struct chain *chain, const struct report_record *record)
{
	return chain->less ? chain->less[record->index] : (struct rerun_less){ .stolen = 0 };
}

/* Of `ns`, what the rank was without a core: it is met once, and taken off. */
static double meet_held(struct rerun_rank *rank, double *ns)
{
	const double held = fmin(rank->held, *ns);

	rank->held -= held;
	*ns -= held;
	return held;
}

/* ---- before a run ---------------------------------------------------------------- */

/* What the ranks that are not late take at most. Negative: there are none. */
static double others_work(const struct report_rerun *rerun, const struct chain *chain,
			  const struct report_record *first)
{
	double most = -1;
	size_t i;

	for (i = 0; i < chain->ranks; i++)
		if (!(less_of(chain, &first[i]).late > 0))
			most = fmax(most, rerun->rank[i].work);
	return most;
}

static double gap_instead(const struct report_rerun *rerun, const struct chain *chain,
			  const struct report_record *record, const struct rerun_rank *rank, double others)
{
	const struct rerun_less less = less_of(chain, record);
	const bool alone = record->run->number == chain_run(rerun, chain, 0)->run->number;
	double back = less.stolen * (rank->gap - rank->work);

	if (!alone)	/* before the first run of all the gap is not known */
		back = fmin(back, fmax(0, rank->gap - rerun->usual_gap[record->index]));
	if (others >= 0)
		back += fmin(fmax(0, rank->work - others), less.late * rank->work);
	return fmax(0, rank->gap - back);
}

static void begin_run(struct report_rerun *rerun, const struct chain *chain,
		      const struct report_record *first)
{
	double others;
	size_t i;

	for (i = 0; i < chain->ranks; i++) {
		struct rerun_rank *rank = &rerun->rank[i];

		rank->gap = fmax(0, began_at(rerun, &first[i]) - rank->actual);
		rank->work = fmax(0, rank->gap - ticks_ns(first[i].run->stolen_before));
	}
	others = others_work(rerun, chain, first);
	for (i = 0; i < chain->ranks; i++) {
		struct rerun_rank *rank = &rerun->rank[i];

		rank->instead += gap_instead(rerun, chain, &first[i], rank, others);
		rank->actual = began_at(rerun, &first[i]);
		rank->held = ticks_ns(first[i].run->stolen);
	}
}

/* ---- in a run ----------------------------------------------------------------------- */

static int by_event(const void *left, const void *right)
{
	const struct rerun_event *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->arrived - b->arrived;
}

static size_t find_events(struct report_rerun *rerun, const struct chain *chain,
			  const struct report_record *first)
{
	size_t found = 0, i;
	uint32_t k;

	for (i = 0; i < chain->ranks; i++)
		for (k = 0; k < first[i].run->exchanges; k++) {
			const struct coll_flight_exchange *with = &first[i].run->with[k];
			const double since = began_at(rerun, &first[i]);

			if (with->sent)
				rerun->event[found++] = (struct rerun_event){
					since + ticks_ns(with->sent), i, k, false };
			if (with->arrived)
				rerun->event[found++] = (struct rerun_event){
					since + ticks_ns(with->arrived), i, k, true };
		}
	qsort(rerun->event, found, sizeof(*rerun->event), by_event);
	return found;
}

/* The rank goes on by itself until then. */
static void go_on(struct rerun_rank *rank, struct rerun_less less, double until)
{
	const double all = fmax(0, until - rank->actual);
	double rest = all;

	rank->instead += all - less.stolen * meet_held(rank, &rest);
	rank->actual = fmax(rank->actual, until);
}

struct sent {
	double actual;
	struct rerun_sent would;
};

/* Where it is not known when: after the latest that the sender did. */
static struct sent when_sent(const struct report_rerun *rerun, const struct report_record *first,
			     const struct report_record *sender, uint32_t to, double arrived)
{
	const struct coll_flight_exchange *with = report_exchange(sender->run, to);
	const struct rerun_rank *rank = &rerun->rank[sender - first];
	const double at = with ? began_at(rerun, sender) + ticks_ns(with->sent) : 0;

	if (with && with->sent && at <= arrived)
		return (struct sent){ at, rerun->sent[sender - first][with - sender->run->with] };
	return (struct sent){ rank->actual, { rank->instead, rank->held } };
}

/*
 * Of what a message took longer than is usual while it was waited for, its receiver was without a core, then its
 * sender; the rest is the message's. Returns what would not have been.
 */
static double message_back(const struct report_rerun *rerun, const struct chain *chain,
			   const struct report_record *to, const struct report_record *from,
			   struct rerun_rank *rank, double held, double longer)
{
	double back = less_of(chain, to).stolen * meet_held(rank, &longer);

	held = fmin(held, longer);
	back += less_of(chain, from).stolen * held;
	longer -= held;
	if (less_of(chain, to).messages && (from->host == to->host || longer > rerun->runs->blur))
		back += longer;
	return back;
}

/* A message comes, from `since` on waited for: it was due by then, or its way took what it took. */
static void receive_waited(struct report_rerun *rerun, const struct chain *chain, const struct report_record *to,
			 const struct report_record *from, struct rerun_rank *rank, struct sent sent,
			 double until)
{
	const double usual = coll_report_usual_ns(rerun->runs->flights, to->run, from->host != to->host),
		     way = fmax(0, until - sent.actual), due = sent.actual + usual, since = rank->actual,
		     longer = fmax(0, until - fmax(due, since)),
		     back = message_back(rerun, chain, to, from, rank, sent.would.held, longer);

	if (due > since)
		rank->instead = fmax(rank->instead, sent.would.instead + way - back);
	else
		rank->instead = fmax(rank->instead, sent.would.instead + fmin(usual, way)) + longer - back;
	rank->actual = until;
}

static void receive_message(struct report_rerun *rerun, const struct chain *chain,
		    const struct report_record *first, const struct rerun_event *event)
{
	const struct report_record *to = &first[event->at];
	const struct coll_flight_exchange *with = &to->run->with[event->exchange];
	const struct report_record *from = coll_report_of_rank(first, chain->ranks, with->peer);
	struct rerun_rank *rank = &rerun->rank[event->at];

	go_on(rank, less_of(chain, to),
	      report_waited(with) ? began_at(rerun, to) + ticks_ns(with->posted) : event->time);
	if (from) {
		receive_waited(rerun, chain, to, from, rank,
			     when_sent(rerun, first, from, to->rank, event->time), event->time);
		return;
	}
	rank->instead += event->time - rank->actual;
	rank->actual = event->time;
}

static void walk_run(struct report_rerun *rerun, const struct chain *chain,
		     const struct report_record *first)
{
	size_t events, i;

	begin_run(rerun, chain, first);
	events = find_events(rerun, chain, first);
	for (i = 0; i < events; i++) {
		const struct rerun_event *event = &rerun->event[i];
		struct rerun_rank *rank = &rerun->rank[event->at];

		if (event->arrived) {
			receive_message(rerun, chain, first, event);
			continue;
		}
		go_on(rank, less_of(chain, &first[event->at]), event->time);
		rerun->sent[event->at][event->exchange] = (struct rerun_sent){ rank->instead, rank->held };
	}
	for (i = 0; i < chain->ranks; i++)
		go_on(&rerun->rank[i], less_of(chain, &first[i]), ended_at(rerun, &first[i]));
}

/* ---- all runs -------------------------------------------------------------------------- */

/* All begin together, each with what it was without a core before the first run. */
static void start_chain(struct report_rerun *rerun, const struct chain *chain)
{
	const struct report_record *first = chain_run(rerun, chain, 0);
	double together = INFINITY;
	size_t i;

	for (i = 0; i < chain->ranks; i++)
		together = fmin(together, began_at(rerun, &first[i]) - ticks_ns(first[i].run->stolen_before));
	for (i = 0; i < chain->ranks; i++)
		rerun->rank[i] = (struct rerun_rank){ .actual = together, .instead = together };
}

/* At the end of the first run, with the ranks as far apart as they are now, at the end of the last. */
static void start_again(struct report_rerun *rerun, const struct chain *chain)
{
	const struct report_record *first = chain_run(rerun, chain, 0);
	double apart = 0;
	size_t i;

	for (i = 0; i < chain->ranks; i++)
		apart += (ended_at(rerun, &first[i]) - rerun->rank[i].instead) / chain->ranks;
	for (i = 0; i < chain->ranks; i++) {
		rerun->rank[i].instead += apart;
		rerun->rank[i].actual = ended_at(rerun, &first[i]);
	}
}

static double sum_of_ranks(const struct report_rerun *rerun, const struct chain *chain)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < chain->ranks; i++)
		sum += rerun->rank[i].instead;
	return sum;
}

/*
 * How far the ranks were apart before the first run is not known, unless it is the job's first: then it is what they are
 * at the end, and the first run does not count.
 */
static void walk_chain(struct report_rerun *rerun, const struct chain *chain, double *took)
{
	const bool whole = !chain_run(rerun, chain, 0)->run->number;
	double before, now;
	size_t run;

	start_chain(rerun, chain);
	if (!whole) {
		for (run = 0; run < chain->runs; run++)
			walk_run(rerun, chain, chain_run(rerun, chain, run));
		start_again(rerun, chain);
	}
	before = sum_of_ranks(rerun, chain);
	for (run = !whole; run < chain->runs; run++) {
		walk_run(rerun, chain, chain_run(rerun, chain, run));
		now = sum_of_ranks(rerun, chain);
		took[chain->first + run * chain->ranks] = now - before;
		rerun->counts[chain->first + run * chain->ranks] = true;
		before = now;
	}
}

/* Whether the run at `at` is one more of the chain. */
static bool is_next(const struct report_rerun *rerun, const struct chain *chain, size_t at)
{
	const struct report_runs *runs = rerun->runs;
	const struct report_record *first = &runs->record[chain->first], *record = &runs->record[at];
	size_t i;

	if (at >= runs->count || coll_report_run_end(runs, at) - at != chain->ranks ||
	    (rerun->every > 1 && chain->runs == CHAIN_MOST))
		return false;
	for (i = 0; i < chain->ranks; i++)	/* a page may have a run twice */
		if ((i && record[i].rank <= record[i - 1].rank) || record[i].run->group != first[i].run->group || record[i].rank != first[i].rank ||
		    record[i].run->number != first[i].run->number + chain->runs ||
		    !record[i].run->ended || record[i].run->ended < record[i].run->began)
			return false;
	return true;
}

static bool has_host(const struct report_rerun *rerun, const struct chain *chain, uint32_t host)
{
	const struct report_record *first = chain_run(rerun, chain, 0);
	size_t i;

	for (i = 0; i < chain->ranks; i++)
		if (first[i].host == host)
			return true;
	return host == RERUN_ALL_HOSTS;
}

static void walk_all(struct report_rerun *rerun, const struct rerun_less *less, uint32_t host,
		     double *took)
{
	const struct report_runs *runs = rerun->runs;
	size_t at = 0, chains = 0;

	memset(took, 0, (runs->count + 1) * sizeof(*took));
	while (at < runs->count) {
		struct chain chain = { .first = at, .ranks = coll_report_run_end(runs, at) - at };

		while (is_next(rerun, &chain, at)) {
			chain.runs++;
			at += chain.ranks;
		}
		if (!chain.runs)
			at += chain.ranks;
		chain.less = has_host(rerun, &chain, host) ? less : NULL;
		if (chain.runs && chain.ranks > 1 && chains++ % rerun->every == 0)
			walk_chain(rerun, &chain, took);
	}
}

/* A run. */
static void add_took(const struct report_runs *runs, size_t first, size_t end, struct report_took *took)
{
	size_t i;

	for (i = first; i < end; i++) {
		const double ns = runs->record[i].run->ended - runs->record[i].run->began;

		took->ns += ns;
		took->block += ns;
	}
}

/* What is saved in all runs that count. *whole: what these took with all that came before each. */
static struct report_saved saved_once(struct report_rerun *rerun, const struct rerun_less *less, uint32_t host,
				      double *whole)
{
	const struct report_runs *runs = rerun->runs;
	struct report_saved saved = { .ns = 0 };
	struct report_took took = { .ns = 0 };
	size_t first, end;

	*whole = 0;
	walk_all(rerun, less, host, rerun->instead);
	for (first = 0; first < runs->count; first = end) {
		end = coll_report_run_end(runs, first);
		if (rerun->counts[first]) {
			add_took(runs, first, end, &took);
			*whole += rerun->actual[first];
			saved.block += rerun->actual[first] - rerun->instead[first];
			saved.ns += rerun->actual[first] - rerun->instead[first];
		}
		if (end == runs->count || !coll_report_same_block(&runs->record[first], &runs->record[end])) {
			coll_report_saved_end_block(&saved, &took);
			coll_report_took_end_block(&took);
		}
	}
	rerun->took = took;
	return saved;
}

/* Of what is left, that part of the time that ranks without a core cost is not more than this. */
static const double left_most = 0.9;

/*
 * In T, S would be saved, and stops that are left cost L. In the T' that it would take there are T' / T of them, so T' =
 * T - S - L + L T' / T: saved is S / (1 - L / T).
 */
struct report_saved coll_report_rerun(struct report_rerun *rerun, const struct rerun_less *less, uint32_t host)
{
	double whole, left, times;
	struct report_saved saved, calm;
	size_t i;

	for (i = 0; i < rerun->ranks; i++) {
		rerun->calm[i] = less[i];
		rerun->calm[i].stolen = 1;
	}
	calm = saved_once(rerun, rerun->calm, host, &whole);
	saved = saved_once(rerun, less, host, &whole);
	left = whole > 0 ? fmax(0, calm.ns - saved.ns) / whole : 0;
	times = 1 / (1 - fmin(left, left_most));
	saved.ns *= times;
	saved.with_took *= times;
	saved.squares *= times * times;
	return saved;
}

struct report_interval coll_report_rerun_interval(const struct report_rerun *rerun,
						  const struct report_saved *saved,
						  const struct report_took *all, double scale, double seconds)
{
	const double of_all = rerun->took.ns > 0 ? all->ns / rerun->took.ns : 0;

	return coll_report_interval(saved, &rerun->took, scale * of_all, seconds);
}

int coll_report_rerun_open(struct report_rerun *rerun, const struct report_runs *runs, size_t ranks)
{
	*rerun = (struct report_rerun){
		.runs = runs,
		.ranks = ranks,
		.calm = calloc(ranks, sizeof(*rerun->calm)),
		.usual_gap = calloc(ranks, sizeof(*rerun->usual_gap)),
		.rank = calloc(ranks, sizeof(*rerun->rank)),
		.event = calloc(2 * COLL_FLIGHT_EXCHANGES * ranks, sizeof(*rerun->event)),
		.sent = calloc(ranks, sizeof(*rerun->sent)),
		.every = (runs->count + RECORDS_MOST - 1) / RECORDS_MOST,
		.counts = calloc(runs->count + 1, sizeof(*rerun->counts)),
		.actual = calloc(runs->count + 1, sizeof(*rerun->actual)),
		.instead = calloc(runs->count + 1, sizeof(*rerun->instead)),
	};
	rerun->every += !rerun->every;
	if (!rerun->calm || !rerun->counts || !rerun->usual_gap || !rerun->rank || !rerun->event || !rerun->sent || !rerun->actual ||
	    !rerun->instead || !find_usual_gaps(rerun))
		return -ENOMEM;
	walk_all(rerun, NULL, RERUN_ALL_HOSTS, rerun->actual);
	return 0;
}

void coll_report_rerun_close(struct report_rerun *rerun)
{
	free(rerun->calm);
	free(rerun->counts);
	free(rerun->usual_gap);
	free(rerun->rank);
	free(rerun->event);
	free(rerun->sent);
	free(rerun->actual);
	free(rerun->instead);
}
