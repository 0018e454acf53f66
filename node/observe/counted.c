// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll.ko counts, for one process a CPU, what takes that CPU while the process runs on it or is ready to: each
 * thread, interrupt and softirq, how often and for how long. An interval is counted if all of the rank's CPUs were watched
 * for it from begin to end, and it was bound to them at both. Of what the rank waited, the rest is its own threads', as
 * far as they ran: to coll.ko they are the rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "libcoll/base/clock.h"
#include "uapi/coll_noise.h"

enum {
	CPUS_MOST = 4,			/* of a thread: a core with all its hardware threads */
	SHARED = UINT16_MAX,		/* instead of a rank's index */
	SMALL_PART = 50,		/* a thread that took less than this part of what all did is not looked up */
};
static const uint64_t AGAIN_NS = 5 * COLL_SECOND, JUDGE_NS = 2 * COLL_SECOND;

/* ---- reading ----------------------------------------------------------------- */

/* Whose each CPU is: a rank's index + 1, or 0. */
struct counted_cpus {
	uint16_t rank[NODE_CPUS_MAX];
};

struct counted_reader {
	struct observed_rank *rank;
	const struct counted_cpus *of;
};

static void counted_mark(struct counted_cpus *of, const struct node_cpus *cpus, uint16_t rank)
{
	uint32_t cpu = node_cpus_next(cpus, 0);

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1))
		of->rank[cpu] = of->rank[cpu] && of->rank[cpu] != rank ? SHARED : rank;
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
		now->watched += watched->watched;
		now->cost += watched->cost;
		return 0;
	}
	source = counted_add(now);
	if (!source)
		return -1;
	*source = (struct counted_source){
		.cpu = watched->cpu, .index = watched->index, .number = watched->number,
		.cause = watched->cause, .count = watched->count, .total = watched->total,
	};
	snprintf(source->name, sizeof(source->name), "%s", watched->name);
	return 0;
}

/* Where its threads may run. false: on more CPUs than are counted for one, or it is not known. */
static bool counted_bound(const struct observed_rank *rank, struct node_cpus *cpus)
{
	struct node_cpus owner;
	uint32_t cpu;

	if (node_cpus_affinity(rank->pid, cpus) || node_cpus_count(cpus) > CPUS_MOST)
		return false;
	/* A thread of coll.ko's own makes progress in the rank's place: it is not of its process. */
	if (!rank->owner || node_task_process(rank->owner) != rank->pid)
		return true;
	if (node_cpus_affinity(rank->owner, &owner) || node_cpus_count(&owner) > CPUS_MOST)
		return false;
	for (cpu = node_cpus_next(&owner, 0); cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&owner, cpu + 1))
		node_cpus_add(cpus, cpu);
	return true;
}

static void counted_end(struct observed_counted *counted, const struct observer_counter *counter)
{
	counter->end(counter->argument, &counted->cpus);
	counted->watched = counted->whole = counted->nameless = false;
	counted->again = coll_now() + AGAIN_NS;		/* who changes its CPUs all the time is not counted */
	counted->before.count = counted->now.count = 0;
}

/* Another has one of its CPUs, or counting costs more than it may. */
static void counted_lose(struct observed_rank *rank, const struct observer_counter *counter, double cost)
{
	counted_end(&rank->counted_by, counter);
	if (cost > 0)
		rank->counted_by.again = UINT64_MAX;
	counter->lost(counter->argument, rank->job, rank->rank, cost);
}

/* By all of it so far: the cost is counted by samples. */
static double counted_cost(const struct counted_sources *sources)
{
	return sources->watched >= JUDGE_NS ? (double)sources->cost / sources->watched : 0;
}

static void counted_check(struct observed_rank *rank, const struct observer_counter *counter, bool read)
{
	struct observed_counted *counted = &rank->counted_by;
	struct node_cpus cpus;

	if (!counted->watched)
		return;
	counted->whole = read && counted->now.cpus == node_cpus_count(&counted->cpus);
	if (!counted->whole)
		counted_lose(rank, counter, 0);
	else
		counted->whole = counted_bound(rank, &cpus) && node_cpus_same(&cpus, &counted->cpus);
}

void node_counted_read(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter)
{
	struct counted_cpus *of = counter ? calloc(1, sizeof(*of)) : NULL;
	struct counted_reader reader = { rank, of };
	bool any = false, read;
	uint32_t i;

	for (i = 0; of && i < ranks; i++) {
		struct observed_counted *counted = &rank[i].counted_by;

		if (!counted->watched)
			continue;
		any = true;
		counted_mark(of, &counted->cpus, i + 1);
		counted->now.count = counted->now.cpus = counted->now.watched = counted->now.cost = 0;
	}
	read = any && !counter->read(counter->argument, counted_take_one, &reader);
	for (i = 0; counter && i < ranks; i++)
		counted_check(&rank[i], counter, read);
	free(of);
}

/* ---- an interval --------------------------------------------------------------- */

/* What it was before; NULL: it has come since. Both are in one order. */
static const struct counted_source *counted_before(const struct counted_sources *before, uint32_t *at,
						   const struct counted_source *now)
{
	for (; *at < before->count; ++*at) {
		const struct counted_source *source = &before->source[*at];

		if (source->cpu > now->cpu || (source->cpu == now->cpu && source->index > now->index))
			return NULL;
		if (source->cpu == now->cpu && source->index == now->index)
			return source;
	}
	return NULL;
}

/* By how much the next source has grown in the interval. false: there is none. */
static bool counted_next(const struct observed_counted *counted, uint32_t *i, uint32_t *at, struct counted_source *grown)
{
	const struct counted_source *before;

	for (; *i < counted->now.count; ++*i) {
		*grown = counted->now.source[*i];
		before = counted_before(&counted->before, at, grown);
		if (before) {
			grown->count -= before->count;
			grown->total -= before->total;
		}
		if ((int64_t)grown->total > 0) {
			++*i;
			return true;
		}
	}
	return false;
}

/* In all. */
static uint64_t counted_total(const struct observed_counted *counted)
{
	struct counted_source grown;
	uint32_t i = 0, at = 0;
	uint64_t total = 0;

	while (counted_next(counted, &i, &at, &grown))
		total += grown.total;
	return total;
}

/* What it had the core for in the interval, in which all sources had `total`. */
static void counted_take_thread(struct observed_rank *rank, const struct counted_source *source, uint64_t total,
				const struct observed_all *all)
{
	const bool is_small = source->total < total / SMALL_PART;
	struct node_ran ran = {
		.name = source->name,
		.pid = source->number && !is_small ? node_task_process(source->number) : 0,
		.tid = source->number, .cpu = source->cpu, .ns = source->total, .times = source->count,
	};
	struct coll_flight_taker ended = { .ns = source->total, .kind = COLL_FLIGHT_TAKER_TASK };

	if (ran.pid && node_takers_is_softirqd(&ran)) {
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, source->total, "ksoftirqd");
		return;
	}
	if (ran.pid && !node_takers_add_task(rank, &ran, source->total, all))
		return;
	if (!ran.pid && source->number && !is_small) {	/* it has ended: its name is known still */
		ended.id = source->number;
		memcpy(ended.name, source->name, sizeof(ended.name));
		node_takers_add(rank, &ended);
	} else if (!ran.pid) {
		node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, source->total);
		rank->counted_by.nameless |= !source->number && !is_small;
	}
	node_takers_add_stolen(rank, source->count, source->total);
}

/* Returns whether it had the core, as a thread: the rank waited meanwhile. */
static bool counted_take_source(struct observed_rank *rank, const struct counted_source *source, uint64_t total,
				double wanted, const struct observed_all *all)
{
	switch (source->cause) {
	case COLL_NOISE_THREAD:
		if (source->number != rank->owner || !rank->owner)
			counted_take_thread(rank, source, total, all);
		return true;
	case COLL_NOISE_INJECTED:
		if (strcmp(source->name, "injected")) {
			counted_take_thread(rank, source, total, all);
			return true;
		}
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, source->total, source->name);
		node_takers_add_stolen(rank, source->count, source->total);
		return false;
	case COLL_NOISE_SOFTIRQ:
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, source->total, source->name);
		return false;
	case COLL_NOISE_STEAL:	/* of the CPU, whoever had it */
		node_takers_add_kind(rank, COLL_FLIGHT_TAKER_STEAL, wanted * source->total);
		return false;
	default:
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, source->total, source->name);
		return false;
	}
}

/* Its other threads are the rank to coll.ko: they had what it waited and nobody else had. */
static void counted_take_own(struct observed_rank *rank, uint64_t left)
{
	uint64_t own = 0;
	uint32_t i;

	for (i = 0; i < rank->count; i++)
		if (rank->ran[i].pid == rank->pid)
			own += rank->ran[i].ns;
	node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OWN, own < left ? own : left);
}

bool node_counted_take(struct observed_rank *rank, uint64_t ran, uint64_t waited, const struct observed_all *all)
{
	struct observed_counted *counted = &rank->counted_by;
	const uint64_t took = rank->now.time - rank->before.time;
	const double wanted = took && ran + waited < took ? (double)(ran + waited) / took : 1;
	struct counted_source grown;
	uint64_t threads = 0, total;
	uint32_t i = 0, at = 0;

	if (!counted->whole)
		return false;
	total = counted_total(counted);
	while (counted_next(counted, &i, &at, &grown))
		if (counted_take_source(rank, &grown, total, wanted, all))
			threads += grown.total;
	counted_take_own(rank, waited > threads ? waited - threads : 0);
	rank->observed.counted += took;
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

/* It is watched as it should be, or not at all. coll.ko has names for a thousand sources of a CPU: then it begins anew. */
static void counted_settle(struct observed_rank *rank, const struct node_cpus *cpus,
			   const struct observer_counter *counter)
{
	struct observed_counted *counted = &rank->counted_by;
	const double cost = counted->watched ? counted_cost(&counted->now) : 0;

	if (cost > counter->most) {
		counted_lose(rank, counter, cost);
	} else if (counted->watched && !counted->nameless && cpus && node_cpus_same(cpus, &counted->cpus)) {
		counted_swap(counted);
	} else if (counted->watched) {
		counted_end(counted, counter);
	}
	if (counted->watched || !cpus || coll_now() < counted->again)
		return;
	counted->cpus = *cpus;
	counted->before.count = 0;
	counted->watched = !counter->begin(counter->argument, cpus, rank->pid);
	counted->again = counted->watched ? 0 : coll_now() + AGAIN_NS;
}

/* A CPU that two ranks may use tells nothing of either. */
static bool counted_alone(const struct counted_cpus *of, const struct node_cpus *cpus)
{
	uint32_t cpu = node_cpus_next(cpus, 0);

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1))
		if (of->rank[cpu] == SHARED)
			return false;
	return true;
}

void node_counted_follow(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter)
{
	struct counted_cpus *of = counter ? calloc(1, sizeof(*of)) : NULL;
	struct node_cpus *cpus = counter ? calloc(ranks + 1, sizeof(*cpus)) : NULL;
	uint32_t i;

	for (i = 0; of && cpus && i < ranks; i++) {
		rank[i].counted_by.fits = rank[i].now.time && counted_bound(&rank[i], &cpus[i]);
		if (rank[i].now.time)
			counted_mark(of, &cpus[i], i + 1);
	}
	for (i = 0; of && cpus && i < ranks; i++) {
		rank[i].counted_by.fits = rank[i].counted_by.fits && counted_alone(of, &cpus[i]);
		counted_settle(&rank[i], rank[i].counted_by.fits ? &cpus[i] : NULL, counter);
	}
	free(of);
	free(cpus);
}

void node_counted_forget(struct observed_rank *rank, const struct observer_counter *counter)
{
	struct observed_counted *counted = &rank->counted_by;

	if (counted->watched)
		counted_end(counted, counter);
	free(counted->before.source);
	free(counted->now.source);
	*counted = (struct observed_counted){ .watched = false };
}

struct observer_counts node_counted_counts(const struct observed_rank *rank, uint32_t ranks)
{
	struct observer_counts counts = { 0, 0, 0 };
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		const struct observed_counted *counted = &rank[i].counted_by;

		counts.fit += counted->fits && counted->again != UINT64_MAX;
		counts.ranks += counted->watched;
		counts.cpus += counted->watched ? node_cpus_count(&counted->cpus) : 0;
	}
	return counts;
}
