// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the report says of what was lost: scaled to the job, ranked, with causes. */
#include <stdlib.h>

#include "report_tally.h"

enum {
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

	for (i = 1; i < REPORT_SENDERS; i++)
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
	struct report_interval saved;

	if (report->skewed) {
		report->unknown += loss->ns * scale;
		return;
	}
	report->lost[kind] += loss->ns * scale;
	if (!loss->runs || !(loss->ns * scale > 0))
		return;
	saved = coll_report_interval(&loss->saved, &tally->took, scale, report->seconds);
	report->loss[report->losses++] = (struct coll_flight_loss){
		.kind = kind,
		.rank = tally->job->seen[index]->page.rank,
		.index = index,
		.from = kind == COLL_FLIGHT_LOSS_LINK ? main_sender(loss) : COLL_FLIGHT_NO_RANK,
		.collective = main_collective(loss),
		.cost = loss->ns * scale,
		.share = (double)loss->runs / tally->runs,
		.by = loss->noted / loss->runs / 1e9,
		.alternate = is_alternate(loss),
		.saved = saved.mean,
		.saved_least = saved.least,
		.saved_most = saved.most,
	};
}

static int by_cost(const void *left, const void *right)
{
	const struct coll_flight_loss *a = left, *b = right;

	if (a->cost != b->cost)
		return a->cost > b->cost ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_time_in(const void *left, const void *right)
{
	const struct coll_flight_site *a = left, *b = right;

	return a->sum.ns > b->sum.ns ? -1 : a->sum.ns < b->sum.ns;
}

/* What the runs would have been otherwise. */
static int take_reruns(struct report_tally *tally, double scale)
{
	const struct report_runs runs = coll_report_tally_runs(tally);
	struct report_rerun rerun;
	int error = coll_report_rerun_open(&rerun, &runs, tally->job->count);

	if (!error)
		error = coll_report_take_without(tally, &rerun, scale);
	if (!error)
		error = coll_report_take_remedies(tally->report, &tally->remedies, &rerun, &tally->took, scale);
	coll_report_rerun_close(&rerun);
	return error;
}

int coll_report_rank(struct report_tally *tally)
{
	struct coll_flight_report *report = tally->report;
	const double scale = tally_scale(tally);
	uint32_t kind;
	size_t i;
	int error;

	compare_means(tally);
	report->unknown = tally->unknown * scale;
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		for (i = 0; i < tally->job->count; i++)
			add_loss(tally, kind, i, scale);
	qsort(report->loss, report->losses, sizeof(*report->loss), by_cost);
	for (i = 0; i < report->losses && i < CAUSES; i++)
		coll_flight_find_because(tally->job, report->seconds, &report->loss[i]);
	coll_report_take_nodes(tally);
	qsort(report->loss, report->losses, sizeof(*report->loss), by_cost);
	error = take_reruns(tally, scale);
	qsort(report->site, report->sites, sizeof(*report->site), by_time_in);
	coll_report_take_regrets(report);
	return error;
}
