// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Who had a rank's core, where coll.ko does not count that (counted.c). The kernel says for how long the rank's threads were ready without one,
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

#include "interrupts.h"
#include "libcoll/base/clock.h"
#include "node/small_file.h"
#include "counted.h"
#include "takers.h"

enum {
	STAT_BORN = 22, STAT_CPU = 39,	/* proc_pid_stat(5) */
	SMALL_PART = 50,	/* who took less than this part of an interval's time has no name */
	STORM_PART = 20,	/* interrupts that take more than this part of it are looked at by name ... */
	STORMS_MOST = 8,	/* ... of so many ranks at a look: of the first ones on a node */
};

/* ---- one look ------------------------------------------------------------- */

static uint64_t field_of(const char *behind, int number)
{
	int field;

	for (field = 2; field < number && behind; field++)
		behind = strchr(behind + 1, ' ');
	return behind ? strtoull(behind, NULL, 10) : 0;
}

struct thread_look {
	char state;
	uint32_t cpu;
	uint64_t born;
};

/* false: it has ended, or is no thread of this process. */
static bool look_at_thread(uint32_t pid, uint32_t tid, struct thread_look *look)
{
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	if (!node_read_small(path, text, sizeof(text)) || !(at = strrchr(text, ')')))
		return false;
	look->cpu = field_of(at, STAT_CPU);
	look->born = field_of(at, STAT_BORN);
	return sscanf(at + 1, " %c", &look->state) == 1;
}

/* Its first thread. false: the number is another process' by now. */
static bool look_at_rank(struct observed_rank *rank, struct thread_look *look)
{
	if (!look_at_thread(rank->pid, rank->pid, look))
		return false;
	if (!rank->born)
		rank->born = look->born;
	return rank->born == look->born;
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

/* Of those that have no entry in the page it is not seen how long they are under way. */
static bool is_under_way(const struct observed_rank *rank)
{
	struct coll_flight_run run[COLL_FLIGHT_RUNS];
	uint32_t i;

	if (rank->page < 0 || pread(rank->page, run, sizeof(run), offsetof(struct coll_flight_page, run)) !=
				      (ssize_t)sizeof(run))
		return false;
	for (i = 0; i < COLL_FLIGHT_RUNS; i++)
		if (run[i].where != COLL_FLIGHT_FREE)
			return true;
	return false;
}

static bool look_at_runs(struct observed_rank *rank)
{
	const uint64_t runs = page_number(rank, offsetof(struct coll_flight_page, runs), sizeof(uint64_t));
	const bool begun = runs != rank->runs;

	rank->runs = runs;
	return begun || is_under_way(rank);
}

/* The application's thread is the first one, as far as it can be known from outside. */
void node_observed_doing(struct observed_rank *rank)
{
	const bool inside = page_number(rank, offsetof(struct coll_flight_page, inside),
					sizeof(uint32_t));
	const bool ended = page_number(rank, offsetof(struct coll_flight_page, ended),
				       sizeof(uint64_t));
	struct coll_flight_observed *observed = &rank->observed;
	struct thread_look look;

	rank->calls = false;
	if (ended || !look_at_rank(rank, &look))
		return;
	rank->calls = look_at_runs(rank);
	observed->looks++;
	(inside ? observed->within : observed->outside)[doing_of(look.state)]++;
	observed->cpu = look.cpu;
	node_cpus_add(&rank->cpus, look.cpu);
}

static bool add_account(uint32_t pid, uint32_t tid, struct observed_accounts *accounts)
{
	unsigned long long ran, waited;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", pid, tid);
	if (!node_read_small(path, text, sizeof(text)) ||
	    sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return false;
	accounts->ran += ran;
	accounts->waited += waited;
	return true;
}

/* The page says which thread makes progress: what is none of the process' own has no account. */
static bool read_accounts(struct observed_rank *rank, struct observed_accounts *now)
{
	struct thread_look look;

	*now = (struct observed_accounts){ .time = coll_now() };
	if (page_number(rank, offsetof(struct coll_flight_page, ended), sizeof(uint64_t)) ||
	    !look_at_rank(rank, &look) || !add_account(rank->pid, rank->pid, now))
		return false;
	if (rank->owner && (!add_account(rank->pid, rank->owner, now) ||
			    !look_at_thread(rank->pid, rank->owner, &look)))
		return false;
	now->cpu = look.cpu;
	now->inside = page_number(rank, offsetof(struct coll_flight_page, spent), sizeof(uint64_t));
	node_limit_read(rank->pid, &now->limit);
	return true;
}

/* The file has a line for each CPU: once a look, and not once a rank. */
static void read_taken(struct observed_rank *rank, uint32_t ranks)
{
	struct node_cpu_taken *taken = calloc(NODE_CPUS_MAX, sizeof(*taken));
	uint32_t i;

	if (taken)
		node_cpus_taken(taken, NODE_CPUS_MAX);
	for (i = 0; taken && i < ranks; i++)
		if (rank[i].now.time && rank[i].now.cpu < NODE_CPUS_MAX)
			rank[i].now.taken = taken[rank[i].now.cpu];
	free(taken);
}

/* ---- an interval ------------------------------------------------------------- */

/* A thread ran: it is of those that had the cores of the ranks on its CPU. */
static void ran_there(const struct node_ran *ran, void *argument)
{
	struct observed_all *all = argument;
	const bool softirqd = node_takers_is_softirqd(ran);
	uint32_t i;

	if (all->hearer->taken && !softirqd)
		node_takers_ran(all, ran->tid, ran->ns);
	for (i = 0; i < all->ranks; i++) {
		struct observed_rank *rank = &all->rank[i];

		if (ran->tid == rank->pid || ran->tid == rank->owner || !node_cpus_has(&rank->cpus, ran->cpu))
			continue;
		if (softirqd)
			rank->softirqd += ran->ns;
		else if (rank->count < OBSERVED_RAN)
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
	node_takers_cgroup(&taker, level->cgroup);
	node_takers_add(rank, &taker);
	return taker.ns;
}

/* Who they are is looked at where they take much: of that the files are long on a large node. */
static void name_interrupts(struct observed_rank *rank, bool storm, struct observed_all *all,
			    struct observed_names *names)
{
	*names = (struct observed_names){ "", "" };
	if (!storm)
		node_observed_interrupts_forget(rank);
	else if (all->storms++ < STORMS_MOST)
		node_observed_interrupts(rank, names);
}

/*
 * What interrupts took of the CPU: of that, the rank's part of the interval. The kernel counts its thread for
 * softirqs with them, and the rank waited while that ran. Returns what of it all is in the time that it
 * waited.
 */
static uint64_t take_interrupts(struct observed_rank *rank, uint64_t ran, uint64_t waited,
				struct observed_all *all)
{
	const struct node_cpu_taken *now = &rank->now.taken, *before = &rank->before.taken;
	const uint64_t took = time_grown(rank->now.time, rank->before.time),
		       by_thread = rank->softirqd < waited ? rank->softirqd : waited,
		       hard = time_grown(now->interrupts, before->interrupts),
		       soft = time_grown(time_grown(now->softirqs, before->softirqs), rank->softirqd),
		       steal = time_grown(now->steal, before->steal);
	const double part = took && ran + waited < took ? (double)(ran + waited) / took : 1,
		     others = took ? (double)(hard + soft + steal) / took : 0;
	struct observed_names names;

	if (rank->now.cpu != rank->before.cpu)
		return 0;
	name_interrupts(rank, (hard + soft + by_thread) * STORM_PART > took, all, &names);
	node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, part * hard, names.hard);
	node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, part * soft + by_thread, names.soft);
	node_takers_add_kind(rank, COLL_FLIGHT_TAKER_STEAL, part * steal);
	return by_thread + (others < 1 ? others : 1) * (waited - by_thread);
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
		if (node_takers_add_task(rank, &rank->ran[i], ns, all))
			node_takers_add_stolen(rank, share * rank->ran[i].times, ns);
		left -= ns;
	}
	node_takers_add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, left);
}

static void end_interval(struct observed_rank *rank, struct observed_all *all)
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
	if (left == waited && node_counted_take(rank, all))
		return;
	left -= take_interrupts(rank, ran, left, all);
	take_tasks(rank, left, all);
}

void node_observed_taken(struct observed_rank *rank, uint32_t ranks, const struct node_activity *before,
			 const struct node_activity *after, const struct observed_hearer *hearer,
			 const struct observer_counter *counter)
{
	struct observed_all all = { .rank = rank, .ranks = ranks, .hearer = hearer };
	struct node_cpus may;
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		rank[i].count = 0;
		rank[i].softirqd = 0;
		if (!read_accounts(&rank[i], &rank[i].now)) {
			rank[i].now.time = 0;
			continue;
		}
		rank[i].observed.wholes++;
		node_cpus_add(&rank[i].cpus, rank[i].now.cpu);
		if (!node_cpus_affinity(rank[i].pid, &may))
			rank[i].observed.cpus = node_cpus_count(&may);
	}
	read_taken(rank, ranks);
	node_counted_read(rank, ranks, counter);
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
	node_counted_follow(rank, ranks, counter);
	free(all.left);
}
