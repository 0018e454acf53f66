// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What would be saved without a cause, on all ranks that have it together: the runs once more. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "report_tally.h"

/* How much of the rank's time without a core this took. */
static double part_of_stolen(const struct coll_flight_seen *seen, enum coll_flight_because because)
{
	const double all = (double)seen->page.delayed + seen->page.injected,
		     injected = all > 0 ? seen->page.injected / all : 0;
	double part = 0;
	uint32_t i;

	if (because == COLL_FLIGHT_BECAUSE_INJECTED)
		return injected;
	for (i = 0; i < COLL_FLIGHT_TAKERS && coll_flight_is_observed(seen); i++)
		if (coll_flight_because_of(&seen->observed.taker[i]) == because)
			part += coll_flight_part_of_waited(&seen->observed, &seen->observed.taker[i]);
	return fmin(1, part) * (1 - injected);
}

/* How much of what the rank does before calls this is at most: interrupts are no more than what they took. */
static double part_of_work(const struct coll_flight_seen *seen, enum coll_flight_because because)
{
	return because == COLL_FLIGHT_BECAUSE_INTERRUPTS || because == COLL_FLIGHT_BECAUSE_STEAL ?
		       coll_flight_part_of_ran(&seen->observed) : 1;
}

/* Who has the cause, and how. Returns how many. */
static uint32_t find_less(const struct report_tally *tally, enum coll_flight_because because,
			  struct coll_flight_without *without, struct rerun_less *less)
{
	const struct coll_flight_report *report = tally->report;
	uint32_t ranks = 0;
	size_t i;

	for (i = 0; i < tally->job->count; i++)
		less[i] = (struct rerun_less){ .stolen = part_of_stolen(tally->job->seen[i], because) };
	for (i = 0; i < report->losses; i++) {
		const struct coll_flight_loss *loss = &report->loss[i];

		if (loss->because != because)
			continue;
		without->cost += loss->cost;
		if (loss->kind == COLL_FLIGHT_LOSS_LATE)
			less[loss->index].late = part_of_work(loss->seen, because);
		less[loss->index].messages |= loss->kind == COLL_FLIGHT_LOSS_LINK;
	}
	for (i = 0; i < tally->job->count; i++)
		ranks += less[i].stolen > 0 || less[i].late > 0 || less[i].messages;
	return ranks;
}

static bool is_cause(const struct coll_flight_report *report, enum coll_flight_because because)
{
	uint32_t i;

	for (i = 0; i < report->losses; i++)
		if (report->loss[i].because == because)
			return true;
	return false;
}

static int by_saved(const void *left, const void *right)
{
	const struct coll_flight_without *a = left, *b = right;

	if (a->saved != b->saved)
		return a->saved > b->saved ? -1 : 1;
	return a->because < b->because ? -1 : a->because > b->because;
}

static void take_without(struct report_tally *tally, struct report_rerun *rerun,
			 enum coll_flight_because because, struct rerun_less *less, double scale)
{
	struct coll_flight_report *report = tally->report;
	struct coll_flight_without *without = &report->without[report->withouts++];
	struct report_saved saved;
	struct report_interval interval;

	*without = (struct coll_flight_without){ .because = because };
	without->ranks = find_less(tally, because, without, less);
	saved = coll_report_rerun(rerun, less, RERUN_ALL_HOSTS);
	interval = coll_report_rerun_interval(rerun, &saved, &tally->took, scale, report->seconds);
	without->saved = interval.mean;
	without->least = interval.least;
	without->most = interval.most;
}

int coll_report_take_without(struct report_tally *tally, struct report_rerun *rerun, double scale)
{
	struct coll_flight_report *report = tally->report;
	struct rerun_less *less = calloc(tally->job->count, sizeof(*less));
	uint32_t because;

	if (!less)
		return -ENOMEM;
	for (because = COLL_FLIGHT_BECAUSE_NOT_KNOWN + 1; because < COLL_FLIGHT_BECAUSES; because++)
		if (is_cause(report, because))
			take_without(tally, rerun, because, less, scale);
	free(less);
	qsort(report->without, report->withouts, sizeof(*report->without), by_saved);
	return 0;
}
