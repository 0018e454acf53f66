// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report of a job, from its ranks' pages: the timed runs, and what they were. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report_tally.h"
#include "timed.h"

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

/* A host's number is the index of its first rank. False: there is no memory. */
static bool number_hosts(struct report_tally *tally, const struct coll_flight_job *job)
{
	size_t i;

	if (!coll_flight_first_of_host(job, tally->host))
		return false;
	for (i = 0; i < job->count; i++)
		tally->report->hosts += tally->host[i] == i;
	return true;
}

static void take_records(struct report_tally *tally, const struct coll_flight_job *job)
{
	const uint32_t level = highest_level(job);
	size_t i;
	uint32_t entry;

	for (i = 0; i < job->count; i++) {
		const struct coll_flight_page *page = &job->seen[i]->page;

		for (entry = 0; entry < COLL_FLIGHT_TIMED; entry++) {
			const struct coll_flight_timed *run = &page->timed[entry];

			if (!run->began || run->collective >= COLL_COLLECTIVES ||
			    coll_flight_draw(run->group, run->number) < level)
				continue;
			tally->record[tally->records++] = (struct report_record){
				.run = run,
				.rank = page->rank,
				.index = i,
				.host = tally->host[i],
			};
			if (!tally->base)
				tally->base = run->began;
		}
	}
	if (tally->records)
		qsort(tally->record, tally->records, sizeof(*tally->record), by_run);
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
	const struct report_runs runs = coll_report_tally_runs(tally);
	size_t first, end, count = 0;
	bool aligned = false;

	if (tally->report->hosts < 2)
		return 0;
	message = calloc(tally->records * COLL_FLIGHT_EXCHANGES + 1, sizeof(*message));
	for (first = 0; message && first < tally->records; first = end) {
		end = coll_report_run_end(&runs, first);
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
	tally->waits = calloc(job->count, sizeof(*tally->waits));
	report->node = calloc(job->count, sizeof(*report->node));
	report->rank = calloc(job->count, sizeof(*report->rank));
	tally->host = calloc(job->count, sizeof(*tally->host));
	return all && tally->waits && tally->host && report->node && report->rank &&
	       tally->record && report->loss && report->site;
}

static void tally_close(struct report_tally *tally)
{
	uint32_t kind;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		free(tally->of[kind]);
	free(tally->waits);
	free(tally->host);
	coll_report_remedies_close(&tally->remedies);
	free(tally->record);
	free(tally->flights.usual);
}

static int look_at_runs(struct report_tally *tally)
{
	int error = align_clocks(tally);
	struct report_runs runs;
	size_t first, end;

	if (!error)
		error = coll_report_flights_find(&tally->flights, tally->record, tally->records,
						 tally->base);
	runs = coll_report_tally_runs(tally);
	if (!error)
		error = coll_report_remedies_open(&tally->remedies, tally->job, tally->host, &runs);
	for (first = 0; !error && first < tally->records; first = end) {
		end = coll_report_run_end(&runs, first);
		if (end - first > 1 && !coll_report_is_first(&runs, &tally->record[first]))
			coll_report_tally_run(tally, first, end);
		if (end == tally->records ||
		    !coll_report_same_block(&tally->record[first], &tally->record[end]))
			coll_report_tally_end_block(tally);
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
	if (tally_open(&tally, job) && number_hosts(&tally, job)) {
		take_records(&tally, job);
		coll_report_take_sums(report, job);
		error = look_at_runs(&tally);
		if (!error) {
			coll_report_take_least(report);
			error = coll_report_rank(&tally);
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
	free(report->node);
	free(report->rank);
	report->loss = NULL;
	report->site = NULL;
	report->node = NULL;
	report->rank = NULL;
}
