// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Who had a rank's core, added up; of all those the ones that its record has room for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "takers.h"

/* ---- adding ------------------------------------------------------------------ */

static struct coll_flight_taker *smallest_taker(struct observed_rank *rank)
{
	struct coll_flight_taker *least = NULL, *taker;

	for (taker = rank->taker; taker < rank->taker + rank->takers; taker++)
		if (taker->kind != COLL_FLIGHT_TAKER_OTHERS && (!least || taker->ns < least->ns))
			least = taker;
	return least;
}

/* There is no room: the smaller of it and the smallest is among the others, which have. */
static void takers_evict(struct observed_rank *rank, const struct coll_flight_taker *taker)
{
	struct coll_flight_taker *least = smallest_taker(rank);
	const uint64_t ns = least->ns < taker->ns ? least->ns : taker->ns;

	if (least->ns < taker->ns)
		*least = *taker;
	node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, ns);
}

void node_takers_add(struct observed_rank *rank, const struct coll_flight_taker *taker)
{
	uint32_t i;

	if (!taker->ns)
		return;
	for (i = 0; i < rank->takers; i++) {
		struct coll_flight_taker *known = &rank->taker[i];

		if (known->kind != taker->kind || strcmp(known->name, taker->name) ||
		    strcmp(known->cgroup, taker->cgroup))
			continue;
		known->ns += taker->ns;
		known->id = taker->id;
		known->flags &= taker->flags | COLL_FLIGHT_TAKER_MOVED | COLL_FLIGHT_TAKER_HELD;
		if (known->uid != taker->uid)
			known->flags &= ~COLL_FLIGHT_TAKER_USER;
		return;
	}
	if (rank->takers + 1 < OBSERVED_TAKERS || taker->kind == COLL_FLIGHT_TAKER_OTHERS)
		rank->taker[rank->takers++] = *taker;
	else
		takers_evict(rank, taker);
}

void node_takers_add_kind(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns)
{
	node_takers_add(rank, &(struct coll_flight_taker){ .ns = ns, .kind = kind });
}

/* What was added without a name has the one that is found first, and what comes without it is added there. */
void node_takers_add_interrupts(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns,
				const char *name)
{
	struct coll_flight_taker taker = { .ns = ns, .kind = kind };
	uint32_t i;

	for (i = 0; i < rank->takers && rank->taker[i].kind != kind; i++)
		;
	if (i < rank->takers && !*rank->taker[i].name)
		snprintf(rank->taker[i].name, sizeof(rank->taker[i].name), "%s", name);
	else if (i < rank->takers && !*name)
		name = rank->taker[i].name;
	snprintf(taker.name, sizeof(taker.name), "%s", name);
	node_takers_add(rank, &taker);
}

/*
 * Programs took so much, in so many pieces: for jobs, which make a rate and a length of it. Not interrupts, which may
 * be those of the job's own messages.
 */
void node_takers_add_stolen(struct observed_rank *rank, double times, uint64_t ns)
{
	rank->stops += times;
	rank->observed.stolen += ns;
	rank->observed.stops = rank->stops;
}

/* The end of a long path says more than its begin. */
void node_takers_cgroup(struct coll_flight_taker *taker, const char *cgroup)
{
	const size_t length = strlen(cgroup), room = sizeof(taker->cgroup) - 1;
	const char *end = length > room ? cgroup + length - room : cgroup;

	memcpy(taker->cgroup, end, strlen(end) + 1);
}

enum { PARENTS_MOST = 16 };

/* The rank that the process is, or is a descendant of. NULL: none. */
static const struct observed_rank *rank_above(uint32_t pid, const struct observed_rank *ranks,
					      uint32_t count)
{
	uint32_t i, level;

	for (level = 0; pid > 1 && level < PARENTS_MOST; level++) {
		struct node_task task;

		for (i = 0; i < count; i++)
			if (ranks[i].pid == pid)
				return &ranks[i];
		pid = node_task_read(pid, pid, &task) ? task.parent : 0;
	}
	return NULL;
}

/*
 * Whose runs a thread of coll.ko executes. From Linux 6.10 on it is one of the rank's program; before, it is of none,
 * and the rank is known by its name, which no program has that is no thread of the kernel. One that is older than the
 * rank is of a program that had its number before. NULL: it is none.
 */
static const struct observed_rank *rank_of_module(const struct node_ran *ran, const struct observed_rank *ranks,
						  uint32_t count)
{
	static const char begins[] = "coll/";
	struct node_task task;
	uint32_t pid, i;

	if (strncmp(ran->name, begins, sizeof(begins) - 1) || !node_task_read(ran->pid, ran->tid, &task) || !task.kthread)
		return NULL;
	pid = strtoul(ran->name + sizeof(begins) - 1, NULL, 10);
	for (i = 0; i < count; i++)
		if (ranks[i].pid == pid && ranks[i].born && task.born >= ranks[i].born)
			return &ranks[i];
	return NULL;
}

static void take_task(struct coll_flight_taker *taker, const struct node_ran *ran)
{
	char cgroup[NODE_TASK_CGROUP];
	struct node_task task;

	snprintf(taker->name, sizeof(taker->name), "%s", ran->name);
	if (node_task_cgroup(ran->tid, cgroup))
		node_takers_cgroup(taker, cgroup);
	if (!node_task_read(ran->pid, ran->tid, &task))
		return;
	taker->uid = task.uid;
	taker->flags = COLL_FLIGHT_TAKER_USER | (task.kthread ? COLL_FLIGHT_TAKER_KTHREAD : 0) |
		       (task.bound ? COLL_FLIGHT_TAKER_BOUND : 0);
}

/* Without memory it is not told of. */
void node_takers_ran(struct observed_all *all, uint32_t tid, uint64_t ns)
{
	if (all->lefts == all->room) {
		const uint32_t room = all->room ? 2 * all->room : 256;
		struct ran_left *more = reallocarray(all->left, room, sizeof(*more));

		if (!more)
			return;
		all->left = more;
		all->room = room;
	}
	all->left[all->lefts++] = (struct ran_left){ tid, ns };
}

static int by_tid(const void *left, const void *right)
{
	const struct ran_left *a = left, *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* Many ranks on a CPU may have waited for the same time of one thread: it counts once. */
static uint64_t ran_left_take(const struct observed_all *all, uint32_t tid, uint64_t ns)
{
	const struct ran_left key = { .tid = tid };
	struct ran_left *left = all->lefts ?
		bsearch(&key, all->left, all->lefts, sizeof(key), by_tid) : NULL;

	if (!left)
		return 0;
	if (ns > left->ns)
		ns = left->ns;
	left->ns -= ns;
	return ns;
}

static void tell_taken(const struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
		       const struct observed_all *all)
{
	const struct observer_taken taken = {
		rank->job, rank->rank, rank->pid, ran, ran_left_take(all, ran->tid, ns),
	};

	if (all->hearer->taken && taken.ns)
		all->hearer->taken(&taken, all->hearer->argument);
}

/* Returns whether it is none of the job. */
bool node_takers_add_task(struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
			  const struct observed_all *all)
{
	const struct observed_rank *of = rank_above(ran->pid, all->rank, all->ranks) ?:
					 rank_of_module(ran, all->rank, all->ranks);
	struct coll_flight_taker taker = {
		.ns = ns, .kind = COLL_FLIGHT_TAKER_TASK, .id = ran->pid,
	};

	if (of && of->pid == rank->pid) {
		taker.kind = COLL_FLIGHT_TAKER_OWN;
		taker.id = 0;
	} else if (of) {
		taker.kind = COLL_FLIGHT_TAKER_RANK;
		taker.id = of->rank;
		snprintf(taker.name, sizeof(taker.name), "rank %u", of->rank);
	} else {
		take_task(&taker, ran);
		tell_taken(rank, ran, ns, all);
	}
	node_takers_add(rank, &taker);
	return !of;
}

/* The kernel's thread for softirqs that are too many to be run where they come. */
bool node_takers_is_softirqd(const struct node_ran *ran)
{
	struct node_task task;

	return !strncmp(ran->name, "ksoftirqd/", 10) && node_task_read(ran->pid, ran->tid, &task) &&
	       task.kthread;
}

/* ---- the largest --------------------------------------------------------------- */

static int by_ns(const void *left, const void *right)
{
	const struct coll_flight_taker *a = left, *b = right;

	return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

/* Whose ns are those of all that have no room. */
static void add_rest(struct coll_flight_taker *taker, const struct coll_flight_taker *all,
		     uint32_t count)
{
	struct coll_flight_taker *last = &taker[COLL_FLIGHT_TAKERS - 1];
	uint64_t rest = last->ns;
	uint32_t i;

	for (i = COLL_FLIGHT_TAKERS; i < count; i++)
		rest += all[i].ns;
	for (i = 0; i < COLL_FLIGHT_TAKERS - 1; i++)
		if (taker[i].kind == COLL_FLIGHT_TAKER_OTHERS) {
			taker[i].ns += rest;
			*last = (struct coll_flight_taker){ .ns = 0 };
			return;
		}
	*last = (struct coll_flight_taker){ .ns = rest, .kind = COLL_FLIGHT_TAKER_OTHERS };
}

/* Those of a kind are one, with the name of the first, which took most. Returns how many are left. */
static uint32_t join_kind(struct coll_flight_taker *all, uint32_t count, enum coll_flight_taker_kind kind)
{
	struct coll_flight_taker *first = NULL;
	uint32_t i, kept = 0;

	for (i = 0; i < count; i++) {
		if (first && all[i].kind == kind) {
			first->ns += all[i].ns;
			if (kind != COLL_FLIGHT_TAKER_RANK)
				continue;
			first->id = COLL_FLIGHT_NO_RANK;
			snprintf(first->name, sizeof(first->name), "other ranks");
			continue;
		}
		all[kept] = all[i];
		if (all[i].kind == kind)
			first = &all[kept];
		kept++;
	}
	return kept;
}

/* Many ranks on a core, or many interrupts, would leave no room for who else had it. */
static uint32_t join_kinds(struct coll_flight_taker *all, uint32_t count)
{
	static const enum coll_flight_taker_kind kinds[] = {
		COLL_FLIGHT_TAKER_RANK, COLL_FLIGHT_TAKER_INTERRUPTS, COLL_FLIGHT_TAKER_SOFTIRQS,
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds) && count > COLL_FLIGHT_TAKERS; i++)
		count = join_kind(all, count, kinds[i]);
	return count;
}

void node_observed_takers(const struct observed_rank *rank,
		     struct coll_flight_taker taker[COLL_FLIGHT_TAKERS])
{
	struct coll_flight_taker all[OBSERVED_TAKERS];
	uint32_t count = rank->takers, i;

	memcpy(all, rank->taker, sizeof(all));
	qsort(all, count, sizeof(*all), by_ns);
	count = join_kinds(all, count);
	qsort(all, count, sizeof(*all), by_ns);
	for (i = 0; i < COLL_FLIGHT_TAKERS && i < count; i++)
		taker[i] = all[i];
	if (count > COLL_FLIGHT_TAKERS)
		add_rest(taker, all, count);
	qsort(taker, COLL_FLIGHT_TAKERS, sizeof(*taker), by_ns);
}
