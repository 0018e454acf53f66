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
#include "libcoll/flight/observation.h"
#include "libcoll/flight/report_file.h"
#include "counted.h"
#include "interrupts.h"
#include "observe.h"
#include "taken.h"

enum {
	GLANCE_NS = 100000000,		/* between two looks at what the ranks do, at least ... */
	GLANCE_PART = 1000,		/* ... and so many times what one takes */
	WHOLE_NS = 500000000,		/* ... at all threads of the node */
	WHOLE_PART = 500,		/* ... once so many ns are spent on it: */
	WHOLE_PART_USER = 100,		/* ... of a user's ranks */
	WHOLE_FREE_NS = 150000000,	/* a short job is seen as well */
	CALLS_NS = 500000000,		/* after a call the next one may follow */
	FIND_NS = 250000000,		/* after the first search for ranks */
};
static const uint64_t FIND_MOST_NS = 4 * COLL_SECOND;	/* of a user's ranks */
static const uint64_t FIND_LONGEST_NS = 50000000;	/* ... then it goes on later */
static const uint64_t KEPT_NS = 60 * COLL_SECOND;	/* after a user's rank was there */

struct observer {
	const char *job;		/* NULL: all of the user */
	char name[64];			/* its room */
	uid_t uid;
	struct observed_hearer hearer;
	const struct observer_counter *counter;	/* or NULL */
	struct node_cpus ended;		/* of ranks that were closed: they are not to be counted any more */
	struct observed_rank *rank;
	uint32_t ranks, expected;	/* expected: on this node; 0: not known */
	struct node_activity *threads;	/* at the latest whole look */
	uint64_t looked;
	uint64_t glanced, called;	/* at what the ranks do; ... and one was in a collective */
	uint64_t find_at, find_pause;
	uint32_t find_from;		/* a pid: where the search goes on */
	uint64_t began, whole_cost;
	uint64_t glance_at, whole_at, cost;
};

static uint64_t observe_cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * COLL_SECOND + time.tv_nsec;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- ranks --------------------------------------------------------------- */

static bool is_observed(const struct observer *observer, const struct coll_flight_seen *seen)
{
	uint32_t i;

	for (i = 0; i < observer->ranks; i++)
		if (observer->rank[i].pid == seen->pid &&
		    observer->rank[i].opened == seen->page.opened)
			return true;
	return false;
}

static void close_entry(struct observer *observer, struct observed_rank *rank)
{
	node_observed_interrupts_forget(rank);
	node_counted_forget(rank, &observer->ended);
	if (rank->page >= 0)
		close(rank->page);
}

/* A process of a user has one entry, however many pages it makes: the latest one's, in its place. */
static void replace_entry(struct observer *observer, struct observed_rank *rank)
{
	uint32_t i;

	for (i = 0; !observer->job && i < observer->ranks; i++)
		if (observer->rank[i].pid == rank->pid) {
			node_counted_inherit(rank, &observer->rank[i]);
			close_entry(observer, &observer->rank[i]);
			observer->rank[i] = observer->rank[--observer->ranks];
			return;
		}
}

/* All with one call: each waits for all CPUs. */
static void end_counts(struct observer *observer)
{
	node_counted_end(observer->counter, &observer->ended);
}

static bool add_rank(struct coll_flight_seen *seen, int page, void *argument)
{
	struct observer *observer = argument;
	struct observed_rank *more, rank;
	uint32_t owner;

	if (seen->flags & COLL_FLIGHT_ENDED || seen->page.ended || is_observed(observer, seen) ||
	    observer->ranks == OBSERVER_RANKS)
		return false;
	more = reallocarray(observer->rank, observer->ranks + 1, sizeof(*more));
	if (!more)
		return false;
	owner = coll_flight_owner(seen);
	observer->rank = more;
	rank = (struct observed_rank){
		.rank = seen->page.rank,
		.pid = seen->pid,
		.opened = seen->page.opened,
		.own_pid = seen->page.pid,
		.runs = seen->page.runs,
		.owner = owner == seen->pid ? 0 : owner,
		.page = page,
	};
	memcpy(rank.job, seen->page.job, sizeof(rank.job));
	replace_entry(observer, &rank);
	more[observer->ranks++] = rank;
	if (seen->page.local_ranks > 0)
		observer->expected = seen->page.local_ranks;
	return true;
}

static bool knows_all(const struct observer *observer)
{
	return observer->job && observer->ranks && observer->ranks >= observer->expected;
}

/* Each time after a pause twice as long, but the next part of one that was long follows soon. */
static uint64_t find_next(struct observer *observer, uint64_t cost)
{
	if (!observer->find_from)
		observer->find_pause = observer->find_pause ? 2 * observer->find_pause : FIND_NS;
	if (observer->job)
		return observer->find_pause;
	if (observer->find_pause > FIND_MOST_NS)
		observer->find_pause = FIND_MOST_NS;
	return later_of(observer->find_from ? FIND_NS : observer->find_pause, WHOLE_PART_USER * cost);
}

/*
 * All descriptors of all processes are read: 30 ms, so not again when all ranks are known. Another
 * user may have made that long: then it has parts, and the pause is longer.
 */
static void find_ranks(struct observer *observer, uint64_t now)
{
	struct coll_flight_search search = {
		.job = observer->job, .uid = observer->uid, .from = observer->find_from,
		.until = observer->job ? UINT64_MAX : now + FIND_LONGEST_NS,
		.each = add_rank, .argument = observer,
	};
	const uint64_t before = observe_cpu_time();

	if (knows_all(observer) || now < observer->find_at)
		return;
	coll_flight_search(&search);
	observer->find_from = search.from;
	observer->find_at = now + find_next(observer, observe_cpu_time() - before);
}

/* A user's ranks come and go, and pids are used again. What was seen of one is kept for its report. */
static void forget_gone(struct observer *observer, uint64_t now)
{
	uint32_t i, kept = 0;

	for (i = 0; i < observer->ranks; i++) {
		struct observed_rank *rank = &observer->rank[i];

		if (rank->now.time)
			rank->gone = 0;
		else if (!rank->gone)
			rank->gone = now;
		if (rank->gone && now - rank->gone > KEPT_NS)
			close_entry(observer, rank);
		else if (kept++ != i)
			observer->rank[kept - 1] = *rank;
	}
	observer->ranks = kept;
}

uint32_t node_observer_pids(const struct observer *observer, uint32_t *pid, uint32_t room)
{
	uint32_t i, count = 0;

	for (i = 0; i < observer->ranks && count < room; i++)
		if (!observer->rank[i].gone)
			pid[count++] = observer->rank[i].pid;
	return count;
}

static struct observer *observer_make(uid_t uid)
{
	struct observer *observer = calloc(1, sizeof(*observer));

	if (!observer)
		return NULL;
	observer->uid = uid;
	observer->began = coll_now();
	return observer;
}

struct observer *node_observer_open(const char *job)
{
	struct observer *observer = observer_make(geteuid());

	if (!observer)
		return NULL;
	snprintf(observer->name, sizeof(observer->name), "%s", job);
	observer->job = observer->name;
	return observer;
}

struct observer *node_observer_open_user(uid_t uid)
{
	return observer_make(uid);
}

void node_observer_hear(struct observer *observer,
		   void (*taken)(const struct observer_taken *taken, void *argument), void *argument)
{
	observer->hearer = (struct observed_hearer){ taken, argument };
}

void node_observer_count(struct observer *observer, const struct observer_counter *counter)
{
	observer->counter = counter;
}

struct observer_counts node_observer_counts(const struct observer *observer)
{
	return node_counted_counts(observer->rank, observer->ranks);
}

void node_observer_close(struct observer *observer)
{
	uint32_t i;

	if (!observer)
		return;
	for (i = 0; i < observer->ranks; i++)
		close_entry(observer, &observer->rank[i]);
	end_counts(observer);
	node_activity_free(observer->threads);
	free(observer->rank);
	free(observer);
}

/* ---- looks --------------------------------------------------------------- */

static void look_at_ranks(struct observer *observer)
{
	uint32_t i;

	observer->glanced = coll_now();
	for (i = 0; i < observer->ranks; i++) {
		node_observed_doing(&observer->rank[i]);
		if (observer->rank[i].calls)
			observer->called = observer->glanced;
	}
}

bool node_observer_calls(const struct observer *observer)
{
	return observer->called && observer->glanced - observer->called < CALLS_NS;
}

static void look_at_all(struct observer *observer)
{
	struct node_activity *threads = observer->ranks ? node_activity_threads() : NULL;

	if (!threads)
		return;
	node_observed_taken(observer->rank, observer->ranks, observer->threads, threads, &observer->hearer,
			    observer->counter);
	look_at_ranks(observer);
	node_activity_free(observer->threads);
	observer->threads = threads;
	observer->looked = coll_now();
}

uint64_t node_observer_looked(const struct observer *observer)
{
	return observer->looked;
}

/*
 * Searches have pauses of their own. A job's looks have a budget for all its time. Another user's have a
 * part of the time after each: what was not spent is not saved for a burst.
 */
static uint64_t whole_next(const struct observer *observer, uint64_t now, uint64_t cost)
{
	if (!observer->job)
		return later_of(now + WHOLE_NS, coll_now() + WHOLE_PART_USER * cost);
	if (observer->whole_cost <= WHOLE_FREE_NS)
		return now + WHOLE_NS;
	return later_of(now + WHOLE_NS, observer->began +
			WHOLE_PART * (observer->whole_cost - WHOLE_FREE_NS));
}

static void look_whole(struct observer *observer, uint64_t now)
{
	uint64_t before, cost;

	find_ranks(observer, now);
	end_counts(observer);
	before = observe_cpu_time();
	look_at_all(observer);
	if (!observer->job)
		forget_gone(observer, now);
	end_counts(observer);
	cost = observe_cpu_time() - before;
	observer->whole_cost += cost;
	observer->whole_at = whole_next(observer, now, cost);
	observer->glance_at = now + GLANCE_NS;
}

static void look_glance(struct observer *observer, uint64_t now)
{
	const uint64_t before = observe_cpu_time();

	look_at_ranks(observer);
	observer->glance_at = now + later_of(GLANCE_NS,
					     GLANCE_PART * (observe_cpu_time() - before));
}

uint64_t node_observer_look(struct observer *observer)
{
	const uint64_t now = coll_now(), before = observe_cpu_time();

	if (now >= observer->whole_at)
		look_whole(observer, now);
	else if (now >= observer->glance_at)
		look_glance(observer, now);
	observer->cost += observe_cpu_time() - before;
	return observer->glance_at < observer->whole_at ? observer->glance_at : observer->whole_at;
}

void node_observer_end(struct observer *observer)
{
	observer->whole_at = 0;
	node_observer_look(observer);
}

static void mark_taker(struct observed_rank *rank, uint32_t pid, uint32_t flags)
{
	uint32_t i;

	for (i = 0; i < rank->takers; i++)
		if (rank->taker[i].kind == COLL_FLIGHT_TAKER_TASK && rank->taker[i].id == pid)
			rank->taker[i].flags |= flags;
}

void node_observer_mark(struct observer *observer, uint32_t pid, uint32_t flags)
{
	uint32_t i;

	for (i = 0; i < observer->ranks; i++)
		mark_taker(&observer->rank[i], pid, flags);
}

/* ---- results ------------------------------------------------------------- */

static struct coll_flight_observed observed_of(const struct observer *observer, uint32_t index)
{
	struct coll_flight_observed observed = observer->rank[index].observed;

	node_observed_takers(&observer->rank[index], observed.taker);
	observed.cost = observer->cost;
	observed.source = observer->job ? COLL_FLIGHT_BY_USER : COLL_FLIGHT_BY_COLLD;
	observed.online = sysconf(_SC_NPROCESSORS_ONLN);
	coll_flight_observed_clean(&observed);
	return observed;
}

static struct coll_flight_observation observation_of(const struct observer *observer, uint32_t index)
{
	const struct observed_rank *rank = &observer->rank[index];
	struct coll_flight_observation one = {
		.magic = COLL_FLIGHT_OBSERVED_MAGIC,
		.version = COLL_FLIGHT_VERSION,
		.rank = rank->rank,
		.opened = rank->opened,
		.pid = rank->own_pid,
		.observed = observed_of(observer, index),
	};

	memcpy(one.job, rank->job, sizeof(one.job));
	return one;
}

void node_observer_give(const struct observer *observer, struct coll_flight_set *set)
{
	uint32_t i;

	for (i = 0; i < observer->ranks; i++) {
		struct coll_flight_observation one = observation_of(observer, i);

		coll_flight_observation_take(set, &one);
	}
}

/* NULL: no memory. */
static struct coll_flight_observation *observations_of(const struct observer *observer)
{
	struct coll_flight_observation *all = calloc(observer->ranks + 1, sizeof(*all));
	uint32_t i;

	for (i = 0; all && i < observer->ranks; i++)
		all[i] = observation_of(observer, i);
	return all;
}

static int write_file(const struct observer *observer, const char *folder)
{
	struct coll_flight_observation *all = observations_of(observer);
	int error = -ENOMEM;

	if (all && observer->job)
		error = coll_flight_report_observe(folder, observer->job, all, observer->ranks);
	else if (all)
		error = coll_flight_observation_leave(folder, observer->uid, all, observer->ranks);
	free(all);
	return error;
}

int node_observer_write(struct observer *observer, const char *folder)
{
	const uint64_t before = observe_cpu_time();
	const int error = write_file(observer, folder);

	observer->cost += observe_cpu_time() - before;
	return error;
}
