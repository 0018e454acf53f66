// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll.ko counts, for one rank a CPU, what takes that CPU while the rank runs on it or is ready to: each
 * thread, interrupt and softirq, how often and for how long. The rank is its first thread and that which makes
 * progress, as in what /proc says of it (taken.c): its other threads are one that takes. An interval is counted
 * if all of the rank's CPUs were watched for it from begin to end, it was bound to them at both, and it left
 * them for no others meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "libcoll/base/clock.h"
#include "node/cgroup.h"
#include "uapi/coll_noise.h"

enum {
	CPUS_MOST = 4,			/* of a thread: a core with all its hardware threads */
	SHARED = UINT16_MAX,		/* instead of a rank's index */
	SMALL_PART = 50,		/* a thread that took less than this part of what all did is not looked up */
};
static const uint64_t AGAIN_NS = 5 * COLL_SECOND;
static const uint64_t DEAR_NS = 10 * COLL_SECOND, DEAR_MOST_NS = 300 * COLL_SECOND;	/* after it took too much: each time twice as long */

/* ---- reading ----------------------------------------------------------------- */

/*
 * Whose each CPU is: a rank's index + 1, or 0. It can be counted for one only: for the rank that may use the
 * fewest CPUs, since one that may use more is elsewhere at times.
 */
struct counted_cpus {
	uint16_t rank[NODE_CPUS_MAX];
	uint16_t uses[NODE_CPUS_MAX];	/* so many CPUs that rank may use, or each of those that share it */
};

struct counted_reader {
	struct observed_rank *rank;
	const struct counted_cpus *of;
};

static void counted_mark(struct counted_cpus *of, const struct node_cpus *cpus, uint16_t rank)
{
	const uint32_t uses = node_cpus_count(cpus);
	uint32_t cpu = node_cpus_next(cpus, 0);

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1)) {
		if (of->rank[cpu] && uses > of->uses[cpu])
			continue;
		of->rank[cpu] = of->rank[cpu] && uses == of->uses[cpu] ? SHARED : rank;
		of->uses[cpu] = uses;
	}
}

static struct counted_source *counted_add(struct counted_sources *sources)
{
	if (sources->count == sources->room) {
		const uint32_t room = sources->room ? 2 * sources->room : 32;
		struct counted_source *more = reallocarray(sources->source, room, sizeof(*more));

		if (!more)
			return NULL;
		sources->source = more;
		sources->room = room;
	}
	return &sources->source[sources->count++];
}

static int counted_take_one(const struct node_watched *watched, void *argument)
{
	const struct counted_reader *reader = argument;
	const uint16_t of = watched->own && watched->cpu < NODE_CPUS_MAX ? reader->of->rank[watched->cpu] : 0;
	struct counted_sources *now = of && of != SHARED ? &reader->rank[of - 1].counted_by.now : NULL;
	struct counted_source *source;

	if (!now)
		return 0;
	if (!watched->is_source) {
		now->cpus++;
		now->dear |= watched->dear;
		now->away += watched->away;
		return 0;
	}
	source = counted_add(now);
	if (!source)
		return -ENOMEM;
	now->total += watched->total;
	*source = (struct counted_source){
		.cpu = watched->cpu, .index = watched->index, .reused = watched->reused, .number = watched->number,
		.cause = watched->cause,
		.born = watched->born, .cgroup = watched->cgroup, .count = watched->count, .total = watched->total,
	};
	snprintf(source->name, sizeof(source->name), "%s", watched->name);
	return 0;
}

/*
 * Where its threads may run. false: on more CPUs than are counted for one, or it is not known. Which thread makes
 * progress is what the rank says; coll.ko's own, where that is no thread of the program, is none that it may say.
 */
static bool counted_bound(const struct observed_rank *rank, struct node_cpus *cpus)
{
	struct node_cpus owner;
	uint32_t cpu;

	if (node_cpus_affinity(rank->pid, cpus) || node_cpus_count(cpus) > CPUS_MOST)
		return false;
	if (!rank->owner)
		return true;
	if (node_task_process(rank->owner) != rank->pid || node_cpus_affinity(rank->owner, &owner) ||
	    node_cpus_count(&owner) > CPUS_MOST)
		return false;
	for (cpu = node_cpus_next(&owner, 0); cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&owner, cpu + 1))
		node_cpus_add(cpus, cpu);
	return true;
}

/* Its CPUs are among those that end at this look. */
static void counted_end(struct observed_counted *counted, struct node_cpus *ended)
{
	uint32_t cpu = node_cpus_next(&counted->cpus, 0);

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&counted->cpus, cpu + 1))
		node_cpus_add(ended, cpu);
	counted->watched = counted->whole = false;
	counted->again = coll_now() + AGAIN_NS;		/* who changes its CPUs all the time is not counted */
	counted->before.count = counted->now.count = 0;
}

void node_counted_end(const struct observer_counter *counter, struct node_cpus *ended)
{
	if (counter && node_cpus_count(ended))
		counter->end(counter->argument, ended);
	*ended = (struct node_cpus){ .bits = { 0 } };
}

/* What was counted for as long as the longest pause begins with the shortest one. */
static uint64_t counted_pause(struct observed_counted *counted)
{
	uint64_t pause;

	if (coll_now() - counted->began > DEAR_MOST_NS)
		counted->dears = 0;
	pause = DEAR_NS << counted->dears;
	if (pause >= DEAR_MOST_NS)
		return DEAR_MOST_NS;
	counted->dears++;
	return pause;
}

/* Another has one of its CPUs, or counting took more than it may. */
static void counted_lose(struct observed_rank *rank, const struct observer_counter *counter, bool dear,
			 struct node_cpus *ended)
{
	counted_end(&rank->counted_by, ended);
	if (dear)
		rank->counted_by.again = coll_now() + counted_pause(&rank->counted_by);
	counter->lost(counter->argument, rank->job, rank->rank, dear);
}

static void counted_check(struct observed_rank *rank, const struct observer_counter *counter, bool read,
			  struct node_cpus *ended)
{
	struct observed_counted *counted = &rank->counted_by;
	struct node_cpus cpus;

	if (!counted->watched)
		return;
	counted->whole = read && counted->now.cpus == node_cpus_count(&counted->cpus) && !counted->now.dear;
	if (!counted->whole)
		counted_lose(rank, counter, read && counted->now.dear, ended);
	else
		counted->whole = counted_bound(rank, &cpus) && node_cpus_same(&cpus, &counted->cpus) &&
				 counted->now.away == counted->before.away;
}

static void counted_clear(struct counted_sources *sources)
{
	sources->count = sources->cpus = 0;
	sources->total = sources->away = 0;
	sources->dear = false;
}

void node_counted_read(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter)
{
	struct counted_cpus *of = counter ? calloc(1, sizeof(*of)) : NULL;
	struct counted_reader reader = { rank, of };
	struct node_cpus ended = { .bits = { 0 } };
	bool any = false, read;
	uint32_t i;

	for (i = 0; of && i < ranks; i++) {
		struct observed_counted *counted = &rank[i].counted_by;

		if (!counted->watched)
			continue;
		any = true;
		counted_mark(of, &counted->cpus, i + 1);
		counted_clear(&counted->now);
	}
	read = any && !counter->read(counter->argument, counted_take_one, &reader);
	for (i = 0; counter && i < ranks; i++)
		counted_check(&rank[i], counter, read, &ended);
	node_counted_end(counter, &ended);
	free(of);
}

/* ---- an interval --------------------------------------------------------------- */

/* The same one in another reading; NULL: it is not there. Both are in one order, in which it goes on from `*at`. */
static const struct counted_source *counted_find(const struct counted_sources *in, uint32_t *at,
						 const struct counted_source *one)
{
	for (; *at < in->count; ++*at) {
		const struct counted_source *source = &in->source[*at];

		if (source->cpu > one->cpu || (source->cpu == one->cpu && source->index > one->index))
			return NULL;
		if (source->cpu == one->cpu && source->index == one->index)
			return source->reused == one->reused ? source : NULL;
	}
	return NULL;
}

/* Of a cause, what coll.ko has no name for (any more). */
static bool counted_is_rest(const struct counted_source *source)
{
	return source->index <= COLL_NOISE_CAUSES;
}

/* Those that were there before, and have been folded into the rest since: what they had then is no growth of it. */
static void counted_unfold(const struct observed_counted *counted, struct counted_source *rest)
{
	uint32_t i, at = 0;

	for (i = 0; i < counted->before.count; i++) {
		const struct counted_source *source = &counted->before.source[i];

		if (source->cpu != rest->cpu || source->cause != rest->cause || counted_is_rest(source) ||
		    counted_find(&counted->now, &at, source))
			continue;
		rest->count -= source->count;
		rest->total -= source->total;
	}
}

/* By how much the next source has grown in the interval. false: there is none. */
static bool counted_next(const struct observed_counted *counted, uint32_t *i, uint32_t *at, struct counted_source *grown)
{
	const struct counted_source *before;

	for (; *i < counted->now.count; ++*i) {
		*grown = counted->now.source[*i];
		before = counted_find(&counted->before, at, grown);
		if (before) {
			grown->count -= before->count;
			grown->total -= before->total;
		}
		if (counted_is_rest(grown))
			counted_unfold(counted, grown);
		if ((int64_t)grown->total > 0) {
			++*i;
			return true;
		}
	}
	return false;
}

/* It may have ended with the task. */
static void counted_cgroup(struct coll_flight_taker *taker, uint64_t cgroup)
{
	char *path = cgroup ? node_cgroup_path(cgroup) : NULL;

	if (path)
		node_takers_cgroup(taker, path);
	free(path);
}

/* Of the thread. 0: it has ended, also where its number was given again; or it is not in this pid namespace. */
static uint32_t counted_process(const struct counted_source *source)
{
	if (!source->number || (source->born && node_task_is(source->number, source->born) <= 0))
		return 0;
	return node_task_process(source->number);
}

/* What it had the core for in the interval, in which all sources had `total`. */
static void counted_take_thread(struct observed_rank *rank, const struct counted_source *source, uint64_t total,
				const struct observed_all *all)
{
	const bool is_small = source->total < total / SMALL_PART,
		   is_rest = counted_is_rest(source);
	struct node_ran ran = {
		.name = source->name,
		.pid = is_small ? 0 : counted_process(source),
		.tid = source->number, .cpu = source->cpu, .ns = source->total, .times = source->count,
	};
	struct coll_flight_taker ended = { .ns = source->total, .kind = COLL_FLIGHT_TAKER_TASK };

	if (ran.pid && node_takers_is_softirqd(&ran)) {
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, source->total, "ksoftirqd");
		return;
	}
	if (ran.pid && !node_takers_add_task(rank, &ran, source->total, all))
		return;
	if (!ran.pid && !is_rest && !is_small) {	/* it has ended, or is not in this pid namespace: its name is known */
		ended.id = source->number;
		memcpy(ended.name, source->name, sizeof(ended.name));
		counted_cgroup(&ended, source->cgroup);
		node_takers_add(rank, &ended);
	} else if (!ran.pid) {
		node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, source->total);
	}
	if (!is_small)			/* whose they are is not looked at: they may be the job's */
		node_takers_add_stolen(rank, source->count, source->total);
}

static void counted_take_interrupts(struct observed_rank *rank, enum coll_flight_taker_kind kind,
				    const struct counted_source *source)
{
	node_takers_add_interrupts(rank, kind, source->total, source->name);
}

static void counted_take_source(struct observed_rank *rank, const struct counted_source *source, uint64_t total,
				const struct observed_all *all)
{
	switch (source->cause) {
	case COLL_NOISE_THREAD:
		if (source->number == rank->pid)	/* its other threads */
			node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OWN, source->total);
		else
			counted_take_thread(rank, source, total, all);
		return;
	case COLL_NOISE_INJECTED:
		if (strcmp(source->name, "injected")) {
			counted_take_thread(rank, source, total, all);
			return;
		}
		counted_take_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, source);
		node_takers_add_stolen(rank, source->count, source->total);
		return;
	case COLL_NOISE_SOFTIRQ:
		counted_take_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, source);
		return;
	case COLL_NOISE_STEAL:
		node_takers_add_kind(rank, COLL_FLIGHT_TAKER_STEAL, source->total);
		return;
	default:
		counted_take_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, source);
	}
}

bool node_counted_take(struct observed_rank *rank, const struct observed_all *all)
{
	struct observed_counted *counted = &rank->counted_by;
	const uint64_t total = counted->now.total - counted->before.total;
	struct counted_source grown;
	uint32_t i = 0, at = 0;

	if (!counted->whole)
		return false;
	while (counted_next(counted, &i, &at, &grown))
		counted_take_source(rank, &grown, total, all);
	rank->observed.counted += rank->now.time - rank->before.time;
	return true;
}

/* ---- which ranks ----------------------------------------------------------------- */

static void counted_swap(struct observed_counted *counted)
{
	const struct counted_sources before = counted->before;

	counted->before = counted->now;
	counted->now = before;
	counted->now.count = 0;
	counted->whole = false;
}

/* That makes progress, beside the first one. */
static uint32_t counted_thread(const struct observed_rank *rank)
{
	return rank->owner ? rank->owner : rank->pid;
}

/* It is watched as it should be, or not any more. */
static void counted_keep(struct observed_rank *rank, const struct node_cpus *cpus, struct node_cpus *ended)
{
	struct observed_counted *counted = &rank->counted_by;

	if (counted->watched && counted->thread == counted_thread(rank) && counted->fits &&
	    node_cpus_same(cpus, &counted->cpus))
		counted_swap(counted);
	else if (counted->watched)
		counted_end(counted, ended);
}

static void counted_begin(struct observed_rank *rank, const struct node_cpus *cpus,
			  const struct observer_counter *counter)
{
	struct observed_counted *counted = &rank->counted_by;

	if (counted->watched || !counted->fits || coll_now() < counted->again)
		return;
	counted->cpus = *cpus;
	counted->thread = counted_thread(rank);
	counted->began = coll_now();
	counted_clear(&counted->before);
	counted->watched = !counter->begin(counter->argument, cpus, rank->pid, counted->thread);
	counted->again = counted->watched ? 0 : coll_now() + AGAIN_NS;
}

/* All its CPUs are counted for it, or none is. */
static bool counted_alone(const struct counted_cpus *of, const struct node_cpus *cpus, uint16_t rank)
{
	uint32_t cpu = node_cpus_next(cpus, 0);

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1))
		if (of->rank[cpu] != rank)
			return false;
	return true;
}

/* Its ranks that are bound there, and ran since the latest look: one that only sleeps there keeps nobody's out. */
static void counted_claim(struct observed_rank *rank, const struct node_cpus *cpus, struct node_cpus *claimed)
{
	struct observed_counted *counted = &rank->counted_by;

	if (counted->fits && rank->now.ran != counted->ran && node_cpus_has(cpus, rank->now.cpu))
		node_cpus_add(claimed, rank->now.cpu);
	counted->ran = rank->now.ran;
}

/* What two users' ranks run on tells neither of the other. */
static void counted_share(struct counted_cpus *of, const struct observer_counter *counter,
			  const struct node_cpus *claimed)
{
	struct node_cpus others = { .bits = { 0 } };
	uint32_t cpu;

	counter->claim(counter->argument, claimed, &others);
	for (cpu = node_cpus_next(&others, 0); cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&others, cpu + 1))
		of->rank[cpu] = SHARED;
}

void node_counted_follow(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter)
{
	struct counted_cpus *of = counter ? calloc(1, sizeof(*of)) : NULL;
	struct node_cpus *cpus = counter ? calloc(ranks + 1, sizeof(*cpus)) : NULL;
	struct node_cpus ended = { .bits = { 0 } }, claimed = { .bits = { 0 } };
	uint32_t i;

	for (i = 0; of && cpus && i < ranks; i++) {
		rank[i].counted_by.fits = rank[i].now.time && counted_bound(&rank[i], &cpus[i]);
		if (rank[i].counted_by.fits)	/* who is not bound keeps nobody's out: it takes from those that are */
			counted_mark(of, &cpus[i], i + 1);
		counted_claim(&rank[i], &cpus[i], &claimed);
	}
	if (of && cpus)
		counted_share(of, counter, &claimed);
	for (i = 0; of && cpus && i < ranks; i++) {
		rank[i].counted_by.fits = rank[i].counted_by.fits && counted_alone(of, &cpus[i], i + 1);
		counted_keep(&rank[i], &cpus[i], &ended);
	}
	node_counted_end(counter, &ended);
	for (i = 0; of && cpus && i < ranks; i++)	/* on CPUs that were another's until now, too */
		counted_begin(&rank[i], &cpus[i], counter);
	free(of);
	free(cpus);
}

void node_counted_forget(struct observed_rank *rank, struct node_cpus *ended)
{
	struct observed_counted *counted = &rank->counted_by;

	if (counted->watched)
		counted_end(counted, ended);
	free(counted->before.source);
	free(counted->now.source);
	*counted = (struct observed_counted){ .watched = false };
}

void node_counted_inherit(struct observed_rank *rank, const struct observed_rank *before)
{
	const struct observed_counted *counted = &before->counted_by;

	if (!before->born || node_task_is(before->pid, before->born) <= 0)	/* its number was given again */
		return;
	rank->born = before->born;
	rank->counted_by.dears = counted->dears;
	rank->counted_by.again = counted->watched ? coll_now() + AGAIN_NS : counted->again;
	rank->counted_by.began = counted->began;
}

struct observer_counts node_counted_counts(const struct observed_rank *rank, uint32_t ranks)
{
	struct observer_counts counts = { 0, 0, 0 };
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		const struct observed_counted *counted = &rank[i].counted_by;

		counts.fit += counted->fits && !counted->dears;
		counts.ranks += counted->watched;
		counts.cpus += counted->watched ? node_cpus_count(&counted->cpus) : 0;
	}
	return counts;
}
