// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report's sums of all runs, and whether pages make sense at all. */
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "libcoll/base/clock.h"
#include "report_path.h"
#include "timed.h"

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

double coll_flight_waiting_seconds(const struct coll_flight_seen *seen)
{
	uint64_t since;

	return !seen->page.ended && coll_flight_inside(seen, &since) && seen->time > since ?
		       (seen->time - since) / 1e9 : 0;
}

double coll_flight_inside_seconds(const struct coll_flight_seen *seen)
{
	const double seconds = seen->page.spent / 1e9 + coll_flight_waiting_seconds(seen);

	return seconds < job_seconds(seen) ? seconds : job_seconds(seen);
}

static void take_call(struct coll_flight_report *report, const struct coll_flight_call *call)
{
	struct coll_flight_site *site = &report->site[report->sites];

	if (!call->since || !call->sum.runs || call->collective >= COLL_COLLECTIVES)
		return;
	report->sites++;
	*site = (struct coll_flight_site){
		.collective = call->collective,
		.bytes = call->count * call->element,
		.ranks = call->ranks,
		.type = call->type,
		.reduction = call->reduction,
		.sum = call->sum,
		.predicted = call->predicted / 1e9,
		.best = call->best / 1e9,
		.segment = call->segment,
		.asked = call->asked,
	};
	memcpy(site->algo, call->algo, sizeof(site->algo));
	site->algo[sizeof(site->algo) - 1] = 0;
	report->chosen += site->predicted * call->sum.runs;
}

/* As far as they can be done in the same ways; not by root, which the ranks may take in turns. */
static int by_work(const struct coll_flight_site *a, const struct coll_flight_site *b)
{
	if (a->collective != b->collective)
		return a->collective < b->collective ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->ranks != b->ranks)
		return a->ranks < b->ranks ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->reduction != b->reduction)
		return a->reduction < b->reduction ? -1 : 1;
	return 0;
}

static int by_site(const void *left, const void *right)
{
	const struct coll_flight_site *a = left, *b = right;
	const int work = by_work(a, b);

	if (work)
		return work;
	if (a->segment != b->segment)
		return a->segment < b->segment ? -1 : 1;
	if (a->asked != b->asked)
		return a->asked ? 1 : -1;
	return strcmp(a->algo, b->algo);
}

/* Of all ranks' calls those that are equal become one. */
static void join_sites(struct coll_flight_report *report)
{
	uint32_t from, to = 0;

	qsort(report->site, report->sites, sizeof(*report->site), by_site);
	for (from = 0; from < report->sites; from++)
		if (to && !by_site(&report->site[to - 1], &report->site[from]))
			coll_flight_sum_join(&report->site[to - 1].sum, &report->site[from].sum);
		else
			report->site[to++] = report->site[from];
	report->sites = to;
}

/* The longest time, and the largest cost, of all nodes. */
static void take_observed(struct coll_flight_report *report,
			  const struct coll_flight_observed *observed)
{
	const double ns = observed->until > observed->since ? observed->until - observed->since : 0;

	if (observed->wholes == 1 && observed->cost)
		report->unlooked = true;
	if (observed->wholes > 1 && ns / 1e9 / (observed->wholes - 1) > report->look_pause)
		report->look_pause = ns / 1e9 / (observed->wholes - 1);
	if (ns / 1e9 > report->observed)
		report->observed = ns / 1e9;
	/* One thread looks. */
	if (ns > 0 && observed->cost <= ns && observed->cost / ns > report->observed_cost)
		report->observed_cost = observed->cost / ns;
}

void coll_report_take_sums(struct coll_flight_report *report,
			   const struct coll_flight_job *job)
{
	size_t i;
	uint32_t call;

	for (i = 0; i < job->count; i++) {
		report->seconds += job_seconds(job->seen[i]) / job->count;
		report->inside += coll_flight_inside_seconds(job->seen[i]) / job->count;
		report->waiting += coll_flight_waiting_seconds(job->seen[i]) / job->count;
		coll_flight_sum_join(&report->past, &job->seen[i]->page.past);
		report->calls += (double)job->seen[i]->page.runs / job->count;
		for (call = 0; call < COLL_FLIGHT_CALLS; call++)
			take_call(report, &job->seen[i]->page.call[call]);
	}
	for (i = 0; i < job->count; i++) {
		take_observed(report, &job->seen[i]->observed);
		report->cut |= (job->seen[i]->flags & COLL_FLIGHT_CUT) != 0;
	}
	if (report->waiting > report->inside)
		report->waiting = report->inside;
	report->chosen /= job->count;
	join_sites(report);
}

struct coll_flight_sum coll_report_ended_runs(const struct coll_flight_report *report)
{
	struct coll_flight_sum sum = report->past;
	uint32_t i;

	for (i = 0; i < report->sites; i++)
		coll_flight_sum_join(&sum, &report->site[i].sum);
	return sum;
}

/* Where the model knows nothing measured, a run may be faster than it predicts. */
void coll_report_take_least(struct coll_flight_report *report)
{
	uint32_t i;

	for (i = 0; i < report->sites; i++) {
		const struct coll_flight_site *site = &report->site[i];
		double least = site->best;

		if (site->shortest > 0 && (site->shortest < least || !(least > 0)))
			least = site->shortest;
		report->least += least * site->sum.runs / report->here;
	}
	if (report->least > report->inside)
		report->least = report->inside;
}

/* ---- sense ----------------------------------------------------------------- */

/* A number that a double has exactly. */
static bool is_sum(const struct coll_flight_sum *sum)
{
	return sum->runs <= 1ull << 53 && coll_flight_is_time(sum->ns) &&
	       coll_flight_is_time(sum->shortest);
}

static bool calls_fit(const struct coll_flight_page *page)
{
	const struct coll_flight_call *call;

	for (call = page->call; call < page->call + COLL_FLIGHT_CALLS; call++)
		if (!is_sum(&call->sum) || !coll_flight_is_time(call->predicted) ||
		    !coll_flight_is_time(call->best))
			return false;
	return true;
}

static bool runs_fit(const struct coll_flight_page *page)
{
	const struct coll_flight_timed *run;

	for (run = page->timed; run < page->timed + COLL_FLIGHT_TIMED; run++)
		if (!coll_flight_is_time(run->began) || !coll_flight_is_time(run->ended) ||
		    run->exchanges > COLL_FLIGHT_EXCHANGES)
			return false;
	return true;
}

static bool times_fit(const struct coll_flight_seen *seen)
{
	const struct coll_flight_page *page = &seen->page;

	return coll_flight_is_time(seen->time) && coll_flight_is_time(page->opened) &&
	       coll_flight_is_time(page->ended) && coll_flight_is_time(page->realtime) &&
	       coll_flight_is_time(page->spent) && coll_flight_is_time(page->delayed) &&
	       coll_flight_is_time(page->injected) && coll_flight_observed_fits(&seen->observed) &&
	       is_sum(&page->past) && page->runs <= 1ull << 53;
}

bool coll_report_pages_fit(const struct coll_flight_job *job)
{
	const uint32_t ranks = job->seen[0]->page.ranks;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (job->seen[i]->page.rank >= ranks || job->seen[i]->page.ranks != ranks ||
		    !times_fit(job->seen[i]) || !calls_fit(&job->seen[i]->page) ||
		    !runs_fit(&job->seen[i]->page))
			return false;
	return true;
}
