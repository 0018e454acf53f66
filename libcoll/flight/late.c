// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "late.h"

enum {
	BEGINS_OF_RANK = 64,		/* its latest calls */
	CALLS_MOST = 20,		/* ... of the job that are judged */
	CALLS_LEAST = 5,
	LATE_NS = 10000000,
	LATE_BETWEEN_HOSTS_NS = 100000000,
};

/* A rank calls a collective. */
struct late_begin {
	uint64_t group, time;
	uint32_t run, rank;
	uint32_t members;		/* ranks of the group */
};

/* A collective that all have called. */
struct late_call {
	uint64_t time, late_ns;		/* of the last one; how long after the median rank */
	uint32_t rank;
};

static bool is_one_host(const struct coll_flight_job *job)
{
	size_t i;

	for (i = 1; i < job->count; i++)
		if (strcmp(job->seen[i]->page.host, job->seen[0]->page.host))
			return false;
	return true;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Messages are left out: each rank has its own numbers for them. */
static bool take_begin(const struct coll_flight_page *page, const struct coll_flight_event *event,
		       uint64_t to_common, struct late_begin *begin)
{
	const struct coll_flight_group *group = &page->group[event->when & 63];
	const uint32_t call = event->what & 0xffffff;

	if ((event->when >> 6 & 63) != COLL_FLIGHT_BEGIN || call >= COLL_FLIGHT_CALLS ||
	    page->call[call].collective >= COLL_COLLECTIVES)
		return false;
	*begin = (struct late_begin){
		.group = group->id, .time = page->opened + (event->when >> 12) + to_common,
		.run = event->what >> 48, .rank = page->rank, .members = group->ranks,
	};
	return true;
}

/* From the latest on. The oldest event of the ring may be written over while it is read. */
static size_t take_begins(const struct coll_flight_seen *seen, uint64_t to_common,
			  struct late_begin *begins)
{
	const struct coll_flight_page *page = &seen->page;
	const uint64_t kept = page->head < COLL_FLIGHT_EVENTS - 1 ? page->head :
								    COLL_FLIGHT_EVENTS - 1;
	size_t count = 0;
	uint64_t i;

	for (i = 1; i <= kept && count < BEGINS_OF_RANK; i++)
		count += take_begin(page, &page->event[(page->head - i) % COLL_FLIGHT_EVENTS],
				    to_common, &begins[count]);
	return count;
}

static int late_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_call_and_time(const void *left, const void *right)
{
	const struct late_begin *a = left, *b = right;

	if (a->group != b->group)
		return late_compare(a->group, b->group);
	return a->run != b->run ? late_compare(a->run, b->run) : late_compare(a->time, b->time);
}

static int latest_first(const void *left, const void *right)
{
	const struct late_call *a = left, *b = right;

	return late_compare(b->time, a->time);
}

static int by_lateness(const void *left, const void *right)
{
	const struct late_call *a = left, *b = right;

	return late_compare(a->late_ns, b->late_ns);
}

/* Replaces begins, which are sorted, by the calls that all have begun: how many. */
static size_t find_calls(const struct late_begin *begins, size_t count, struct late_call *calls)
{
	size_t first, end, found = 0;

	for (first = 0; first < count; first = end) {
		for (end = first + 1; end < count && begins[end].group == begins[first].group &&
				      begins[end].run == begins[first].run; end++)
			;
		if (end - first < 2 || end - first != begins[first].members)
			continue;
		calls[found++] = (struct late_call){
			.time = begins[end - 1].time, .rank = begins[end - 1].rank,
			.late_ns = begins[end - 1].time - begins[(first + end - 1) / 2].time,
		};
	}
	return found;
}

/* In the order of their ends, the latest first. NULL: no memory. */
static struct late_call *late_calls(const struct coll_flight_job *job, size_t *found)
{
	const bool one_host = is_one_host(job);
	const size_t most = job->count * BEGINS_OF_RANK;
	struct late_begin *begins = calloc(most + 1, sizeof(*begins));
	struct late_call *calls = calloc(most + 1, sizeof(*calls));
	size_t i, count = 0;

	for (i = 0; begins && calls && i < job->count; i++)
		count += take_begins(job->seen[i], one_host ? 0 : job->seen[i]->realtime -
							      job->seen[i]->time, begins + count);
	if (count) {
		qsort(begins, count, sizeof(*begins), by_call_and_time);
		*found = find_calls(begins, count, calls);
		qsort(calls, *found, sizeof(*calls), latest_first);
	}
	free(begins);
	return calls;
}

/* ---- the rank ----------------------------------------------------------------------------- */

static size_t count_last(const struct late_call *calls, size_t count, uint32_t rank)
{
	size_t i, last = 0;

	for (i = 0; i < count; i++)
		last += calls[i].rank == rank;
	return last;
}

/* Moves the calls in which this rank was the last one to the front. */
static void keep_last(struct late_call *calls, size_t count, uint32_t rank)
{
	size_t from, to = 0;

	for (from = 0; from < count; from++)
		if (calls[from].rank == rank)
			calls[to++] = calls[from];
}

static bool late_judge(struct late_call *calls, size_t count, uint64_t least_ns,
		  struct coll_flight_late *late)
{
	size_t i, last = 0;

	for (i = 0; i < count && 4 * last < 3 * count; i++) {
		late->rank = calls[i].rank;
		last = count_last(calls, count, late->rank);
	}
	if (count < CALLS_LEAST || 4 * last < 3 * count)
		return false;
	keep_last(calls, count, late->rank);
	qsort(calls, last, sizeof(*calls), by_lateness);
	late->calls = count;
	late->last = last;
	late->late_ns = calls[last / 2].late_ns;
	return late->late_ns >= least_ns;
}

bool coll_flight_find_late(const struct coll_flight_job *job, struct coll_flight_late *late)
{
	size_t count = 0;
	struct late_call *calls = late_calls(job, &count);
	bool found;

	found = calls && late_judge(calls, count < CALLS_MOST ? count : CALLS_MOST,
			       is_one_host(job) ? LATE_NS : LATE_BETWEEN_HOSTS_NS, late);
	free(calls);
	return found;
}
