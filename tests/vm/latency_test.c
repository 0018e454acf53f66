// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Latencies of wake-ups, and thresholds: who is known to hold a wake-up or a task up is named,
 * with its time; a watch stops at its threshold and has the stack of its CPU; nothing is
 * left of it when it ends, in whatever way.
 *
 * The emulator's host may take more time than what is injected, so one good round of some
 * is asked for, and sums are compared with themselves.
 *
 * Length: the plays share what they inject, the rounds that they try, and how a case is read.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include "ask.h"
#include "uapi/coll_noise.h"
#include "vm.h"

enum { CPU = 1, CASES_MAX = 16, PARTS_MAX = 16, ROUNDS = 20 };

#define MS 1000000ull

/* ---- what is read ------------------------------------------------------------------- */

struct part {
	uint8_t cause;
	uint32_t number;
	uint64_t time, cgroup;
	char name[32];
};

struct one_case {
	uint64_t start, total, timer;
	int parts;
	struct part part[PARTS_MAX];
};

struct stage {
	uint64_t count, total, min, max, in_buckets;
	bool in_order;
};

struct latency {
	int summaries, cases;
	uint64_t period, missed;
	struct stage stage[COLL_WATCH_STAGES];
	struct one_case one[CASES_MAX];
};

struct passed {
	int messages;
	uint32_t cpu, pid;
	uint64_t threshold;
	struct one_case one;
	char comm[32], stack[4096];
};

static uint64_t u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static void take_part(struct one_case *one, struct nlattr *nest)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };
	struct part *part = &one->part[one->parts];

	if (one->parts == PARTS_MAX || nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL))
		return;
	part->cause = nla_get_u8(member[COLL_WATCH_A_CAUSE]);
	part->number = nla_get_u32(member[COLL_WATCH_A_NUMBER]);
	part->time = u64_of(member[COLL_WATCH_A_TOTAL]);
	part->cgroup = u64_of(member[COLL_WATCH_A_CGROUP]);
	snprintf(part->name, sizeof(part->name), "%s", nla_get_string(member[COLL_WATCH_A_NAME]));
	one->parts++;
}

static void take_case(struct one_case *one, struct nlattr *nest)
{
	struct nlattr *attribute;
	int rest;

	*one = (struct one_case){ 0 };
	nla_for_each_nested(attribute, nest, rest) {
		switch (nla_type(attribute)) {
		case COLL_WATCH_A_START:
			one->start = nla_get_u64(attribute);
			break;
		case COLL_WATCH_A_TOTAL:
			one->total = nla_get_u64(attribute);
			break;
		case COLL_WATCH_A_TIMER:
			one->timer = nla_get_u64(attribute);
			break;
		case COLL_WATCH_A_PART:
			take_part(one, attribute);
			break;
		}
	}
}

static void take_buckets(struct stage *stage, struct nlattr *attribute)
{
	const struct coll_watch_bucket *bucket = nla_data(attribute);
	int count = nla_len(attribute) / sizeof(*bucket);

	for (int i = 0; i < count; i++) {
		stage->in_buckets += bucket[i].count;
		stage->in_order &= !i || bucket[i].least > bucket[i - 1].least;
		stage->in_order &= bucket[i].count && bucket[i].least <= stage->max;
	}
}

static void take_stage(struct latency *latency, struct nlattr *nest)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };
	struct stage *stage;

	nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL);
	stage = &latency->stage[nla_get_u8(member[COLL_WATCH_A_STAGE])];
	stage->count = u64_of(member[COLL_WATCH_A_COUNT]);
	stage->total = u64_of(member[COLL_WATCH_A_TOTAL]);
	stage->min = u64_of(member[COLL_WATCH_A_MIN]);
	stage->max = u64_of(member[COLL_WATCH_A_MAX]);
	stage->in_order = true;
}

static int take_latency(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct latency *latency = data;

	(void)command;
	if (nla_get_u32(attributes[COLL_WATCH_A_CPU]) != CPU)
		return 0;
	if (attributes[COLL_WATCH_A_LATENCY])
		take_stage(latency, attributes[COLL_WATCH_A_LATENCY]);
	if (attributes[COLL_WATCH_A_PERIOD]) {
		latency->summaries++;
		latency->period = u64_of(attributes[COLL_WATCH_A_PERIOD]);
		latency->missed = u64_of(attributes[COLL_WATCH_A_MISSED]);
	}
	if (attributes[COLL_WATCH_A_BUCKETS])
		take_buckets(&latency->stage[nla_get_u8(attributes[COLL_WATCH_A_STAGE])],
			     attributes[COLL_WATCH_A_BUCKETS]);
	if (attributes[COLL_WATCH_A_CASE] && latency->cases < CASES_MAX)
		take_case(&latency->one[latency->cases++], attributes[COLL_WATCH_A_CASE]);
	return 0;
}

static const struct latency *read_latency(struct netlink *netlink)
{
	static struct latency latency;

	latency = (struct latency){ 0 };
	if (netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_LATENCY, NLM_F_DUMP),
			take_latency, &latency))
		vm_ok(false, "reading: %s", netlink_reason(netlink));
	return &latency;
}

static int take_passed(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct passed *passed = data;

	(void)command;
	passed->messages++;
	passed->cpu = nla_get_u32(attributes[COLL_WATCH_A_CPU]);
	if (attributes[COLL_WATCH_A_STACK])
		snprintf(passed->stack, sizeof(passed->stack), "%s",
			 nla_get_string(attributes[COLL_WATCH_A_STACK]));
	if (!attributes[COLL_WATCH_A_CASE])
		return 0;
	passed->threshold = u64_of(attributes[COLL_WATCH_A_THRESHOLD]);
	passed->pid = nla_get_u32(attributes[COLL_WATCH_A_PID]);
	snprintf(passed->comm, sizeof(passed->comm), "%s",
		 nla_get_string(attributes[COLL_WATCH_A_COMM]));
	take_case(&passed->one, attributes[COLL_WATCH_A_CASE]);
	return 0;
}

static const struct passed *read_passed(struct netlink *netlink)
{
	static struct passed passed;

	passed = (struct passed){ 0 };
	if (netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_PASSED, NLM_F_DUMP),
			take_passed, &passed))
		vm_ok(false, "reading: %s", netlink_reason(netlink));
	return &passed;
}

struct summary {
	int count, state;
	uint64_t watched, ran;
};

static int take_summary(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct summary *summary = data;

	(void)command;
	if (attributes[COLL_WATCH_A_SOURCE] || nla_get_u32(attributes[COLL_WATCH_A_CPU]) != CPU)
		return 0;
	summary->count++;
	summary->state = nla_get_u8(attributes[COLL_WATCH_A_STATE]);
	summary->watched = u64_of(attributes[COLL_WATCH_A_WATCHED]);
	summary->ran = u64_of(attributes[COLL_WATCH_A_RAN]);
	return 0;
}

static struct summary read_summary(struct netlink *netlink)
{
	struct summary summary = { 0 };

	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP), take_summary,
		    &summary);
	return summary;
}

static void show_case(const struct one_case *one)
{
	vm_note("%llu ns, to the timer %llu", (unsigned long long)one->total,
		(unsigned long long)one->timer);
	for (int i = 0; i < one->parts; i++)
		vm_note("  %llu ns: cause %d %s (%u)", (unsigned long long)one->part[i].time,
			one->part[i].cause, one->part[i].name, one->part[i].number);
}

static uint64_t sum_of(const struct one_case *one)
{
	uint64_t sum = 0;

	for (int i = 0; i < one->parts; i++)
		sum += one->part[i].time;
	return sum;
}

/* ---- commands ------------------------------------------------------------------------- */

struct asked {
	const char *cpus;
	uint64_t period, threshold;
	int priority;		/* 0: none is said; -1: none before others */
	uint32_t task;
};

static int start(struct netlink *netlink, const struct asked *asked)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, asked->cpus ? asked->cpus : "1");
	if (asked->period)
		nla_put_u64(message, COLL_WATCH_A_PERIOD, asked->period);
	if (asked->threshold)
		nla_put_u64(message, COLL_WATCH_A_THRESHOLD, asked->threshold);
	if (asked->priority)
		nla_put_u32(message, COLL_WATCH_A_PRIORITY, asked->priority < 0 ? 0 : asked->priority);
	if (asked->task)
		nla_put_u32(message, COLL_WATCH_A_TASK, asked->task);
	return netlink_ask(netlink, message, NULL, NULL);
}

#define START(netlink, ...) start(netlink, &(struct asked){ __VA_ARGS__ })

static int stop(struct netlink *netlink)
{
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_STOP, 0), NULL, NULL);
}

static void stop_noise(struct netlink *netlink)
{
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_STOP, 0), NULL, NULL);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_STOP, 0), NULL, NULL);
}

/* How many threads of latencies there are. */
static int threads(void)
{
	return vm_threads("coll-wake/", NULL, 0);
}

/* ---- refusals ------------------------------------------------------------------------- */

static void refused(struct netlink *netlink, int got, int wanted, const char *reason)
{
	vm_is(got, wanted, reason);
	vm_says(netlink_reason(netlink), reason, "and says so");
}

static void refusals(struct netlink *netlink)
{
	refused(netlink, START(netlink, .period = 99999), -ERANGE,
		"period: integer out of range (valid: 100000 to 10000000000)");
	refused(netlink, START(netlink, .period = 10001 * MS), -ERANGE, "period: ");
	refused(netlink, START(netlink, .period = MS, .priority = 100), -ERANGE,
		"priority: integer out of range (valid: 0 to 99)");
	refused(netlink, START(netlink, .priority = 50), -EINVAL, "priority: only with period");
	refused(netlink, START(netlink, .period = MS, .task = getpid()), -EINVAL,
		"task: not with period");
	refused(netlink, START(netlink, .threshold = 999), -ERANGE,
		"threshold: integer out of range (valid: 1000 to 100000000000)");
	refused(netlink, START(netlink, .cpus = "1-63", .period = MS), -ENXIO,
		"cpus: some are not there");
	vm_is(read_summary(netlink).count, 0, "nothing of it is watched");
	vm_is(threads(), 0, "nor is there a thread");
	vm_is(read_latency(netlink)->summaries, 0, "no latency is read");
	vm_is(read_passed(netlink)->messages, 0, "and nothing has passed");
	vm_is(START(netlink, .threshold = MS), 0, "a threshold by itself");
	vm_is(read_latency(netlink)->summaries, 0, "has no latency");
	vm_is(stop(netlink), 0, "stopped");
}

/* ---- wake-ups --------------------------------------------------------------------------- */

static void adds_up(const struct latency *latency)
{
	const struct stage *thread = &latency->stage[COLL_WATCH_THREAD];
	bool whole = true, within = true;

	vm_note("%llu wake-ups, %llu missed; thread from %llu to %llu ns",
		(unsigned long long)thread->count, (unsigned long long)latency->missed,
		(unsigned long long)thread->min, (unsigned long long)thread->max);
	vm_ok(thread->in_buckets >= thread->count && thread->in_buckets <= thread->count + 50,
	      "the histogram has every wake-up");
	vm_ok(thread->in_order, "in order, none beyond the longest");
	vm_ok(thread->min && thread->min <= thread->total / thread->count &&
	      thread->total / thread->count <= thread->max, "the mean is between the ends");
	for (int i = 0; i < latency->cases; i++) {
		whole &= sum_of(&latency->one[i]) == latency->one[i].total;
		within &= latency->one[i].timer && latency->one[i].timer <= latency->one[i].total;
	}
	vm_ok(latency->cases > 0 && latency->cases <= 8, "%d cases are kept", latency->cases);
	vm_ok(whole, "their parts are all of their time, to the nanosecond");
	vm_ok(within, "the timer came before the thread");
	vm_ok(latency->stage[COLL_WATCH_TIMER].min <= thread->min &&
	      latency->stage[COLL_WATCH_TIMER].max <= thread->max, "its latencies are shorter");
}

static void wake_ups(struct netlink *netlink)
{
	const struct latency *latency;
	uint64_t took = vm_now(), due;

	vm_is(START(netlink, .period = MS), 0, "waking CPU 1 each millisecond");
	vm_is(threads(), 1, "by a thread");
	vm_sleep_ms(700);
	latency = read_latency(netlink);
	due = (vm_now() - took) / latency->period;
	vm_is(latency->period, MS, "the period is told");
	vm_ok(latency->stage[COLL_WATCH_THREAD].count > 50, "it was woken");
	vm_ok(latency->stage[COLL_WATCH_THREAD].count + latency->missed <= due,
	      "not more often than was asked");
	adds_up(latency);
	vm_ok(read_summary(netlink).ran > 0, "its time is RAN");
	vm_is(read_passed(netlink)->messages, 0, "nothing has passed without a threshold");
	vm_is(stop(netlink), 0, "stopped");
	vm_is(threads(), 0, "and the thread is gone");
	vm_is(START(netlink, .period = MS, .priority = -1), 0, "an ordinary thread, too");
	vm_ok(VM_COMES(read_latency(netlink)->stage[COLL_WATCH_THREAD].count > 10), "is woken");
	vm_is(stop(netlink), 0, "stopped");
}

/* The part that is the longest is of this cause. */
static bool is_most(const struct one_case *one, uint8_t cause, const char *name)
{
	return one->parts && one->part[0].cause == cause && !strcmp(one->part[0].name, name);
}

/* How much of it was injected. */
static uint64_t injected_in(const struct one_case *one)
{
	for (int i = 0; i < one->parts; i++)
		if (one->part[i].cause == COLL_NOISE_INJECTED)
			return one->part[i].time;
	return 0;
}

/* An interrupt of 5 ms holds up who should be woken in it; the host may make it longer. */
static void known_interrupt(struct netlink *netlink)
{
	const struct latency *latency = NULL;
	const struct one_case *found = NULL;

	for (int round = 0; round < ROUNDS && !found; round++) {
		vm_is(START(netlink, .period = MS), 0, "waking CPU 1");
		ask_noise(netlink, 5 * MS);
		vm_sleep_ms(500);
		latency = read_latency(netlink);
		stop_noise(netlink);
		stop(netlink);
		for (int i = 0; i < latency->cases; i++)
			if (injected_in(&latency->one[i]) > 3 * MS)
				found = &latency->one[i];
	}
	if (vm_ok(found, "5 ms of an injected interrupt are in a latency, under its name"))
		show_case(found);
	vm_ok(latency->missed > 0, "the periods within it are missed");
	adds_up(latency);
}

/* ---- a thread that holds others up --------------------------------------------------------- */

/* Works for so long now and then, before all others, on CPU 1. */
static pid_t start_spinner(const char *name, int priority, int ms)
{
	pid_t pid = fork();
	uint64_t until;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vm_run_on(CPU);
	if (priority)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = priority });
	for (;;) {
		vm_sleep_ms(priority ? 100 : 0);
		until = vm_now() + ms * MS;
		while (vm_now() < until)
			;
	}
}

static void end_spinner(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What has passed, when something has. */
static const struct passed *wait_passed(struct netlink *netlink)
{
	VM_COMES(read_passed(netlink)->messages);
	return read_passed(netlink);
}

static void known_thread(struct netlink *netlink)
{
	const uint64_t threshold = 20 * MS;
	const struct passed *passed = NULL;
	pid_t pid = start_spinner("known-spinner", 99, 60);
	struct summary before;
	bool good = false;

	for (int round = 0; round < ROUNDS && !good; round++) {
		vm_is(START(netlink, .period = 2 * MS, .threshold = threshold), 0,
		      "waking CPU 1, up to 20 ms");
		passed = wait_passed(netlink);
		good = is_most(&passed->one, COLL_NOISE_THREAD, "known-spinner") &&
		       passed->one.part[0].number == (uint32_t)pid &&
		       passed->one.total < 2 * threshold;
		if (!good)
			stop(netlink);
	}
	show_case(&passed->one);
	vm_ok(good, "a FIFO thread before it is named, with its pid");
	vm_is(passed->messages, 2, "what passed is told, and its stack");
	vm_ok(passed->cpu == CPU && passed->threshold == threshold, "with CPU and threshold");
	vm_ok(passed->one.total > threshold && passed->one.total < 2 * threshold,
	      "as soon as the threshold has passed");
	vm_is(sum_of(&passed->one), passed->one.total, "the parts are all of the time");
	vm_ok(passed->one.part[0].cgroup > 0, "the thread has its cgroup");
	vm_says(passed->comm, "known-spinner", "the CPU had that thread");
	vm_is(passed->pid, pid, "by its pid");
	vm_note("%s", passed->stack);
	vm_says(passed->stack, "+0x", "the stack has functions");
	vm_ok(!strstr(passed->stack, "ffffffff"), "and no addresses");
	before = read_summary(netlink);
	vm_is(before.state, 3, "the watch has stopped");
	vm_sleep_ms(50);
	vm_ok(read_summary(netlink).watched == before.watched, "and counts no more");
	vm_is(read_passed(netlink)->messages, 2, "what passed may be read again");
	vm_is(stop(netlink), 0, "until it is stopped");
	vm_is(read_passed(netlink)->messages, 0, "then it is gone");
	vm_is(threads(), 0, "as its thread is");
	end_spinner(pid);
}

/* ---- stolen time ---------------------------------------------------------------------------- */

static void known_event(struct netlink *netlink)
{
	const struct passed *passed = NULL;
	bool good = false;

	for (int round = 0; round < ROUNDS && !good; round++) {
		vm_is(START(netlink, .threshold = 3 * MS), 0, "watching CPU 1, up to 3 ms");
		ask_noise(netlink, 5 * MS);
		passed = wait_passed(netlink);
		good = is_most(&passed->one, COLL_NOISE_INJECTED, "injected") &&
		       strstr(passed->stack, "noise_timer") && passed->one.total < 7 * MS;
		stop_noise(netlink);
		stop(netlink);
	}
	show_case(&passed->one);
	vm_note("%s", passed->stack);
	vm_ok(good, "an injected interrupt passes it; its function is in the stack");
	vm_ok(passed->one.total > 3 * MS, "with its time");
	vm_is(passed->one.timer, 0, "and no timer");
}

static void known_thief(struct netlink *netlink)
{
	pid_t application = start_spinner("application", 0, 1000);
	pid_t pid = start_spinner("known-spinner", 50, 60);
	const struct passed *passed = NULL;
	bool good = false;

	for (int round = 0; round < ROUNDS && !good; round++) {
		vm_is(START(netlink, .threshold = 30 * MS, .task = application), 0,
		      "watching a task on CPU 1, up to 30 ms");
		passed = wait_passed(netlink);
		good = is_most(&passed->one, COLL_NOISE_THREAD, "known-spinner") &&
		       passed->one.part[0].time > 15 * MS;
		stop(netlink);
	}
	show_case(&passed->one);
	vm_ok(good, "who takes 60 ms from a task is named");
	vm_ok(passed->one.total > 30 * MS, "with its time");
	vm_is(passed->one.part[0].number, pid, "and pid");
	end_spinner(pid);
	end_spinner(application);
}

static void nothing_passes(struct netlink *netlink)
{
	vm_is(START(netlink, .cpus = "0-1", .period = MS, .threshold = 100000 * MS), 0,
	      "two CPUs, with a threshold of 100 s");
	vm_is(threads(), 2, "two threads");
	vm_sleep_ms(200);
	vm_is(read_passed(netlink)->messages, 0, "which nothing passes");
	vm_is(read_summary(netlink).state, 1, "so it goes on");
	vm_is(stop(netlink), 0, "until it is stopped");
}

/* ---- what comes in between ------------------------------------------------------------------- */

static uint64_t woken(struct netlink *netlink)
{
	return read_latency(netlink)->stage[COLL_WATCH_THREAD].count;
}

static void cpu_goes_and_comes(struct netlink *netlink)
{
	uint64_t count;

	vm_is(START(netlink, .period = MS), 0, "waking CPU 1");
	vm_ok(VM_COMES(woken(netlink) > 5), "it is woken");
	vm_is(vm_cpu_online(CPU, false), 0, "CPU 1 is taken offline");
	vm_is(threads(), 0, "its thread with it");
	count = woken(netlink);
	vm_ok(count > 5, "what it had is kept");
	vm_sleep_ms(50);
	vm_is(woken(netlink), count, "and does not change");
	vm_is(vm_cpu_online(CPU, true), 0, "it comes back");
	vm_ok(VM_COMES(woken(netlink) > count), "and is woken again");
	adds_up(read_latency(netlink));
	vm_is(vm_cpu_online(CPU, false), 0, "offline once more");
	vm_is(stop(netlink), 0, "to be stopped like this");
	vm_is(START(netlink, .period = MS, .threshold = 50000 * MS), 0, "and started like this");
	vm_is(threads(), 0, "without a thread");
	vm_is(vm_cpu_online(CPU, true), 0, "until the CPU comes");
	vm_ok(VM_COMES(woken(netlink) > 5), "then it is woken");
	vm_is(stop(netlink), 0, "stopped");
}

static void owner_is_killed(void)
{
	struct netlink *own;
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		byte = !netlink_open(&own) && !START(own, .cpus = "0-1", .period = MS);
		_exit(write(pipes[1], &byte, 1) + pause());
	}
	vm_ok(read(pipes[0], &byte, 1) == 1 && byte, "another process wakes two CPUs");
	vm_is(threads(), 2, "by two threads");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vm_is(threads(), 0, "it is killed, and they are gone");
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- rights ----------------------------------------------------------------------------------- */

static bool drop(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[capability / 32].effective &= ~(1u << capability % 32);
	return !syscall(SYS_capset, &header, data);
}

static void without_rights(struct netlink *netlink)
{
	int status;
	pid_t pid;

	vm_is(START(netlink, .threshold = 1000), 0, "a threshold of a microsecond");
	vm_is(wait_passed(netlink)->messages, 2, "passes at once");
	pid = fork();
	if (!pid) {
		if (!drop(CAP_SYSLOG) || netlink_open(&netlink))
			_exit(1);
		_exit(read_passed(netlink)->messages == 1 ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	vm_is(status, 0, "the stack is not for who lacks CAP_SYSLOG");
	pid = fork();
	if (!pid) {
		if (!drop(CAP_SYS_NICE) || netlink_open(&netlink))
			_exit(1);
		if (START(netlink, .cpus = "0", .period = MS) != -EPERM ||
		    !strstr(netlink_reason(netlink), "CAP_SYS_NICE"))
			_exit(2);
		_exit(START(netlink, .cpus = "0", .threshold = MS) ? 3 : 0);
	}
	waitpid(pid, &status, 0);
	vm_is(status, 0, "a thread before others needs CAP_SYS_NICE, a threshold does not");
	pid = fork();
	if (!pid) {
		if (!drop(CAP_PERFMON) || !drop(CAP_SYS_ADMIN) || netlink_open(&netlink))
			_exit(1);
		_exit(ask_dump(netlink, COLL_CMD_WATCH_LATENCY) == -EPERM &&
		      ask_dump(netlink, COLL_CMD_WATCH_PASSED) == -EPERM ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	vm_is(status, 0, "both dumps need CAP_PERFMON");
	vm_is(stop(netlink), 0, "stopped");
}

static void unloaded(struct netlink *netlink)
{
	pid_t pid = start_spinner("known-spinner", 99, 10);

	vm_is(START(netlink, .cpus = "0-1", .period = 100000, .threshold = 90000 * MS), 0,
	      "both CPUs are woken often");
	vm_sleep_ms(100);
	vm_is(vm_unload(), 0, "while coll.ko is unloaded");
	vm_is(threads(), 0, "no thread is left");
	vm_ok(stop(netlink) < 0, "then the family is gone");
	vm_is(vm_load(""), 0, "and comes back");
	end_spinner(pid);
}

int main(void)
{
	struct netlink *netlink;

	vm_run_on(0);
	if (!vm_ok(!netlink_open(&netlink), "the family"))
		return vm_end();
	refusals(netlink);
	wake_ups(netlink);
	known_interrupt(netlink);
	known_thread(netlink);
	known_event(netlink);
	known_thief(netlink);
	nothing_passes(netlink);
	cpu_goes_and_comes(netlink);
	owner_is_killed();
	without_rights(netlink);
	unloaded(netlink);
	netlink_close(netlink);
	return vm_end();
}
