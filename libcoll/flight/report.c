// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report's sums, and what was lost in the timed runs, added up and ranked. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "report_path.h"
#include "timed.h"

enum {
	SENDERS = 8,	  /* of late messages to a rank that are told apart */
	NOTED_NS = 20000, /* a loss of less is no event */
	ONE_SENDER = 70,  /* per cent of the late messages: then the sender is named */
	ONE_PARITY = 85,  /* ... of the runs that have a loss: then it is every other run */
	ALTERNATE_RUNS = 16,
	CAUSES = 128,	  /* losses whose cause is looked for: each looks at all ranks */
	SKEWED = 2,	  /* times: the timed calls' mean is so far from that of all */
};

const char *const coll_flight_loss_names[COLL_FLIGHT_LOSS_KINDS] = {
	"late-rank",
	"no-core",
	"late-messages",
};

/* Of one rank and kind. */
struct loss_tally {
	double ns;		     /* of all ranks that waited */
	struct report_saved saved;
	double in[COLL_COLLECTIVES]; /* of ns */
	double most, noted;	     /* of the run that is looked at; of all runs that had it */
	uint64_t runs, odd;	     /* odd: of those runs, by their numbers */
	struct {
		uint32_t rank;
		double ns;
	} from[SENDERS];
};

struct report_tally {
	struct coll_flight_report *report;
	const struct coll_flight_job *job;
	struct report_record *record;
	size_t records;
	uint64_t base;
	struct report_flights flights;
	struct loss_tally *of[COLL_FLIGHT_LOSS_KINDS]; /* per index of job->seen */
	struct report_took took;		       /* of all timed runs on all ranks ... */
	double unknown;				       /* ... ns lost in them to what is not known */
	uint64_t runs, followed;		       /* ... and each on so many ranks, together */
	double left;				       /* ns of the rank that is followed, without a cause */
	/* Of the run that is looked at. */
	uint32_t collective;
	double others;		/* ranks that the mean of all is divided by, for that of all but one */
	double second_began, would_wait; /* for the second: what is not saved without the last */
};

/* ---- the timed runs ------------------------------------------------------ */

static int by_run(const void *left, const void *right)
{
	const struct report_record *a = left, *b = right;

	if (a->run->group != b->run->group)
		return a->run->group < b->run->group ? -1 : 1;
	if (a->run->number != b->run->number)
		return a->run->number < b->run->number ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static uint32_t highest_level(const struct coll_flight_job *job)
{
	uint32_t highest = 0;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (job->seen[i]->page.timed_level > highest)
			highest = job->seen[i]->page.timed_level;
	return highest;
}

/* The index of its first rank. */
static uint32_t host_of(const struct coll_flight_job *job, size_t index)
{
	size_t i;

	for (i = 0; i < index; i++)
		if (!strcmp(job->seen[i]->page.host, job->seen[index]->page.host))
			break;
	return i;
}

static void take_records(struct report_tally *tally, const struct coll_flight_job *job)
{
	const uint32_t level = highest_level(job);
	size_t i;
	uint32_t entry;

	for (i = 0; i < job->count; i++) {
		const struct coll_flight_page *page = &job->seen[i]->page;
		const uint32_t host = host_of(job, i);

		tally->report->hosts += host == i;
		for (entry = 0; entry < COLL_FLIGHT_TIMED; entry++) {
			const struct coll_flight_timed *run = &page->timed[entry];

			if (!run->began || run->collective >= COLL_COLLECTIVES ||
			    coll_flight_draw(run->group, run->number) < level)
				continue;
			tally->record[tally->records++] = (struct report_record){
				.run = run,
				.rank = page->rank,
				.index = i,
				.host = host,
			};
			if (!tally->base)
				tally->base = run->began;
		}
	}
	if (tally->records)
		qsort(tally->record, tally->records, sizeof(*tally->record), by_run);
}

static size_t run_end(const struct report_tally *tally, size_t first)
{
	size_t end = first + 1;

	while (end < tally->records &&
	       coll_report_same_run(&tally->record[first], &tally->record[end]))
		end++;
	return end;
}

/* ---- clocks -------------------------------------------------------------- */

/* The messages of a run, from each record to those of others. */
static size_t run_messages(const struct report_tally *tally, size_t first, size_t end,
			   struct coll_flight_message *message)
{
	size_t found = 0, i;
	uint32_t k;

	for (i = first; i < end; i++)
		for (k = 0; k < tally->record[i].run->exchanges; k++) {
			const struct coll_flight_timed *run = tally->record[i].run;
			const struct coll_flight_exchange *with = &run->with[k], *other = NULL;
			const struct report_record *from =
				coll_report_of_rank(&tally->record[first], end - first, with->peer);

			if (from)
				other = report_exchange(from->run, tally->record[i].rank);
			if (!other || !other->sent || !report_waited(with))
				continue;
			message[found++] = (struct coll_flight_message){
				.from = from->index,
				.to = tally->record[i].index,
				.sent = from->run->began + (uint64_t)other->sent * COLL_FLIGHT_TICK,
				.got = run->began + (uint64_t)with->arrived * COLL_FLIGHT_TICK,
			};
		}
	return found;
}

static void take_clocks(struct report_tally *tally, const struct coll_flight_clocks *clocks)
{
	size_t i;

	for (i = 0; i < tally->records; i++)
		tally->record[i].offset = clocks->offset[tally->record[i].index];
	tally->report->clock_error = clocks->error >= 0 && clocks->late > clocks->error ?
					     clocks->late : clocks->error;
}

/* Of one host all ranks have the same clock. */
static int align_clocks(struct report_tally *tally)
{
	struct coll_flight_message *message;
	struct coll_flight_clocks clocks;
	size_t first, end, count = 0;
	bool aligned = false;

	if (tally->report->hosts < 2)
		return 0;
	message = calloc(tally->records * COLL_FLIGHT_EXCHANGES + 1, sizeof(*message));
	for (first = 0; message && first < tally->records; first = end) {
		end = run_end(tally, first);
		count += run_messages(tally, first, end, message + count);
	}
	if (message) {
		aligned = coll_flight_align(tally->job, message, count, &clocks);
		if (aligned)
			take_clocks(tally, &clocks);
		free(clocks.offset);
	}
	free(message);
	return aligned ? 0 : -ENOMEM;
}

/* ns */
static double clocks_blur(const struct report_tally *tally)
{
	if (tally->report->hosts < 2)
		return 0;
	return tally->report->clock_error < 0 ? INFINITY : 1e9 * tally->report->clock_error;
}

/* ---- losses -------------------------------------------------------------- */

static void add_sender(struct loss_tally *loss, uint32_t from, double ns)
{
	uint32_t i;

	for (i = 0; i < SENDERS; i++) {
		if (loss->from[i].ns > 0 && loss->from[i].rank != from)
			continue;
		loss->from[i].rank = from;
		loss->from[i].ns += ns;
		return;
	}
}

/* The rank's, or NULL: it has no page. */
static struct loss_tally *loss_of(const struct report_tally *tally, enum coll_flight_loss_kind kind,
				  uint32_t rank)
{
	size_t low = 0, high = tally->job->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (tally->job->seen[middle]->page.rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tally->job->count && tally->job->seen[low]->page.rank == rank ?
		       &tally->of[kind][low] : NULL;
}

/* A rank that had no core before its call is late for it, too: report_path.c says so by `from`. */
static bool is_before_call(enum coll_flight_loss_kind kind, uint32_t rank, uint32_t from)
{
	return kind == COLL_FLIGHT_LOSS_LATE || (kind == COLL_FLIGHT_LOSS_STOLEN && from == rank);
}

/* What is saved of ns that the others wait for the last: not what they would wait for the second. */
static double without_last(struct report_tally *tally, double ns)
{
	const double still = ns < tally->would_wait ? ns : tally->would_wait;

	tally->would_wait -= still;
	return (ns - still) * tally->others;
}

/* Of the run that is looked at, some ns of one rank's time: no more than it has taken. */
static void tally_loss(void *argument, enum coll_flight_loss_kind kind, uint32_t rank,
		       uint32_t from, double ns)
{
	struct report_tally *tally = argument;
	struct loss_tally *loss;
	double saved;

	ns = ns < tally->left ? ns : tally->left;
	tally->left -= ns;
	loss = kind < COLL_FLIGHT_LOSS_KINDS ? loss_of(tally, kind, rank) : NULL;
	if (!loss) {
		tally->unknown += ns;
		return;
	}
	if (kind == COLL_FLIGHT_LOSS_LINK)
		add_sender(loss, from, ns);
	saved = is_before_call(kind, rank, from) ? without_last(tally, ns) : ns;
	loss->ns += ns;
	loss->saved.ns += saved;
	loss->saved.block += saved;
	loss->in[tally->collective] += ns;
	if (ns > loss->most)
		loss->most = ns;
}

/* The latest two to begin. */
static void find_last_two(struct report_tally *tally, size_t first, size_t end)
{
	double last = report_began(&tally->record[first], tally->base), second = last;
	size_t i;

	for (i = first + 1; i < end; i++) {
		const double began = report_began(&tally->record[i], tally->base);

		if (i == first + 1 || began > second)
			second = began < last ? began : last;
		if (began > last)
			last = began;
	}
	tally->second_began = second;
}

static void note_events(struct report_tally *tally, uint32_t number)
{
	uint32_t kind;
	size_t i;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (i = 0; i < tally->job->count; i++) {
			struct loss_tally *loss = &tally->of[kind][i];

			if (loss->most >= NOTED_NS) {
				loss->runs++;
				loss->odd += number & 1;
				loss->noted += loss->most;
			}
			loss->most = 0;
		}
}

/*
 * From the last rank's begin to the last one's end, if all were there: what the run takes without
 * waiting for late ranks.
 */
static void take_shortest(struct report_tally *tally, size_t first, size_t end, double blur)
{
	const struct coll_flight_timed *run = tally->record[first].run;
	struct coll_flight_report *report = tally->report;
	double began = -INFINITY, ended = -INFINITY;
	uint32_t site;
	size_t i;

	if (end - first != report->ranks)
		return;
	for (i = first; i < end; i++) {
		const struct report_record *one = &tally->record[i];

		if (!one->run->ended)
			return;
		began = fmax(began, report_began(one, tally->base));
		ended = fmax(ended, report_time(one, tally->base, one->run->ended));
	}
	ended = (ended - began + blur) / 1e9;
	for (site = 0; site < report->sites; site++)
		if (report->site[site].collective == run->collective && ended > 0 &&
		    report->site[site].bytes == run->bytes &&
		    (ended < report->site[site].shortest || !(report->site[site].shortest > 0)))
			report->site[site].shortest = isfinite(ended) ? ended : 0;
}

static void look_at_run(struct report_tally *tally, size_t first, size_t end)
{
	const struct report_runs runs = { tally->record, tally->records, tally->base,
					  &tally->flights, clocks_blur(tally) };
	size_t i;

	tally->collective = tally->record[first].run->collective;
	tally->others = (double)(end - first) / (end - first - 1);
	find_last_two(tally, first, end);
	take_shortest(tally, first, end, runs.blur);
	for (i = first; i < end; i++) {
		const struct coll_flight_timed *one = tally->record[i].run;

		if (!one->ended || one->ended < one->began)
			continue;
		tally->left = one->ended - one->began;
		tally->took.ns += tally->left;
		tally->took.block += tally->left;
		tally->followed++;
		tally->would_wait = fmax(0, tally->second_began -
					    report_began(&tally->record[i], tally->base));
		coll_report_follow(&runs, &tally->record[i], tally_loss, tally);
	}
	note_events(tally, tally->record[first].run->number);
	tally->runs++;
}

static void end_block(struct report_tally *tally)
{
	uint32_t kind;
	size_t i;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (i = 0; i < tally->job->count; i++)
			coll_report_saved_end_block(&tally->of[kind][i].saved, &tally->took);
	coll_report_took_end_block(&tally->took);
}

static bool same_block(const struct report_record *a, const struct report_record *b)
{
	return a->run->group == b->run->group &&
	       a->run->number / COLL_FLIGHT_BLOCK == b->run->number / COLL_FLIGHT_BLOCK;
}

/* ---- ranked -------------------------------------------------------------- */

/* From the time of all ranks in timed runs to that of the job in runs that have ended. */
static double tally_scale(const struct report_tally *tally)
{
	const struct coll_flight_report *report = tally->report;
	const double ended = coll_report_ended_runs(report).ns / 1e9 / report->here,
		     most = report->inside - report->waiting;

	return tally->took.ns > 0 ? (ended < most ? ended : most) / tally->took.ns : 0;
}

/* Few long calls, none of which was timed: then those that were say nothing of the time. */
static void compare_means(struct report_tally *tally)
{
	const struct coll_flight_sum ended = coll_report_ended_runs(tally->report);
	const double all = ended.runs ? ended.ns / 1e9 / ended.runs : 0,
		     timed = tally->followed ? tally->took.ns / 1e9 / tally->followed : 0;

	tally->report->mean = all;
	tally->report->timed_mean = timed;
	tally->report->skewed = timed > 0 && (timed > SKEWED * all || all > SKEWED * timed);
}

static uint32_t main_sender(const struct loss_tally *loss)
{
	uint32_t most = 0, i;

	for (i = 1; i < SENDERS; i++)
		if (loss->from[i].ns > loss->from[most].ns)
			most = i;
	return loss->from[most].ns * 100 >= loss->ns * ONE_SENDER ? loss->from[most].rank
								  : COLL_FLIGHT_NO_RANK;
}

static uint32_t main_collective(const struct loss_tally *loss)
{
	uint32_t most = 0, i;

	for (i = 1; i < COLL_COLLECTIVES; i++)
		if (loss->in[i] > loss->in[most])
			most = i;
	return most;
}

/* Runs of one parity have nearly all of the events: then half of the runs have none. */
static bool is_alternate(const struct loss_tally *loss)
{
	const uint64_t even = loss->runs - loss->odd, most = loss->odd > even ? loss->odd : even;

	return loss->runs >= ALTERNATE_RUNS && most * 100 >= loss->runs * ONE_PARITY;
}

static void add_loss(struct report_tally *tally, enum coll_flight_loss_kind kind, size_t index,
		     double scale)
{
	const struct loss_tally *loss = &tally->of[kind][index];
	struct coll_flight_report *report = tally->report;

	if (report->skewed) {
		report->unknown += loss->ns * scale;
		return;
	}
	report->lost[kind] += loss->ns * scale;
	if (!loss->runs || !(loss->ns * scale > 0))
		return;
	report->loss[report->losses++] = (struct coll_flight_loss){
		.kind = kind,
		.rank = tally->job->seen[index]->page.rank,
		.from = kind == COLL_FLIGHT_LOSS_LINK ? main_sender(loss) : COLL_FLIGHT_NO_RANK,
		.collective = main_collective(loss),
		.cost = loss->ns * scale,
		.share = (double)loss->runs / tally->runs,
		.by = loss->noted / loss->runs / 1e9,
		.alternate = is_alternate(loss),
	};
	coll_report_interval(&loss->saved, &tally->took, scale, report->seconds,
			     &report->loss[report->losses - 1]);
}

static int by_cost(const void *left, const void *right)
{
	const struct coll_flight_loss *a = left, *b = right;

	return a->cost > b->cost ? -1 : a->cost < b->cost;
}

static int by_time_in(const void *left, const void *right)
{
	const struct coll_flight_site *a = left, *b = right;

	return a->sum.ns > b->sum.ns ? -1 : a->sum.ns < b->sum.ns;
}

static void rank_losses(struct report_tally *tally)
{
	struct coll_flight_report *report = tally->report;
	const double scale = tally_scale(tally);
	uint32_t kind;
	size_t i;

	compare_means(tally);
	report->unknown = tally->unknown * scale;
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (i = 0; i < tally->job->count; i++)
			add_loss(tally, kind, i, scale);
	qsort(report->loss, report->losses, sizeof(*report->loss), by_cost);
	for (i = 0; i < report->losses && i < CAUSES; i++)
		coll_flight_find_because(tally->job, report->seconds, &report->loss[i]);
	qsort(report->site, report->sites, sizeof(*report->site), by_time_in);
}

/* ---- making -------------------------------------------------------------- */

static bool tally_open(struct report_tally *tally, const struct coll_flight_job *job)
{
	struct coll_flight_report *report = tally->report;
	bool all = true;
	uint32_t kind;

	tally->record = calloc(job->count * COLL_FLIGHT_TIMED, sizeof(*tally->record));
	report->loss =
		calloc(COLL_FLIGHT_LOSS_KINDS * job->count, sizeof(*report->loss));
	/* One more: take_call() looks at the next one first. */
	report->site = calloc(job->count * COLL_FLIGHT_CALLS + 1, sizeof(*report->site));
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++) {
		tally->of[kind] = calloc(job->count, sizeof(*tally->of[kind]));
		all &= tally->of[kind] != NULL;
	}
	return all && tally->record && report->loss && report->site;
}

static void tally_close(struct report_tally *tally)
{
	uint32_t kind;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		free(tally->of[kind]);
	free(tally->record);
	free(tally->flights.usual);
}

/* Of the run before nothing is known, unless there was none. */
static bool is_first_of_block(const struct report_tally *tally, size_t first)
{
	const struct coll_flight_timed *run = tally->record[first].run;
	const struct report_runs runs = { tally->record, tally->records, tally->base, NULL, 0 };

	return run->number &&
	       !coll_report_find(&runs, &tally->record[first], 1, tally->record[first].rank);
}

static int look_at_runs(struct report_tally *tally)
{
	int error = align_clocks(tally);
	size_t first, end;

	if (!error)
		error = coll_report_flights_find(&tally->flights, tally->record, tally->records,
						 tally->base);
	for (first = 0; !error && first < tally->records; first = end) {
		end = run_end(tally, first);
		if (end - first > 1 && !is_first_of_block(tally, first))
			look_at_run(tally, first, end);
		if (end == tally->records || !same_block(&tally->record[first], &tally->record[end]))
			end_block(tally);
	}
	tally->report->timed = tally->runs;
	return error;
}

int coll_flight_report_make(struct coll_flight_report *report, const struct coll_flight_job *job)
{
	struct report_tally tally = { .report = report, .job = job };
	int error = 0;

	*report = (struct coll_flight_report){
		.page = &job->seen[0]->page,
		.ranks = job->seen[0]->page.ranks,
		.here = job->count,
	};
	if (!coll_report_pages_fit(job))
		return -EPROTO;
	if (tally_open(&tally, job)) {
		take_records(&tally, job);
		coll_report_take_sums(report, job);
		error = look_at_runs(&tally);
		if (!error) {
			coll_report_take_least(report);
			rank_losses(&tally);
		}
	} else {
		error = -ENOMEM;
	}
	tally_close(&tally);
	if (error)
		coll_flight_report_free(report);
	return error;
}

void coll_flight_report_free(struct coll_flight_report *report)
{
	free(report->loss);
	free(report->site);
	report->loss = NULL;
	report->site = NULL;
}
