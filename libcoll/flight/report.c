// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report's sums, and what was lost in the timed runs, added up and ranked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "report_path.h"
#include "timed.h"

enum {
	SENDERS = 8,	  /* of late messages to a rank that are told apart */
	NOTED_NS = 20000, /* a loss of less is no event */
	ONE_SENDER = 70,  /* per cent of the late messages: then the sender is named */
	RANKS_MAX = 1 << 20,
};

const char *const coll_flight_loss_names[COLL_FLIGHT_LOSS_KINDS] = {
	"late-rank",
	"no-core",
	"late-messages",
};

/* Of one rank and kind. */
struct loss_tally {
	double ns, saved;	     /* of all ranks that waited */
	double in[COLL_COLLECTIVES]; /* of ns */
	double most, noted;	     /* of the run that is looked at; of all runs that had it */
	uint64_t runs;
	struct {
		uint32_t rank;
		double ns;
	} from[SENDERS];
};

struct report_tally {
	struct coll_flight_report *report;
	struct report_record *record;
	size_t records;
	uint64_t base;
	struct report_flights flights;
	struct loss_tally *of[COLL_FLIGHT_LOSS_KINDS]; /* per rank */
	double took;				       /* ns: of all timed runs on all ranks ... */
	double unknown;				       /* ... lost in them to what is not known */
	uint64_t runs;
	/* Of the run that is looked at. */
	uint32_t collective;
	double waiter_began, first_began, second_began;
};

/* ---- sums of all runs ---------------------------------------------------- */

double coll_flight_delayed(const struct coll_flight_page *page)
{
	return page->delayed / 1e9;
}

static double job_seconds(const struct coll_flight_seen *seen)
{
	const uint64_t end = seen->page.ended ? seen->page.ended : seen->time;

	return end > seen->page.opened ? (end - seen->page.opened) / 1e9 : 0;
}

/* A call that waits now counts as well. */
static double inside_seconds(const struct coll_flight_seen *seen)
{
	uint64_t since;
	double seconds = seen->page.spent / 1e9;

	if (!seen->page.ended && coll_flight_inside(seen, &since) && seen->time > since)
		seconds += (seen->time - since) / 1e9;
	return seconds < job_seconds(seen) ? seconds : job_seconds(seen);
}

static struct coll_flight_site *site_of(struct coll_flight_report *report,
					const struct coll_flight_call *call)
{
	const uint64_t bytes = call->count * call->element;
	struct coll_flight_site *site = report->site;

	for (; site < report->site + report->sites; site++)
		if (site->collective == call->collective && site->bytes == bytes &&
		    !strcmp(site->algo, call->algo))
			return site;
	report->sites++;
	*site = (struct coll_flight_site){ .collective = call->collective, .bytes = bytes };
	memcpy(site->algo, call->algo, sizeof(site->algo));
	return site;
}

static void take_call(struct coll_flight_report *report, const struct coll_flight_call *call)
{
	struct coll_flight_site *site;

	if (!call->since || !call->sum.runs || call->collective >= COLL_COLLECTIVES)
		return;
	site = site_of(report, call);
	coll_flight_sum_join(&site->sum, &call->sum);
	site->predicted = call->predicted / 1e9;
	site->best = call->best / 1e9;
	report->chosen += site->predicted * call->sum.runs;
	/* Where the model knows nothing measured, a run may be faster than it predicts. */
	report->least +=
		(site->best < call->sum.shortest / 1e9 ? site->best : call->sum.shortest / 1e9) *
		call->sum.runs;
}

static void take_sums(struct coll_flight_report *report, const struct coll_flight_job *job)
{
	size_t i;
	uint32_t call;

	for (i = 0; i < job->count; i++) {
		report->seconds += job_seconds(job->seen[i]) / job->count;
		report->inside += inside_seconds(job->seen[i]) / job->count;
		coll_flight_sum_join(&report->past, &job->seen[i]->page.past);
		report->calls += (double)job->seen[i]->page.runs / job->count;
		for (call = 0; call < COLL_FLIGHT_CALLS; call++)
			take_call(report, &job->seen[i]->page.call[call]);
	}
	report->least /= job->count;
	report->chosen /= job->count;
}

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
			   const uint32_t *index, struct coll_flight_message *message)
{
	size_t found = 0, i, j;
	uint32_t k;

	for (i = first; i < end; i++)
		for (k = 0; k < tally->record[i].run->exchanges; k++) {
			const struct coll_flight_timed *run = tally->record[i].run;
			const struct coll_flight_exchange *with = &run->with[k], *other = NULL;

			for (j = first; j < end && tally->record[j].rank != with->peer; j++)
				;
			if (j < end)
				other = report_exchange(tally->record[j].run,
							tally->record[i].rank);
			if (!other || !other->sent || !report_waited(with))
				continue;
			message[found++] = (struct coll_flight_message){
				.from = index[tally->record[j].rank],
				.to = index[tally->record[i].rank],
				.sent = tally->record[j].run->began +
					(uint64_t)other->sent * COLL_FLIGHT_TICK,
				.got = run->began + (uint64_t)with->arrived * COLL_FLIGHT_TICK,
			};
		}
	return found;
}

static void set_offsets(struct report_tally *tally, const uint32_t *index, const int64_t *offset)
{
	size_t i;

	for (i = 0; i < tally->records; i++)
		tally->record[i].offset = offset[index[tally->record[i].rank]];
}

/* Of one host all ranks have the same clock. */
static int align_clocks(struct report_tally *tally, const struct coll_flight_job *job)
{
	const size_t most = tally->records * COLL_FLIGHT_EXCHANGES + 1;
	struct coll_flight_message *message;
	struct coll_flight_clocks clocks;
	size_t first, end, count = 0, i;
	uint32_t *index;
	int error = 0;

	if (tally->report->hosts < 2)
		return 0;
	message = calloc(most, sizeof(*message));
	index = calloc(tally->report->ranks, sizeof(*index));
	if (!message || !index) {
		error = -ENOMEM;
	} else {
		for (i = 0; i < job->count; i++)
			index[job->seen[i]->page.rank] = i;
		for (first = 0; first < tally->records; first = end) {
			end = run_end(tally, first);
			count += run_messages(tally, first, end, index, message + count);
		}
		if (coll_flight_align(job, message, count, &clocks))
			set_offsets(tally, index, clocks.offset);
		else
			error = -ENOMEM;
		tally->report->clock_error = clocks.error;
		free(clocks.offset);
	}
	free(message);
	free(index);
	return error;
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

/* Of the run that is looked at, some ns of one rank's time. */
static void tally_loss(void *argument, enum coll_flight_loss_kind kind, uint32_t rank,
		       uint32_t from, double ns)
{
	struct report_tally *tally = argument;
	struct loss_tally *loss;
	double saved = ns, without;

	if (kind == COLL_FLIGHT_LOSS_UNKNOWN)
		tally->unknown += ns;
	if (kind >= COLL_FLIGHT_LOSS_KINDS || rank >= tally->report->ranks)
		return;
	loss = &tally->of[kind][rank];
	if (kind == COLL_FLIGHT_LOSS_LINK)
		add_sender(loss, from, ns);
	if (kind == COLL_FLIGHT_LOSS_LATE) {
		without = tally->second_began - tally->waiter_began;
		saved -= without > 0 ? without : 0;
	}
	loss->ns += ns;
	loss->saved += saved > 0 ? saved : 0;
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

/* Ranks without a record as well: others may have waited for them. */
static void note_events(struct report_tally *tally)
{
	uint32_t kind, rank;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (rank = 0; rank < tally->report->ranks; rank++) {
			struct loss_tally *loss = &tally->of[kind][rank];

			if (loss->most >= NOTED_NS) {
				loss->runs++;
				loss->noted += loss->most;
			}
			loss->most = 0;
		}
}

static void look_at_run(struct report_tally *tally, size_t first, size_t end)
{
	const struct report_runs runs = { tally->record, tally->records, tally->base,
					  &tally->flights };
	size_t i;

	tally->collective = tally->record[first].run->collective;
	find_last_two(tally, first, end);
	for (i = first; i < end; i++) {
		const struct coll_flight_timed *one = tally->record[i].run;

		if (!one->ended || one->ended < one->began)
			continue;
		tally->took += one->ended - one->began;
		tally->waiter_began = report_began(&tally->record[i], tally->base);
		coll_report_follow(&runs, &tally->record[i], tally_loss, tally);
	}
	note_events(tally);
	tally->runs++;
}

/* ---- ranked -------------------------------------------------------------- */

/* From the time of all ranks in timed runs to that of the job in collectives. */
static double tally_scale(const struct report_tally *tally)
{
	return tally->took > 0 ? tally->report->inside / tally->took : 0;
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

static void add_loss(struct report_tally *tally, enum coll_flight_loss_kind kind, uint32_t rank)
{
	const struct loss_tally *loss = &tally->of[kind][rank];
	struct coll_flight_report *report = tally->report;
	const double scale = tally_scale(tally);

	report->lost[kind] += loss->ns * scale;
	if (!loss->runs)
		return;
	report->loss[report->losses++] = (struct coll_flight_loss){
		.kind = kind,
		.rank = rank,
		.from = kind == COLL_FLIGHT_LOSS_LINK ? main_sender(loss) : COLL_FLIGHT_NO_RANK,
		.collective = main_collective(loss),
		.cost = loss->ns * scale,
		.saved = loss->saved * scale,
		.share = (double)loss->runs / tally->runs,
		.by = loss->noted / loss->runs / 1e9,
	};
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
	uint32_t kind, rank;

	report->unknown = tally->unknown * tally_scale(tally);
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (rank = 0; rank < report->ranks; rank++)
			add_loss(tally, kind, rank);
	qsort(report->loss, report->losses, sizeof(*report->loss), by_cost);
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
		calloc(COLL_FLIGHT_LOSS_KINDS * (size_t)report->ranks, sizeof(*report->loss));
	report->site = calloc(job->count * COLL_FLIGHT_CALLS, sizeof(*report->site));
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++) {
		tally->of[kind] = calloc(report->ranks, sizeof(*tally->of[kind]));
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
	const struct report_runs runs = { tally->record, tally->records, tally->base, NULL };

	return run->number &&
	       !coll_report_find(&runs, &tally->record[first], 1, tally->record[first].rank);
}

static int look_at_runs(struct report_tally *tally, const struct coll_flight_job *job)
{
	int error = align_clocks(tally, job);
	size_t first, end;

	if (!error)
		error = coll_report_flights_find(&tally->flights, tally->record, tally->records,
						 tally->base);
	for (first = 0; !error && first < tally->records; first = end) {
		end = run_end(tally, first);
		if (end - first > 1 && !is_first_of_block(tally, first))
			look_at_run(tally, first, end);
	}
	tally->report->timed = tally->runs;
	return error;
}

/* A page from a file may say anything. */
static bool ranks_fit(const struct coll_flight_job *job)
{
	const uint32_t ranks = job->seen[0]->page.ranks;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (job->seen[i]->page.rank >= ranks)
			return false;
	return ranks <= RANKS_MAX;
}

int coll_flight_report_make(struct coll_flight_report *report, const struct coll_flight_job *job)
{
	struct report_tally tally = { .report = report };
	int error = 0;

	*report = (struct coll_flight_report){
		.page = &job->seen[0]->page,
		.ranks = job->seen[0]->page.ranks,
		.here = job->count,
	};
	if (!ranks_fit(job))
		return -E2BIG;
	if (tally_open(&tally, job)) {
		take_records(&tally, job);
		take_sums(report, job);
		error = look_at_runs(&tally, job);
		if (!error)
			rank_losses(&tally);
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
