// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What coll.ko counts becomes a rank's takers, and what a job is told that others stole: sums of a fake, whose
 * CPUs and processes are the test's. Where it is not counted nothing is added, and it is tried again.
 *
 * Length: one fake, and a test for each way in which counting begins, goes on and ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where a thread may run, and whose it is: of those below. */
#define node_cpus_affinity	fake_affinity
#define node_task_process	fake_process
#define node_task_is		fake_is
#define node_task_read		fake_read_task
#include "node/observe/takers.c"
#include "node/observe/counted.c"

enum {
	MS = 1000000, SECOND_NS = 1000000000,
	RANKS = 3, WATCHED_MOST = 32,
	/* Numbers that no process has; of these */
	FIRST = 1 << 30, OWNER = FIRST + 100, DAEMON, ENDED, HELPER, KERNEL,
};

/* ---- a node -------------------------------------------------------------------- */

static uint32_t bound_to[RANKS], bound_count[RANKS];	/* CPUs of each rank from .. */
static uint32_t owner_process;

int fake_affinity(int task, struct node_cpus *cpus)
{
	uint32_t i;

	*cpus = (struct node_cpus){ .bits = { 0 } };
	if (task == OWNER) {
		node_cpus_add(cpus, 7);
		return 0;
	}
	if (task < FIRST || task >= FIRST + RANKS)
		return -ESRCH;
	for (i = 0; i < bound_count[task - FIRST]; i++)
		node_cpus_add(cpus, bound_to[task - FIRST] + i);
	return 0;
}

/* Numbers are of those that were born at this tick. */
int fake_is(u32 tid, u64 born)
{
	(void)tid;
	return born == 100;
}

u32 fake_process(u32 tid)
{
	return tid == OWNER ? owner_process : tid == ENDED ? 0 : tid;
}

/* One of them is a thread of the kernel. */
bool fake_read_task(u32 pid, u32 tid, struct node_task *task)
{
	(void)pid;
	*task = (struct node_task){ .tid = tid, .pid = tid, .kthread = tid == KERNEL, .born = 100 };
	return tid == KERNEL || tid == HELPER;
}

/* ---- a module ------------------------------------------------------------------ */

static struct node_watched watched[WATCHED_MOST];
static uint32_t watched_count;
static struct {
	int begin_error, read_error, begins, ends, losses;
	uint32_t thread;		/* of the latest begin */
	bool dear;			/* the latest loss */
	struct node_cpus cpus;		/* that are watched */
	struct node_cpus claimed, others;	/* on which ranks run; ... and other users' */
} module;

static int fake_begin(void *argument, const struct node_cpus *cpus, uint32_t pid, uint32_t thread)
{
	uint32_t cpu;

	(void)argument;
	assert_true(pid >= FIRST && pid < FIRST + RANKS);
	assert_true(thread == pid || thread == OWNER);
	if (module.begin_error)
		return module.begin_error;
	module.begins++;
	module.thread = thread;
	for (cpu = node_cpus_next(cpus, 0); cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1)) {
		assert_false(node_cpus_has(&module.cpus, cpu));
		node_cpus_add(&module.cpus, cpu);
	}
	return 0;
}

static void fake_end(void *argument, const struct node_cpus *cpus)
{
	(void)argument;
	module.ends++;
	node_cpus_remove(&module.cpus, cpus);
}

static int fake_read(void *argument, node_watch_each each, void *data)
{
	uint32_t i;

	(void)argument;
	for (i = 0; !module.read_error && i < watched_count; i++)
		assert_int_equal(each(&watched[i], data), 0);
	return module.read_error;
}

static void fake_lost(void *argument, const char *job, uint32_t rank, bool dear)
{
	(void)argument;
	assert_string_equal(job, "job");
	assert_true(rank < RANKS);
	module.losses++;
	module.dear = dear;
}

static void fake_claim(void *argument, const struct node_cpus *cpus, struct node_cpus *others)
{
	(void)argument;
	module.claimed = *cpus;
	*others = module.others;
}

static struct observer_counter counter = {
	.begin = fake_begin, .end = fake_end, .read = fake_read, .lost = fake_lost, .claim = fake_claim,
};

static void says_cpu(uint32_t cpu, bool own, bool dear)
{
	watched[watched_count++] = (struct node_watched){ .cpu = cpu, .own = own, .dear = dear };
}

static void says(uint32_t cpu, uint32_t index, u8 cause, uint32_t number, const char *name, uint64_t count,
		 uint64_t total)
{
	watched[watched_count++] = (struct node_watched){
		.cpu = cpu, .own = true, .is_source = true, .index = index, .cause = cause, .number = number,
		.name = name, .count = count, .total = total,
	};
}

/* ---- ranks --------------------------------------------------------------------- */

static struct observed_rank *rank;
static struct {
	uint32_t tid;
	uint64_t ns;
} told[8];			/* to who hears of tasks */
static uint32_t tells;

static void hears(const struct observer_taken *taken, void *argument)
{
	(void)argument;
	assert_true(tells < 8);
	told[tells].tid = taken->ran->tid;
	told[tells++].ns = taken->ns;
}

static int begin(void **state)
{
	uint32_t i;

	(void)state;
	rank = calloc(RANKS, sizeof(*rank));
	for (i = 0; i < RANKS; i++) {
		rank[i] = (struct observed_rank){ .rank = i, .pid = FIRST + i, .job = "job", .page = -1 };
		rank[i].before.time = SECOND_NS;
		rank[i].now.time = 2 * (uint64_t)SECOND_NS;
		bound_to[i] = i;
		bound_count[i] = 1;
	}
	memset(&module, 0, sizeof(module));
	watched_count = tells = 0;
	owner_process = 0;
	return rank ? 0 : -1;
}

static int end(void **state)
{
	struct node_cpus ended = { .bits = { 0 } };
	uint32_t i;

	(void)state;
	for (i = 0; i < RANKS; i++)
		node_counted_forget(&rank[i], &ended);
	node_counted_end(&counter, &ended);
	assert_int_equal(node_cpus_count(&module.cpus), 0);
	free(rank);
	return 0;
}

static const struct coll_flight_taker *taker_of(const struct observed_rank *of, uint32_t kind, const char *name)
{
	uint32_t i;

	for (i = 0; i < of->takers; i++)
		if (of->taker[i].kind == kind && !strcmp(of->taker[i].name, name))
			return &of->taker[i];
	return NULL;
}

static uint64_t taken_by(uint32_t kind, const char *name)
{
	const struct coll_flight_taker *taker = taker_of(rank, kind, name);

	return taker ? taker->ns : 0;
}

static bool take(void)
{
	static const struct observed_hearer hearer = { .taken = hears };
	struct observed_all all = { .rank = rank, .ranks = RANKS, .hearer = &hearer };
	bool taken;

	node_takers_ran(&all, DAEMON, SECOND_NS);
	taken = node_counted_take(rank, &all);
	free(all.left);
	return taken;
}

/* Only the first one is there. */
static void alone(void)
{
	rank[1].now.time = rank[2].now.time = 0;
}

static void follows_alone(void)
{
	alone();
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
}

/* ---- takers ---------------------------------------------------------------------- */

static void all_that_is_counted_is_a_taker(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says(0, 3, COLL_NOISE_STEAL, 0, "steal", 0, 40 * MS);
	says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", 5, 100 * MS);
	says(0, 21, COLL_NOISE_THREAD, ENDED, "cron", 2, 20 * MS);
	says(0, 22, COLL_NOISE_IRQ, 236, "local_timer", 250, 3 * MS);
	says(0, 23, COLL_NOISE_SOFTIRQ, 3, "net_rx", 9, 4 * MS);
	says(0, 24, COLL_NOISE_INJECTED, 1, "injected", 7, 30 * MS);
	says(0, 25, COLL_NOISE_INJECTED, DAEMON, "coll-noise/0", 3, 10 * MS);
	says(0, 26, COLL_NOISE_THREAD, FIRST + 2, "rank2", 1, 8 * MS);
	says(0, 27, COLL_NOISE_THREAD, 0, "elsewhere", 1, 9 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 100 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "cron"), 20 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "coll-noise/0"), 10 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_INTERRUPTS, "local_timer"), 3 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_INTERRUPTS, "injected"), 30 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_SOFTIRQS, "net_rx"), 4 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_RANK, "rank 2"), 8 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "elsewhere"), 9 * MS);	/* not of this pid namespace */
	/* The host took it from the rank, and from nobody else: it is in no other's time. */
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_STEAL, ""), 40 * MS);
	/* A job is told of programs, and of what was injected: not of other interrupts, nor of its own ranks. */
	assert_int_equal(rank->observed.stolen, 169 * MS);
	assert_int_equal(rank->observed.stops, 18);
	assert_int_equal(rank->observed.counted, SECOND_NS);
	/* Who may be moved is told of while it is there, and no rank. */
	assert_int_equal(tells, 2);
	assert_int_equal(told[0].tid, DAEMON);
	assert_int_equal(told[0].ns, 100 * MS);
}

/* coll.ko counts for two threads of the rank: all others of it are one, with the rank's number. */
static void its_other_threads_are_its_own(void **state)
{
	(void)state;
	follows_alone();
	assert_int_equal(module.thread, FIRST);
	says_cpu(0, true, false);
	says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", 5, 60 * MS);
	says(0, 21, COLL_NOISE_THREAD, FIRST, "other threads", 3, 40 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_OWN, ""), 40 * MS);
	assert_int_equal(rank->observed.stolen, 60 * MS);
}

/* Before Linux 6.10 coll.ko's thread is of no program: it is the rank's all the same, and steals nothing. */
static void a_thread_of_coll_ko_is_the_ranks(void **state)
{
	char own[32], others[32];

	(void)state;
	snprintf(own, sizeof(own), "coll/%d", FIRST);
	snprintf(others, sizeof(others), "coll/%d", FIRST + 2);
	follows_alone();
	rank[0].born = rank[2].born = 100;
	says_cpu(0, true, false);
	says(0, 20, COLL_NOISE_THREAD, KERNEL, own, 5, 60 * MS);
	says(0, 21, COLL_NOISE_THREAD, KERNEL, others, 5, 50 * MS);
	says(0, 22, COLL_NOISE_THREAD, HELPER, own, 5, 40 * MS);	/* it calls itself so */
	says(0, 23, COLL_NOISE_THREAD, KERNEL, "coll/1", 5, 30 * MS);	/* of no rank of this job */
	says(0, 24, COLL_NOISE_THREAD, KERNEL, "kworker/0:1", 5, 20 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_OWN, ""), 60 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_RANK, "rank 2"), 50 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, own), 40 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "coll/1"), 30 * MS);
	assert_int_equal(rank->observed.stolen, 90 * MS);
}

/* Its number is another's now, that is a rank. */
static void a_thread_of_coll_ko_is_no_younger_ranks(void **state)
{
	char others[32];

	(void)state;
	snprintf(others, sizeof(others), "coll/%d", FIRST + 2);
	follows_alone();
	rank[2].born = 101;
	says_cpu(0, true, false);
	says(0, 21, COLL_NOISE_THREAD, KERNEL, others, 5, 50 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, others), 50 * MS);
}

/* A rank says who makes progress: of a thread that is none of its own nothing is counted. */
static void a_progress_thread_is_one_of_the_rank(void **state)
{
	(void)state;
	rank->owner = OWNER;
	alone();
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
	owner_process = FIRST;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
	assert_int_equal(module.thread, OWNER);
	rank->owner = 0;	/* another thread makes progress: that is another watch */
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
}

static void a_progress_thread_of_the_program_is_watched_where_it_is(void **state)
{
	(void)state;
	rank->owner = OWNER;
	owner_process = FIRST;
	follows_alone();
	assert_true(node_cpus_has(&module.cpus, 0) && node_cpus_has(&module.cpus, 7));
	says_cpu(0, true, false);
	says_cpu(7, true, false);
	says(7, 20, COLL_NOISE_THREAD, DAEMON, "backup", 5, 60 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 60 * MS);
}

/* ---- intervals -------------------------------------------------------------------- */

static void each_interval_has_what_came_in_it(void **state)
{
	uint64_t ms;

	(void)state;
	bound_count[0] = 2;	/* the hardware threads of a core */
	bound_to[1] = 5;
	follows_alone();
	for (ms = 1; ms <= 4; ms++) {
		watched_count = 0;
		says_cpu(0, true, false);
		says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", ms, 10 * ms * MS);
		if (ms > 2)	/* of an index between the others */
			says(0, 21, COLL_NOISE_SOFTIRQ, 1, "timer", ms, ms * MS);
		says(0, 22, COLL_NOISE_IRQ, 236, "local_timer", ms, ms * MS);
		says_cpu(1, true, false);
		says(1, 20, COLL_NOISE_THREAD, DAEMON, "backup", 2 * ms, 5 * ms * MS);
		node_counted_read(rank, RANKS, &counter);
		assert_true(take());
		node_counted_follow(rank, RANKS, &counter);
		assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 15 * ms * MS);
		assert_int_equal(taken_by(COLL_FLIGHT_TAKER_INTERRUPTS, "local_timer"), ms * MS);
		assert_int_equal(taken_by(COLL_FLIGHT_TAKER_SOFTIRQS, "timer"), ms > 2 ? ms * MS : 0);
		assert_int_equal(rank->observed.stops, 3 * ms);
		assert_int_equal(rank->observed.counted, ms * SECOND_NS);
	}
	assert_int_equal(module.begins, 1);
	assert_int_equal(module.ends, 0);
}

static void an_interval_that_is_not_whole_is_not_counted(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", 1, 10 * MS);
	bound_to[0] = 4;	/* meanwhile somebody moved it */
	node_counted_read(rank, RANKS, &counter);
	assert_false(take());
	assert_int_equal(rank->takers + rank->observed.stolen + rank->observed.counted, 0);
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);	/* who moves all the time would be watched anew all the time */
	assert_true(rank->counted_by.again > coll_now());
	rank->counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(node_cpus_has(&module.cpus, 4) && node_cpus_count(&module.cpus) == 1);
	assert_int_equal(module.losses, 0);
}

/* Somebody moved it, and moved it back: where it was meanwhile nothing was watched for it. */
static void an_interval_with_a_way_elsewhere_is_not_counted(void **state)
{
	uint64_t look;

	(void)state;
	follows_alone();
	for (look = 0; look < 3; look++) {
		watched_count = 0;
		says_cpu(0, true, false);
		watched[0].away = look ? 1 : 0;		/* between the first look and the second */
		says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", look + 1, 10 * (look + 1) * MS);
		node_counted_read(rank, RANKS, &counter);
		assert_int_equal(take(), look != 1);
		node_counted_follow(rank, RANKS, &counter);
	}
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 20 * MS);
	assert_int_equal(rank->observed.counted, 2 * (uint64_t)SECOND_NS);
	assert_int_equal(module.begins, 1);
	assert_int_equal(module.losses, 0);
}

static void another_watch_takes_it(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, false, false);	/* of another one's */
	watched[watched_count++] = (struct node_watched){
		.is_source = true, .index = 9, .cause = COLL_NOISE_THREAD, .name = "x", .total = MS, .count = 1 };
	node_counted_read(rank, RANKS, &counter);
	assert_false(take());
	assert_int_equal(module.losses, 1);
	assert_false(module.dear);
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);	/* not at once */
	rank->counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
	assert_int_equal(module.begins, 2);
}

static void nothing_can_be_read(void **state)
{
	(void)state;
	node_counted_follow(rank, RANKS, &counter);
	assert_int_equal(node_counted_counts(rank, RANKS).ranks, RANKS);
	module.read_error = -ENOENT;
	node_counted_read(rank, RANKS, &counter);
	assert_false(take());
	assert_int_equal(module.losses, RANKS);
	assert_int_equal(node_counted_counts(rank, RANKS).ranks, 0);
	assert_int_equal(node_counted_counts(rank, RANKS).fit, RANKS);
}

static void it_is_refused_and_tried_again(void **state)
{
	(void)state;
	module.begin_error = -EBUSY;
	alone();
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
	module.begin_error = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
	assert_true(rank->counted_by.again > coll_now() && rank->counted_by.again <= coll_now() + 5 * COLL_SECOND);
	rank->counted_by.again = coll_now();
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
}

/* Its CPU counts no more, as coll.ko says. What it counted is not of all the interval. */
static void costs_too_much(void)
{
	watched_count = 0;
	says_cpu(0, true, true);
	node_counted_read(rank, RANKS, &counter);
	assert_false(take());
	node_counted_follow(rank, RANKS, &counter);
	assert_true(module.dear);
	assert_false(rank->counted_by.watched);
}

/* When it is tried again: in this many seconds. */
static void pauses(uint64_t seconds)
{
	const uint64_t again = rank->counted_by.again, now = coll_now();

	assert_true(again <= now + seconds * COLL_SECOND && again > now + (seconds - 1) * COLL_SECOND);
}

static void tries_again(void)
{
	rank->counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
}

static void what_costs_too_much_pauses_for_longer_each_time(void **state)
{
	static const uint64_t pause[] = { 10, 20, 40, 80, 160, 300, 300 };
	size_t i;

	(void)state;
	follows_alone();
	for (i = 0; i < sizeof(pause) / sizeof(*pause); i++) {
		costs_too_much();
		assert_int_equal(module.losses, i + 1);
		assert_int_equal(node_counted_counts(rank, RANKS).fit, 0);
		pauses(pause[i]);
		tries_again();
	}
	rank->counted_by.began -= 301 * COLL_SECOND;	/* it went well for long */
	costs_too_much();
	pauses(10);
}

/* One CPU of the rank's is enough, and the other one ends with it. */
static void each_cpu_has_the_bound(void **state)
{
	(void)state;
	bound_count[0] = 2;
	bound_to[1] = 5;
	follows_alone();
	says_cpu(0, true, false);
	says_cpu(1, true, true);
	node_counted_read(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
	assert_int_equal(node_cpus_count(&module.cpus), 0);
	assert_int_equal(module.ends, 1);
}

/* A process that makes a new page is as it was, but for another process with its number. */
static void a_new_page_is_no_new_begin(void **state)
{
	struct observed_rank page = { .pid = FIRST, .page = -1 };

	(void)state;
	rank->born = 100;
	follows_alone();
	costs_too_much();
	node_counted_inherit(&page, rank);
	assert_int_equal(page.born, 100);
	assert_int_equal(page.counted_by.again, rank->counted_by.again);
	assert_int_equal(page.counted_by.dears, 1);
	page = (struct observed_rank){ .pid = FIRST, .page = -1 };
	rank->born = 99;
	node_counted_inherit(&page, rank);
	assert_true(!page.born && !page.counted_by.again);
}

/* Numbers are given again: what the one before took is not told of the one that has its number now. */
static void a_number_that_was_given_again_is_nobodys(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", 5, 100 * MS);
	watched[watched_count - 1].born = 99;
	says(0, 21, COLL_NOISE_THREAD, HELPER, "indexer", 5, 100 * MS);
	watched[watched_count - 1].born = 100;
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 100 * MS);	/* as of one that has ended */
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "indexer"), 100 * MS);
	assert_int_equal(taker_of(rank, COLL_FLIGHT_TAKER_TASK, "backup")->flags & COLL_FLIGHT_TAKER_USER, 0);
	assert_int_equal(tells, 0);	/* of `backup`: the other one's time is not known by /proc here */
}

static void says_rest(uint64_t count, uint64_t total)
{
	says(0, COLL_NOISE_THREAD + 1, COLL_NOISE_THREAD, 0, "others", count, total);
}

/* Of what coll.ko has folded into the rest, no more is told than came in the interval, under whatever name. */
static void what_was_folded_is_told_once(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says(0, 20, COLL_NOISE_THREAD, ENDED, "cron", 2, 50 * MS);
	says(0, 21, COLL_NOISE_THREAD, DAEMON, "backup", 5, 60 * MS);
	says(0, 22, COLL_NOISE_SOFTIRQ, 1, "timer", 3, 4 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	node_counted_follow(rank, RANKS, &counter);

	/* Both threads went there; one had 1 ms more before, another has its place, and the daemon has come back. */
	watched_count = 0;
	says_cpu(0, true, false);
	says_rest(8, 111 * MS);
	says(0, 20, COLL_NOISE_THREAD, HELPER, "indexer", 1, 70 * MS);
	watched[watched_count - 1].reused = 1;
	says(0, 21, COLL_NOISE_THREAD, DAEMON, "backup", 6, 62 * MS);
	watched[watched_count - 1].reused = 1;
	says(0, 22, COLL_NOISE_SOFTIRQ, 1, "timer", 4, 5 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	node_counted_follow(rank, RANKS, &counter);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "cron"), 50 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "indexer"), 70 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "backup"), 122 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_SOFTIRQS, "timer"), 5 * MS);
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_OTHERS, ""), MS);

	/* The places are free now. */
	watched_count = 0;
	says_cpu(0, true, false);
	says_rest(15, 243 * MS);
	says(0, 22, COLL_NOISE_SOFTIRQ, 1, "timer", 4, 5 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_OTHERS, ""), MS);
	assert_int_equal(rank->observed.counted, 3 * (uint64_t)SECOND_NS);
	assert_true(rank->counted_by.watched);
}

/* What had no name takes much: who waited is told of it, and it is counted on. */
static void what_has_no_name_is_others(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says_rest(5, 100 * MS);
	says(0, 20, COLL_NOISE_THREAD, DAEMON, "backup", 5, 60 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_OTHERS, ""), 100 * MS);
	assert_int_equal(rank->observed.stolen, 160 * MS);
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank->counted_by.watched);
}

/* A thread that calls itself so is one, and not all those for which there is no room. */
static void a_thread_may_be_called_others(void **state)
{
	(void)state;
	follows_alone();
	says_cpu(0, true, false);
	says(0, COLL_NOISE_CAUSES + 1, COLL_NOISE_THREAD, 0, "others", 5, 100 * MS);
	node_counted_read(rank, RANKS, &counter);
	assert_true(take());
	assert_int_equal(taken_by(COLL_FLIGHT_TAKER_TASK, "others"), 100 * MS);
}

/* Where another user's ranks run, neither is told of the other. */
static void what_two_users_run_on_is_not_counted(void **state)
{
	(void)state;
	rank->now.cpu = 0;
	rank->now.ran = 1;
	follows_alone();
	assert_true(node_cpus_has(&module.claimed, 0) && node_cpus_count(&module.claimed) == 1);
	node_cpus_add(&module.others, 0);
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank->counted_by.watched);
	assert_int_equal(node_cpus_count(&module.claimed), 0);	/* it has not run since */
	module.others = (struct node_cpus){ .bits = { 0 } };
	tries_again();
	assert_int_equal(module.losses, 0);
}

/* ---- which ranks ------------------------------------------------------------------- */

static void only_ranks_with_few_cpus_of_their_own(void **state)
{
	(void)state;
	bound_count[0] = CPUS_MOST;	/* 0 to 3 */
	bound_to[1] = 3;
	bound_to[2] = 4;
	bound_count[1] = CPUS_MOST;	/* 3 to 6, as many */
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank[0].counted_by.watched || rank[1].counted_by.watched);
	assert_true(rank[2].counted_by.watched);	/* it may use no other */
	bound_to[1] = 9;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank[0].counted_by.watched && rank[1].counted_by.watched);
	bound_count[0] = CPUS_MOST + 1;	/* it might be where the third one is: so it takes from that */
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank[0].counted_by.watched);
	assert_true(rank[1].counted_by.watched && rank[2].counted_by.watched);
	assert_int_equal(node_counted_counts(rank, RANKS).cpus, CPUS_MOST + 1);
	rank[1].now.time = 0;	/* it has ended */
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank[1].counted_by.watched);
	assert_int_equal(module.losses, 0);
}

/* It may use more than one CPU, and one of them is all that another may use: so it is where the other is at times. */
static void the_rank_with_the_fewest_cpus_has_one(void **state)
{
	(void)state;
	rank[2].now.time = 0;
	bound_count[0] = 2;	/* 0 and 1 */
	bound_to[1] = 5;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank[0].counted_by.watched && rank[1].counted_by.watched);
	bound_to[1] = 1;
	node_counted_follow(rank, RANKS, &counter);
	assert_false(rank[0].counted_by.watched);
	rank[0].counted_by.again = rank[1].counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(!rank[0].counted_by.watched && rank[1].counted_by.watched);
	assert_int_equal(node_counted_counts(rank, RANKS).fit, 1);
}

/* One that is not watched comes to the CPU that another leaves, at one look: that ends first, and all with one call. */
static void what_ends_ends_before_others_begin(void **state)
{
	(void)state;
	rank[1].counted_by.again = UINT64_MAX - 1;
	node_counted_follow(rank, RANKS, &counter);
	assert_true(rank[0].counted_by.watched && !rank[1].counted_by.watched && rank[2].counted_by.watched);
	bound_to[0] = 1;
	bound_to[1] = 2;
	bound_to[2] = 0;
	rank[1].counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_int_equal(module.ends, 1);
	assert_true(rank[1].counted_by.watched && node_cpus_has(&module.cpus, 2));
	assert_int_equal(node_cpus_count(&module.cpus), 1);
	rank[0].counted_by.again = rank[2].counted_by.again = 0;
	node_counted_follow(rank, RANKS, &counter);
	assert_int_equal(node_cpus_count(&module.cpus), RANKS);
	module.read_error = -ENOENT;
	node_counted_read(rank, RANKS, &counter);
	assert_int_equal(module.losses, RANKS);
	assert_int_equal(module.ends, 2);
}

static void without_a_counter_nothing_happens(void **state)
{
	(void)state;
	node_counted_read(rank, RANKS, NULL);
	assert_false(take());
	node_counted_follow(rank, RANKS, NULL);
	assert_int_equal(node_counted_counts(rank, RANKS).ranks, 0);
}

/* Of many kinds of interrupts the record has one line, so that programs have room. */
static void the_record_has_programs_and_not_only_interrupts(void **state)
{
	struct coll_flight_taker taker[COLL_FLIGHT_TAKERS] = { 0 };
	char name[8];
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "irq%u", i);
		node_takers_add_interrupts(rank, COLL_FLIGHT_TAKER_INTERRUPTS, (i + 1) * MS, name);
	}
	node_takers_add(rank, &(struct coll_flight_taker){ .ns = MS / 2, .name = "backup" });
	node_observed_takers(rank, taker);
	assert_int_equal(taker[0].kind, COLL_FLIGHT_TAKER_INTERRUPTS);
	assert_int_equal(taker[0].ns, 36 * MS);
	assert_string_equal(taker[0].name, "irq7");
	assert_string_equal(taker[1].name, "backup");
	assert_int_equal(taker[1].ns, MS / 2);
	assert_int_equal(taker[2].ns, 0);
}

/* It comes when many small ones have been seen: it has a place, and no time is lost. */
static void who_takes_most_has_a_place(void **state)
{
	struct coll_flight_taker taker = { .ns = MS };
	uint64_t all = 0, backup = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2 * OBSERVED_TAKERS; i++) {
		snprintf(taker.name, sizeof(taker.name), "task%u", i);
		node_takers_add(rank, &taker);
	}
	node_takers_add(rank, &(struct coll_flight_taker){ .ns = 9 * MS, .name = "backup" });
	for (i = 0; i < rank->takers; i++) {
		all += rank->taker[i].ns;
		backup += strcmp(rank->taker[i].name, "backup") ? 0 : rank->taker[i].ns;
	}
	assert_int_equal(rank->takers, OBSERVED_TAKERS);
	assert_int_equal(backup, 9 * MS);
	assert_int_equal(all, (2 * OBSERVED_TAKERS + 9) * MS);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_that_is_counted_is_a_taker),
		TEST(its_other_threads_are_its_own),
		TEST(a_thread_of_coll_ko_is_the_ranks),
		TEST(a_thread_of_coll_ko_is_no_younger_ranks),
		TEST(a_progress_thread_is_one_of_the_rank),
		TEST(a_progress_thread_of_the_program_is_watched_where_it_is),
		TEST(each_interval_has_what_came_in_it),
		TEST(an_interval_that_is_not_whole_is_not_counted),
		TEST(an_interval_with_a_way_elsewhere_is_not_counted),
		TEST(another_watch_takes_it),
		TEST(nothing_can_be_read),
		TEST(it_is_refused_and_tried_again),
		TEST(what_costs_too_much_pauses_for_longer_each_time),
		TEST(each_cpu_has_the_bound),
		TEST(a_new_page_is_no_new_begin),
		TEST(a_number_that_was_given_again_is_nobodys),
		TEST(what_was_folded_is_told_once),
		TEST(what_has_no_name_is_others),
		TEST(a_thread_may_be_called_others),
		TEST(what_two_users_run_on_is_not_counted),
		TEST(only_ranks_with_few_cpus_of_their_own),
		TEST(the_rank_with_the_fewest_cpus_has_one),
		TEST(what_ends_ends_before_others_begin),
		TEST(without_a_counter_nothing_happens),
		TEST(the_record_has_programs_and_not_only_interrupts),
		TEST(who_takes_most_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
