// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Who had a rank's core. The kernel says for how long the rank's threads were ready without one,
 * not for whom: of each interval that time is shared out among the tasks that ran on its CPUs in
 * the interval, by how long they ran. What its cgroup's limit took comes first: then no task did.
 * What interrupts and the machine's host took is in it as well, as far as the rank was ready: that is
 * taken off before tasks share the rest.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "node/small_file.h"
#include "taken.h"

enum {
	STAT_CPU = 39,		/* proc_pid_stat(5) */
	SMALL_PART = 50,	/* who took less than this part of an interval's time has no name */
};

/* ---- one look ------------------------------------------------------------- */

/* Its state and CPU. false: it has ended. */
static bool look_at_thread(uint32_t tid, char *state, uint32_t *cpu)
{
	char path[64], text[1024], *at;
	int field;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	if (!node_read_small(path, text, sizeof(text)) || !(at = strrchr(text, ')')))
		return false;
	if (sscanf(at + 1, " %c", state) != 1)
		return false;
	for (field = 2; field < STAT_CPU && at; field++)
		at = strchr(at + 1, ' ');
	*cpu = at ? strtoul(at, NULL, 10) : 0;
	return true;
}

static enum coll_flight_doing doing_of(char state)
{
	switch (state) {
	case 'R':
		return COLL_FLIGHT_DOING_RUN;
	case 'D':
		return COLL_FLIGHT_DOING_DISK;
	case 'T':
	case 't':
		return COLL_FLIGHT_DOING_STOP;
	default:
		return COLL_FLIGHT_DOING_SLEEP;
	}
}

static uint64_t page_number(const struct observed_rank *rank, size_t offset, size_t bytes)
{
	uint64_t number = 0;

	return rank->page >= 0 && pread(rank->page, &number, bytes, offset) == (ssize_t)bytes ?
		       number : 0;
}

/* The application's thread is the first one, as far as it can be known from outside. */
void node_observed_doing(struct observed_rank *rank)
{
	const bool inside = page_number(rank, offsetof(struct coll_flight_page, inside),
					sizeof(uint32_t));
	const bool ended = page_number(rank, offsetof(struct coll_flight_page, ended),
				       sizeof(uint64_t));
	struct coll_flight_observed *observed = &rank->observed;
	uint32_t cpu;
	char state;

	if (ended || !look_at_thread(rank->pid, &state, &cpu))
		return;
	observed->looks++;
	(inside ? observed->within : observed->outside)[doing_of(state)]++;
	observed->cpu = cpu;
	node_cpus_add(&rank->cpus, cpu);
}

static bool add_account(uint32_t tid, struct observed_accounts *accounts)
{
	unsigned long long ran, waited;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%u/schedstat", tid);
	if (!node_read_small(path, text, sizeof(text)) ||
	    sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return false;
	accounts->ran += ran;
	accounts->waited += waited;
	return true;
}

static bool read_accounts(const struct observed_rank *rank, struct observed_accounts *now)
{
	char state;

	*now = (struct observed_accounts){ .time = coll_now() };
	if (page_number(rank, offsetof(struct coll_flight_page, ended), sizeof(uint64_t)) ||
	    !add_account(rank->pid, now) || (rank->owner && !add_account(rank->owner, now)) ||
	    !look_at_thread(rank->owner ? rank->owner : rank->pid, &state, &now->cpu))
		return false;
	now->inside = page_number(rank, offsetof(struct coll_flight_page, spent), sizeof(uint64_t));
	now->taken = node_cpu_taken(now->cpu);
	node_limit_read(rank->pid, &now->limit);
	return true;
}

/* ---- takers ---------------------------------------------------------------- */

/* One that has no room any more is among the others, which have. */
static void add_taker(struct observed_rank *rank, const struct coll_flight_taker *taker)
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
		known->flags &= taker->flags;
		if (known->uid != taker->uid)
			known->flags &= ~COLL_FLIGHT_TAKER_USER;
		return;
	}
	if (rank->takers + 1 < OBSERVED_TAKERS || taker->kind == COLL_FLIGHT_TAKER_OTHERS)
		rank->taker[rank->takers++] = *taker;
	else
		add_taker(rank, &(struct coll_flight_taker){
			.ns = taker->ns, .kind = COLL_FLIGHT_TAKER_OTHERS });
}

static void add_kind(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns)
{
	add_taker(rank, &(struct coll_flight_taker){ .ns = ns, .kind = kind });
}

/* The end of a long path says more than its begin. */
static void take_cgroup(struct coll_flight_taker *taker, const char *cgroup)
{
	const size_t length = strlen(cgroup), room = sizeof(taker->cgroup) - 1;

	snprintf(taker->cgroup, sizeof(taker->cgroup), "%s",
		 length > room ? cgroup + length - room : cgroup);
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

static void take_task(struct coll_flight_taker *taker, const struct node_ran *ran)
{
	char cgroup[NODE_TASK_CGROUP];
	struct node_task task;

	snprintf(taker->name, sizeof(taker->name), "%s", ran->name);
	if (node_task_cgroup(ran->tid, cgroup))
		take_cgroup(taker, cgroup);
	if (!node_task_read(ran->pid, ran->tid, &task))
		return;
	taker->uid = task.uid;
	taker->flags = COLL_FLIGHT_TAKER_USER | (task.kthread ? COLL_FLIGHT_TAKER_KTHREAD : 0) |
		       (task.bound ? COLL_FLIGHT_TAKER_BOUND : 0);
}

struct observed_all {
	struct observed_rank *rank;
	uint32_t ranks;
	const struct observed_hearer *hearer;
};

static void tell_taken(const struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
		       const struct observed_hearer *hearer)
{
	const struct observer_taken taken = { rank->job, rank->rank, rank->pid, ran, ns };

	if (hearer->taken)
		hearer->taken(&taken, hearer->argument);
}

static void add_task(struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
		     const struct observed_all *all)
{
	const struct observed_rank *of = rank_above(ran->pid, all->rank, all->ranks);
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
		tell_taken(rank, ran, ns, all->hearer);
	}
	add_taker(rank, &taker);
}

/* ---- an interval ------------------------------------------------------------- */

/* A thread ran: it is of those that had the cores of the ranks on its CPU. */
static void ran_there(const struct node_ran *ran, void *argument)
{
	const struct observed_all *all = argument;
	uint32_t i;

	for (i = 0; i < all->ranks; i++) {
		struct observed_rank *rank = &all->rank[i];

		if (ran->tid != rank->pid && ran->tid != rank->owner &&
		    node_cpus_has(&rank->cpus, ran->cpu) && rank->count < OBSERVED_RAN)
			rank->ran[rank->count++] = *ran;
	}
}

static uint64_t time_grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * The account of a cgroup is of all CPUs on which it had tasks: of those that ranks in it are on, the
 * rank has one part, and no more than it waited. Returns that.
 */
static uint64_t take_limit(struct observed_rank *rank, uint64_t waited, const struct observed_all *all)
{
	struct coll_flight_taker taker = { .kind = COLL_FLIGHT_TAKER_LIMIT };
	struct node_cpus cpus = { .bits = { 0 } };
	const struct node_limit_level *level =
		node_limit_most(&rank->before.limit, &rank->now.limit, &taker.ns);
	uint32_t i;

	if (!level)
		return 0;
	for (i = 0; i < all->ranks; i++)
		if (all->rank[i].now.time && node_limit_has(&all->rank[i].now.limit, level))
			node_cpus_add(&cpus, all->rank[i].now.cpu);
	taker.ns /= node_cpus_count(&cpus);
	if (taker.ns > waited)
		taker.ns = waited;
	take_cgroup(&taker, level->cgroup);
	add_taker(rank, &taker);
	return taker.ns;
}

/*
 * What interrupts took of the CPU: of that, the rank's part of the interval. Returns what of it is in
 * the time that it waited.
 */
static uint64_t take_interrupts(struct observed_rank *rank, uint64_t ran, uint64_t waited)
{
	const struct node_cpu_taken *now = &rank->now.taken, *before = &rank->before.taken;
	const uint64_t took = time_grown(rank->now.time, rank->before.time),
		       hard = time_grown(now->interrupts, before->interrupts),
		       soft = time_grown(now->softirqs, before->softirqs),
		       steal = time_grown(now->steal, before->steal);
	const double part = took && ran + waited < took ? (double)(ran + waited) / took : 1,
		     all = took ? (double)(hard + soft + steal) / took : 0;

	if (rank->now.cpu != rank->before.cpu)
		return 0;
	add_kind(rank, COLL_FLIGHT_TAKER_INTERRUPTS, part * hard);
	add_kind(rank, COLL_FLIGHT_TAKER_SOFTIRQS, part * soft);
	add_kind(rank, COLL_FLIGHT_TAKER_STEAL, part * steal);
	return all < 1 ? waited * all : waited;
}

/* Shares `waited` ns out among those that ran. */
static void take_tasks(struct observed_rank *rank, uint64_t waited, const struct observed_all *all)
{
	uint64_t total = 0, left = waited;
	double share;
	uint32_t i;

	for (i = 0; i < rank->count; i++)
		total += rank->ran[i].ns;
	share = total > waited ? (double)waited / total : 1;
	for (i = 0; i < rank->count; i++) {
		const uint64_t ns = share * rank->ran[i].ns;

		if (ns * SMALL_PART < waited || ns > left)
			continue;
		add_task(rank, &rank->ran[i], ns, all);
		left -= ns;
	}
	add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, left);
}

static void end_interval(struct observed_rank *rank, const struct observed_all *all)
{
	struct coll_flight_observed *observed = &rank->observed;
	const uint64_t ran = time_grown(rank->now.ran, rank->before.ran),
		       waited = time_grown(rank->now.waited, rank->before.waited);
	uint64_t left = waited;

	if (!observed->since)
		observed->since = rank->before.time;
	observed->until = rank->now.time;
	observed->ran += ran;
	observed->waited += waited;
	observed->inside += time_grown(rank->now.inside, rank->before.inside);
	left -= take_limit(rank, waited, all);
	left -= take_interrupts(rank, ran, left);
	take_tasks(rank, left, all);
}

void node_observed_taken(struct observed_rank *rank, uint32_t ranks, const struct node_activity *before,
		    const struct node_activity *after, const struct observed_hearer *hearer)
{
	struct observed_all all = { rank, ranks, hearer };
	struct node_cpus may;
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		rank[i].count = 0;
		if (!read_accounts(&rank[i], &rank[i].now)) {
			rank[i].now.time = 0;
			continue;
		}
		rank[i].observed.wholes++;
		node_cpus_add(&rank[i].cpus, rank[i].now.cpu);
		if (!node_cpus_affinity(rank[i].pid, &may))
			rank[i].observed.cpus = node_cpus_count(&may);
	}
	if (before)
		node_activity_ran(before, after, ran_there, &all);
	for (i = 0; i < ranks; i++) {
		if (!rank[i].now.time)
			continue;
		if (before && rank[i].before.time)
			end_interval(&rank[i], &all);
		rank[i].before = rank[i].now;
		rank[i].cpus = (struct node_cpus){ .bits = { 0 } };
		node_cpus_add(&rank[i].cpus, rank[i].now.cpu);
	}
}

/* ---- results ----------------------------------------------------------------- */

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

void node_observed_takers(const struct observed_rank *rank,
		     struct coll_flight_taker taker[COLL_FLIGHT_TAKERS])
{
	struct coll_flight_taker all[OBSERVED_TAKERS];
	uint32_t i;

	memcpy(all, rank->taker, sizeof(all));
	qsort(all, rank->takers, sizeof(*all), by_ns);
	for (i = 0; i < COLL_FLIGHT_TAKERS && i < rank->takers; i++)
		taker[i] = all[i];
	if (rank->takers > COLL_FLIGHT_TAKERS)
		add_rest(taker, all, rank->takers);
	qsort(taker, COLL_FLIGHT_TAKERS, sizeof(*taker), by_ns);
}
