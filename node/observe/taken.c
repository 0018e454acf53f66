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

#include "interrupts.h"
#include "libcoll/base/clock.h"
#include "node/small_file.h"
#include "taken.h"

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
		known->flags &= taker->flags | COLL_FLIGHT_TAKER_MOVED | COLL_FLIGHT_TAKER_HELD;
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

/* What was added without a name has the one that is found first, and what comes without it is added there. */
static void add_interrupts(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns,
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
	add_taker(rank, &taker);
}

/*
 * Programs took so much, in so many pieces: for jobs, which make a rate and a length of it. Not interrupts, which may
 * be those of the job's own messages.
 */
static void add_stolen(struct observed_rank *rank, double times, uint64_t ns)
{
	rank->stops += times;
	rank->observed.stolen += ns;
	rank->observed.stops = rank->stops;
}

/* The end of a long path says more than its begin. */
static void take_cgroup(struct coll_flight_taker *taker, const char *cgroup)
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

/* Of what a thread ran in an interval, what no rank was told of yet. */
struct ran_left {
	uint32_t tid;
	uint64_t ns;
};

struct observed_all {
	struct observed_rank *rank;
	uint32_t ranks;
	const struct observed_hearer *hearer;
	struct ran_left *left;		/* in the order of tid */
	uint32_t lefts, room;
	uint32_t storms;		/* ranks whose interrupts were looked at by name */
};

/* In that order. Without memory it is not told of. */
static void ran_left_add(struct observed_all *all, uint32_t tid, uint64_t ns)
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
static bool add_task(struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
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
		tell_taken(rank, ran, ns, all);
	}
	add_taker(rank, &taker);
	return !of;
}

/* ---- an interval ------------------------------------------------------------- */

/* The kernel's thread for softirqs that are too many to be run where they come. */
static bool is_softirqd(const struct node_ran *ran)
{
	struct node_task task;

	return !strncmp(ran->name, "ksoftirqd/", 10) && node_task_read(ran->pid, ran->tid, &task) &&
	       task.kthread;
}

/* A thread ran: it is of those that had the cores of the ranks on its CPU. */
static void ran_there(const struct node_ran *ran, void *argument)
{
	struct observed_all *all = argument;
	const bool softirqd = is_softirqd(ran);
	uint32_t i;

	if (all->hearer->taken && !softirqd)
		ran_left_add(all, ran->tid, ran->ns);
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
	take_cgroup(&taker, level->cgroup);
	add_taker(rank, &taker);
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
	add_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, part * hard, names.hard);
	add_interrupts(rank, COLL_FLIGHT_TAKER_SOFTIRQS, part * soft + by_thread, names.soft);
	add_kind(rank, COLL_FLIGHT_TAKER_STEAL, part * steal);
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
		if (add_task(rank, &rank->ran[i], ns, all))
			add_stolen(rank, share * rank->ran[i].times, ns);
		left -= ns;
	}
	add_kind(rank, COLL_FLIGHT_TAKER_OTHERS, left);
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
	left -= take_interrupts(rank, ran, left, all);
	take_tasks(rank, left, all);
}

void node_observed_taken(struct observed_rank *rank, uint32_t ranks, const struct node_activity *before,
		    const struct node_activity *after, const struct observed_hearer *hearer)
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
	free(all.left);
}
