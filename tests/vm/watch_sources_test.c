// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Who took a rank's CPU, where more and more did: threads that took nothing for long are folded into the rest,
 * which has what they had, to the nanosecond; who reads all while threads come and go never reads less than
 * before.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/coll_noise.h"
#include "ask.h"
#include "vm.h"
#include "watches.h"

enum {
	CPU = 1, PLACES = 1024,
	KEPT = 64, QUIET_MS = 10000,	/* as coll.ko has it */
	FIRST = 200, LATER = 100, STORM = 1500,
};

static bool exact;

/* ---- what is read ------------------------------------------------------------------ */

struct reading {
	uint64_t watched, ran, idle, folded, took;	/* took: to read all this */
	uint64_t total, threads_total;
	int summaries, threads;			/* by name: without the rest */
	struct watches_said rest, source[PLACES];	/* threads */
};

static void take(const struct watches_said *said, void *argument)
{
	struct reading *reading = argument;

	reading->total += said->total;
	if (!said->is_source) {
		reading->summaries++;
		reading->watched = said->watched;
		reading->ran = said->ran;
		reading->idle = said->idle;
		reading->folded = said->folded;
	} else if (said->cause == COLL_NOISE_THREAD) {
		reading->threads_total += said->total;
		if (said->index == COLL_NOISE_THREAD + 1)
			reading->rest = *said;
		else if (reading->threads < PLACES)
			reading->source[reading->threads++] = *said;
	}
}

static void read_watch(struct netlink *netlink, struct reading *reading)
{
	const uint64_t began = vm_now();

	memset(reading, 0, sizeof(*reading));
	if (!watches_read(netlink, take, reading) && reading->summaries != 1)
		vm_ok(false, "a CPU is watched");
	reading->took = vm_now() - began;
}

/* What comes while it is read may be in one number and not in another. */
static void adds_up(const struct reading *reading, const char *what)
{
	const uint64_t sum = reading->ran + reading->idle + reading->total,
		       apart = sum > reading->watched ? sum - reading->watched : reading->watched - sum;

	if (!vm_ok(apart <= reading->took, "%s: all time has one owner", what))
		vm_note("sum %llu of %llu", (unsigned long long)sum, (unsigned long long)reading->watched);
}

static void show(const struct reading *reading, const char *what)
{
	vm_note("%s: %d threads, %llu folded; they had %.1f ms, of which the rest %.1f in %llu pieces", what,
		reading->threads, (unsigned long long)reading->folded, reading->threads_total * 1e-6,
		reading->rest.total * 1e-6, (unsigned long long)reading->rest.count);
}

/* ---- who takes ---------------------------------------------------------------------- */

static void spin(uint64_t ns)
{
	const uint64_t began = vm_now();

	while (vm_now() - began < ns)
		;
}

/* Wants the CPU always, from when this returns. */
static pid_t start_rank(void)
{
	const pid_t pid = fork();

	if (pid) {
		vm_sleep_ms(50);
		return pid;
	}
	vm_run_on(CPU);
	for (;;)
		;
}

/* So many processes there, one after the other, before all others. */
static pid_t start_threads(int count, uint64_t ns)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	vm_run_on(CPU);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	while (count--) {
		const pid_t child = fork();

		if (!child)
			spin(ns);
		if (child <= 0)
			_exit(child < 0);
		waitpid(child, NULL, 0);
	}
	_exit(0);
}

static void some_threads(int count, uint64_t ns)
{
	int status = -1;

	waitpid(start_threads(count, ns), &status, 0);
	vm_is(status, 0, "threads come and go");
}

static void stop(struct netlink *netlink, pid_t rank)
{
	watches_stop(netlink);
	kill(rank, SIGKILL);
	waitpid(rank, NULL, 0);
}

/* The rank sleeps for longer than threads are kept that take nothing. */
static void all_is_quiet(pid_t rank)
{
	kill(rank, SIGSTOP);
	vm_sleep_ms(QUIET_MS + 1000);
	kill(rank, SIGCONT);
}

/* ---- what is folded ---------------------------------------------------------------------- */

static bool is_in(const struct reading *reading, const struct watches_said *source)
{
	for (int i = 0; i < reading->threads; i++)
		if (reading->source[i].index == source->index && reading->source[i].reused == source->reused)
			return true;
	return false;
}

/* Those of the first reading that are not in the second, added up. */
static struct watches_said gone_since(const struct reading *before, const struct reading *after)
{
	struct watches_said gone = { 0 };

	for (int i = 0; i < before->threads; i++) {
		const struct watches_said *source = &before->source[i];

		if (is_in(after, source))
			continue;
		gone.reused++;
		gone.count += source->count;
		gone.total += source->total;
		gone.events += source->events;
		if (source->longest > gone.longest)
			gone.longest = source->longest;
	}
	return gone;
}

static void threads_are_folded(struct netlink *netlink)
{
	static struct reading before, after;
	const pid_t rank = start_rank();
	struct watches_said gone;

	vm_is(watches_start(netlink, rank, 0), 0, "a rank's CPU is watched");
	some_threads(FIRST, 50000);
	kill(rank, SIGSTOP);
	read_watch(netlink, &before);
	show(&before, "at first");
	if (exact)
		vm_ok(before.threads >= FIRST && !before.folded, "who took some of late has a name");
	vm_ok(before.threads + before.folded >= FIRST, "each thread is a source");
	adds_up(&before, "at first");
	all_is_quiet(rank);
	some_threads(LATER, 50000);
	kill(rank, SIGSTOP);
	read_watch(netlink, &after);
	show(&after, "later");
	gone = gone_since(&before, &after);
	vm_ok(after.threads <= KEPT + LATER + 16, "who took nothing for long has none any more");
	/* With some, perhaps, that ran while the rank slept: these had nothing, and are not read. */
	vm_ok(after.folded - before.folded >= gone.reused && after.folded - before.folded <= gone.reused + 16,
	      "those were folded");
	vm_is(after.rest.total - before.rest.total, gone.total, "... and the rest has their time");
	vm_is(after.rest.count - before.rest.count, gone.count, "... their pieces");
	vm_is(after.rest.events - before.rest.events, gone.events, "... and these's lengths");
	vm_ok(after.rest.longest >= gone.longest, "... also the longest");
	vm_ok(after.threads_total > before.threads_total, "no time is lost");
	adds_up(&after, "later");
	stop(netlink, rank);
}

/*
 * A reader that asks and does not receive keeps nobody's sources; what it has when it does is what there was when it
 * asked. The rank sleeps then, so that nothing is taken.
 */
static void a_reader_stands_still(struct netlink *netlink)
{
	static struct reading asked, slow, after;
	const pid_t rank = start_rank();
	int fd;

	vm_is(watches_start(netlink, rank, 0), 0, "a rank's CPU is watched");
	some_threads(FIRST, 50000);
	kill(rank, SIGSTOP);
	vm_sleep_ms(50);
	read_watch(netlink, &asked);
	fd = watches_ask(netlink);
	kill(rank, SIGCONT);
	all_is_quiet(rank);
	some_threads(LATER, 50000);
	read_watch(netlink, &after);
	show(&after, "later");
	vm_ok(after.folded - asked.folded >= FIRST / 2, "a reader that stands still keeps no thread's source");
	memset(&slow, 0, sizeof(slow));
	watches_receive(fd, take, &slow);
	show(&slow, "the reader");
	vm_is(slow.summaries, 1, "it goes on");
	vm_is(slow.threads, asked.threads, "... with each source that there was when it asked");
	vm_is(slow.folded, asked.folded, "... none of them folded");
	vm_is(slow.total, asked.total, "... and all that these had, once");
	stop(netlink, rank);
}

/* Events of a log have sources: these stay. */
static void a_log_keeps_them(struct netlink *netlink)
{
	static struct reading after;
	const pid_t rank = start_rank();

	vm_is(watches_start(netlink, rank, 1000), 0, "a rank's CPU is watched with a log");
	some_threads(FIRST, 50000);
	all_is_quiet(rank);
	some_threads(LATER, 50000);
	read_watch(netlink, &after);
	vm_ok(after.threads >= FIRST + LATER && !after.folded, "nothing is folded: %d threads", after.threads);
	stop(netlink, rank);
}

/* ---- who reads meanwhile ----------------------------------------------------------------- */

/*
 * Threads that took much are folded while more come than there are places, each of which takes little: a
 * reading that had not one of these would be less than the one before.
 */
static void read_in_a_storm(struct netlink *netlink)
{
	static struct reading reading;
	const pid_t rank = start_rank();
	uint64_t before = 0, less = 0, readings = 0;
	int status = -1;
	pid_t threads;

	vm_is(watches_start(netlink, rank, 0), 0, "a rank's CPU is watched");
	some_threads(FIRST, 5000000);
	all_is_quiet(rank);
	threads = start_threads(STORM, 0);
	while (!waitpid(threads, &status, WNOHANG)) {
		read_watch(netlink, &reading);
		less += reading.threads_total < before;
		before = reading.threads_total;
		readings++;
		vm_sleep_ms(1);
	}
	vm_is(status, 0, "more threads come and go than there are places");
	kill(rank, SIGSTOP);
	read_watch(netlink, &reading);
	show(&reading, "after the storm");
	vm_note("it was read %llu times meanwhile", (unsigned long long)readings);
	vm_is(less, 0, "nobody reads less than before");
	vm_ok(readings >= 3, "some read");
	vm_ok(reading.threads <= PLACES - COLL_NOISE_CAUSES, "there are no more than places");
	vm_ok(reading.folded + reading.rest.count > 0 && reading.rest.total > 0, "the rest has those that had none");
	vm_ok(reading.rest.count + reading.threads >= FIRST + STORM, "no thread is lost");
	adds_up(&reading, "after the storm");
	stop(netlink, rank);
}

static const struct ask_part parts[] = {
	{ "folded", threads_are_folded },
	{ "still", a_reader_stands_still },
	{ "log", a_log_keeps_them },
	{ "storm", read_in_a_storm },
};

int main(int argc, char **argv)
{
	return ask_parts(argc, argv, parts, sizeof(parts) / sizeof(*parts), &exact);
}
