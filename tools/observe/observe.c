// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The ranks, when they are looked at, and what becomes of it. taken.c says who had a core. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/flight/report_file.h"
#include "observe.h"
#include "taken.h"

enum {
	GLANCE_NS = 100000000,		/* between two looks at what the ranks do, at least ... */
	GLANCE_PART = 1000,		/* ... and so many times what one takes */
	WHOLE_NS = 500000000,		/* ... at all threads of the node */
	WHOLE_PART = 500,		/* ... once so many ns are spent on it: */
	WHOLE_FREE_NS = 150000000,	/* a short job is seen as well */
	FIND_NS = 250000000,		/* after the first search for ranks */
};

struct observer {
	char job[64];
	struct observed_rank *rank;
	uint32_t ranks, expected;	/* expected: on this node; 0: not known */
	struct node_activity *threads;	/* at the latest whole look */
	uint64_t find_at, find_pause;
	uint64_t began, whole_cost;
	uint64_t glance_at, whole_at, cost;
};

static uint64_t observe_cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * COLL_SECOND + time.tv_nsec;
}

/* ---- ranks --------------------------------------------------------------- */

static bool is_observed(const struct observer *observer, const struct coll_flight_seen *seen)
{
	uint32_t i;

	for (i = 0; i < observer->ranks; i++)
		if (observer->rank[i].pid == seen->pid)
			return true;
	return false;
}

static void add_rank(struct observer *observer, const struct coll_flight_seen *seen)
{
	struct observed_rank *more;
	const uint32_t owner = coll_flight_owner(seen);

	if (is_observed(observer, seen) || seen->flags & COLL_FLIGHT_ENDED)
		return;
	more = reallocarray(observer->rank, observer->ranks + 1, sizeof(*more));
	if (!more)
		return;
	observer->rank = more;
	more[observer->ranks++] = (struct observed_rank){
		.rank = seen->page.rank,
		.pid = seen->pid,
		.opened = seen->page.opened,
		.own_pid = seen->page.pid,
		.owner = owner == seen->pid ? 0 : owner,
		.page = coll_flight_page_of(seen->pid),
	};
	if (seen->page.local_ranks > 0)
		observer->expected = seen->page.local_ranks;
}

static bool knows_all(const struct observer *observer)
{
	return observer->ranks && observer->ranks >= observer->expected;
}

/*
 * All descriptors of all processes are read: 30 ms, so not again when all ranks are known, and each
 * time after a pause twice as long.
 */
static void find_ranks(struct observer *observer, uint64_t now)
{
	struct coll_flight_set set = { .count = 0 };
	size_t i;

	if (knows_all(observer) || now < observer->find_at)
		return;
	observer->find_pause = observer->find_pause ? 2 * observer->find_pause : FIND_NS;
	observer->find_at = now + observer->find_pause;
	coll_flight_find(&set, observer->job);
	for (i = 0; i < set.count; i++)
		add_rank(observer, set.seen[i]);
	coll_flight_free(&set);
}

struct observer *observer_open(const char *job)
{
	struct observer *observer = calloc(1, sizeof(*observer));

	if (!observer)
		return NULL;
	snprintf(observer->job, sizeof(observer->job), "%s", job);
	observer->began = coll_now();
	return observer;
}

void observer_close(struct observer *observer)
{
	uint32_t i;

	if (!observer)
		return;
	for (i = 0; i < observer->ranks; i++)
		if (observer->rank[i].page >= 0)
			close(observer->rank[i].page);
	node_activity_free(observer->threads);
	free(observer->rank);
	free(observer);
}

/* ---- looks --------------------------------------------------------------- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void look_at_all(struct observer *observer)
{
	struct node_activity *threads = observer->ranks ? node_activity_threads() : NULL;
	uint32_t i;

	if (!threads)
		return;
	observed_taken(observer->rank, observer->ranks, observer->threads, threads);
	for (i = 0; i < observer->ranks; i++)
		observed_doing(&observer->rank[i]);
	node_activity_free(observer->threads);
	observer->threads = threads;
}

/* Searches have pauses of their own. */
static void look_whole(struct observer *observer, uint64_t now)
{
	uint64_t before;

	find_ranks(observer, now);
	before = observe_cpu_time();
	look_at_all(observer);
	observer->whole_cost += observe_cpu_time() - before;
	observer->whole_at = now + WHOLE_NS;
	if (observer->whole_cost > WHOLE_FREE_NS)
		observer->whole_at = later_of(observer->whole_at, observer->began + WHOLE_PART *
					      (observer->whole_cost - WHOLE_FREE_NS));
	observer->glance_at = now + GLANCE_NS;
}

static void look_glance(struct observer *observer, uint64_t now)
{
	const uint64_t before = observe_cpu_time();
	uint32_t i;

	for (i = 0; i < observer->ranks; i++)
		observed_doing(&observer->rank[i]);
	observer->glance_at = now + later_of(GLANCE_NS,
					     GLANCE_PART * (observe_cpu_time() - before));
}

uint64_t observer_look(struct observer *observer)
{
	const uint64_t now = coll_now(), before = observe_cpu_time();

	if (now >= observer->whole_at)
		look_whole(observer, now);
	else if (now >= observer->glance_at)
		look_glance(observer, now);
	observer->cost += observe_cpu_time() - before;
	return observer->glance_at < observer->whole_at ? observer->glance_at : observer->whole_at;
}

void observer_end(struct observer *observer)
{
	observer->whole_at = 0;
	observer_look(observer);
}

/* ---- results ------------------------------------------------------------- */

static struct coll_flight_observed observed_of(const struct observer *observer, uint32_t index)
{
	struct coll_flight_observed observed = observer->rank[index].observed;

	observed_takers(&observer->rank[index], observed.taker);
	observed.cost = observer->cost;
	observed.online = sysconf(_SC_NPROCESSORS_ONLN);
	coll_flight_observed_clean(&observed);
	return observed;
}

static bool is_of_rank(const struct observed_rank *rank, const struct coll_flight_page *page)
{
	return page->rank == rank->rank && page->opened == rank->opened && page->pid == rank->own_pid;
}

void observer_give(const struct observer *observer, struct coll_flight_set *set)
{
	uint32_t i;
	size_t k;

	for (i = 0; i < observer->ranks; i++)
		for (k = 0; k < set->count; k++)
			if (is_of_rank(&observer->rank[i], &set->seen[k]->page) &&
			    !strcmp(set->seen[k]->page.job, observer->job))
				set->seen[k]->observed = observed_of(observer, i);
}

static int write_file(const struct observer *observer, const char *folder)
{
	struct coll_flight_observation *all = calloc(observer->ranks + 1, sizeof(*all));
	uint32_t i;
	int error;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < observer->ranks; i++) {
		all[i] = (struct coll_flight_observation){
			.magic = COLL_FLIGHT_OBSERVED_MAGIC,
			.version = COLL_FLIGHT_VERSION,
			.rank = observer->rank[i].rank,
			.opened = observer->rank[i].opened,
			.pid = observer->rank[i].own_pid,
			.observed = observed_of(observer, i),
		};
		memcpy(all[i].job, observer->job, sizeof(all[i].job));
	}
	error = coll_flight_report_observe(folder, observer->job, all, observer->ranks);
	free(all);
	return error;
}

int observer_write(struct observer *observer, const char *folder)
{
	const uint64_t before = observe_cpu_time();
	const int error = write_file(observer, folder);

	observer->cost += observe_cpu_time() - before;
	return error;
}
