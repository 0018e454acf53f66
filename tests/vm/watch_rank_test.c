// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A watch as colld asks for it, of two threads of a process, and who reads it: its own watches or all, with the
 * numbers of its pid namespace. What it costs is what the process is slower by.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/watch_module.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "known.h"
#include "vm.h"

enum { CPU = 1 };

/* No host takes time from this machine: what is compared is alike. */
static bool exact;

/* ---- what is read --------------------------------------------------------------- */

enum { FOUND_MOST = 64 };

struct reading {
	int cpus, dear;			/* dear: that count no more */
	uint64_t watched, cost, taken;	/* taken: by threads, all of them */
	uint64_t calls, calls_total;	/* by other CPUs */
	uint32_t count;
	struct {
		uint32_t number;
		uint64_t total;
		char name[32];
	} thread[FOUND_MOST];
};

static int take(const struct node_watched *watched, void *argument)
{
	struct reading *reading = argument;

	if (!watched->is_source) {
		reading->cpus++;
		reading->dear += watched->dear;
		reading->watched += watched->watched;
		reading->cost += watched->cost;
	} else if (watched->cause == COLL_NOISE_IRQ && (!strcmp(watched->name, "call_function_single") ||
							!strcmp(watched->name, "IPI"))) {	/* arm64 */
		reading->calls += watched->count;
		reading->calls_total += watched->total;
	} else if (watched->cause == COLL_NOISE_THREAD && reading->count < FOUND_MOST) {
		reading->taken += watched->total;
		reading->thread[reading->count].number = watched->number;
		reading->thread[reading->count].total = watched->total;
		snprintf(reading->thread[reading->count++].name, sizeof(reading->thread->name), "%s", watched->name);
	}
	return 0;
}

static struct reading read_of(struct netlink *netlink, enum node_watch_whose whose)
{
	struct reading reading = { .cpus = 0 };

	if (node_watch_read(netlink, whose, take, &reading))
		vm_ok(false, "reading: %s", netlink_reason(netlink));
	return reading;
}

static uint64_t total_of(const struct reading *reading, const char *name, uint32_t *number)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < reading->count; i++)
		if (!strcmp(reading->thread[i].name, name)) {
			total += reading->thread[i].total;
			if (number)
				*number = reading->thread[i].number;
		}
	return total;
}

static const struct node_cpus *cpu_only(u32 cpu)
{
	static struct node_cpus cpus;

	cpus = (struct node_cpus){ .bits = { 0 } };
	node_cpus_add(&cpus, cpu);
	return &cpus;
}

static int watch(struct netlink *netlink, u32 cpu, u32 task, u32 thread)
{
	const struct node_watch_order order = { .task = task, .thread = thread, .yields = true };

	return node_watch_begin(netlink, cpu_only(cpu), &order);
}

static void unwatch(struct netlink *netlink)
{
	vm_is(node_watch_end(netlink, cpu_only(CPU)), 0, "stopped");
}

/* ---- who reads -------------------------------------------------------------------- */

static void refused(struct netlink *netlink, enum coll_command command, int attribute, const char *says)
{
	struct nl_msg *message = netlink_message(netlink, command, command == COLL_CMD_WATCH_GET ? NLM_F_DUMP : 0);

	if (command == COLL_CMD_WATCH_START)
		nla_put_string(message, COLL_WATCH_A_CPUS, "1");
	if (attribute == COLL_WATCH_A_CGROUP)
		nla_put_u64(message, attribute, 1);
	else
		nla_put_u32(message, attribute, 1);
	vm_is(netlink_ask(netlink, message, NULL, NULL), -EINVAL, "what is not taken is refused");
	vm_says(netlink_reason(netlink), says, "... by its name");
}

static void whose(struct netlink *netlink)
{
	struct netlink *second;

	refused(netlink, COLL_CMD_WATCH_START, COLL_WATCH_A_CGROUP, "cgroup");
	refused(netlink, COLL_CMD_WATCH_START, COLL_WATCH_A_THREAD, "thread: only with task");
	refused(netlink, COLL_CMD_WATCH_GET, COLL_WATCH_A_CPU, "cpu");
	vm_is(watch(netlink, CPU, getpid(), 32767), -ESRCH, "a thread that is not there is refused");
	vm_says(netlink_reason(netlink), "thread: no such thread", "... and named");
	vm_is(netlink_open(&second), 0, "somebody else");
	vm_is(watch(netlink, CPU, getpid(), 0), 0, "one CPU is watched");
	vm_is(watch(second, 0, getpid(), 0), 0, "... and another by the other");
	vm_is(read_of(netlink, NODE_WATCH_OWN).cpus, 1, "each reads its own");
	vm_is(read_of(second, NODE_WATCH_OWN).cpus, 1, "... and the other, too");
	vm_is(read_of(second, NODE_WATCH_ALL).cpus, 2, "or all");
	netlink_close(second);
	vm_is(read_of(netlink, NODE_WATCH_ALL).cpus, 1, "who goes takes its own along");
	unwatch(netlink);
}

/* A process of the reader's pid namespace has its number there, another one none. */
static int in_namespace(void)
{
	const pid_t inside = fork();
	struct netlink *netlink;
	uint32_t number = 1;
	int status = 0;
	struct reading reading;

	if (!inside) {
		prctl(PR_SET_NAME, "inside");
		vm_run_on(CPU);
		for (;;)
			;
	}
	if (netlink_open(&netlink) || watch(netlink, CPU, 0, 0))
		status = 1;
	vm_sleep_ms(500);
	reading = read_of(netlink, NODE_WATCH_OWN);
	if (!status && (!total_of(&reading, "inside", &number) || number != (uint32_t)inside))
		status = 2;
	number = 1;
	if (!status && (!total_of(&reading, "outside", &number) || number))
		status = 3;
	netlink_close(netlink);
	kill(inside, SIGKILL);
	return status;
}

static void numbers(struct netlink *netlink)
{
	const pid_t outside = fork();
	uint32_t number = 0;
	struct reading reading;
	int status = -1;
	pid_t child;

	if (!outside) {
		prctl(PR_SET_NAME, "outside");
		vm_run_on(CPU);
		for (;;)
			;
	}
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWPID))
			_exit(9);
		child = fork();
		if (!child)
			_exit(in_namespace());
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
	}
	waitpid(child, &status, 0);
	vm_is(status, 0, "in a pid namespace threads have its numbers, or none");
	vm_is(watch(netlink, CPU, 0, 0), 0, "here");
	vm_sleep_ms(100);
	reading = read_of(netlink, NODE_WATCH_OWN);
	vm_ok(total_of(&reading, "outside", &number) && number == (uint32_t)outside, "they have theirs");
	unwatch(netlink);
	kill(outside, SIGKILL);
	waitpid(outside, NULL, 0);
}

/* ---- which threads ----------------------------------------------------------------- */

static void *spins(void *argument)
{
	for (;;)
		;
	return argument;
}

static pid_t two_threads(void)
{
	const pid_t pid = fork();
	pthread_t second;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, "rank");
	vm_run_on(CPU);
	pthread_create(&second, NULL, spins, NULL);
	spins(NULL);
	return 0;
}

static void which_threads(struct netlink *netlink)
{
	const pid_t pid = two_threads();
	struct reading reading;
	uint32_t number = 0;
	uint64_t total;

	vm_sleep_ms(200);
	vm_is(watch(netlink, CPU, pid, 0), 0, "a process with two threads is watched");
	vm_sleep_ms(1000);
	reading = read_of(netlink, NODE_WATCH_OWN);
	vm_ok(!total_of(&reading, "rank", NULL) && !total_of(&reading, "other threads", NULL),
	      "neither takes from the other");
	unwatch(netlink);
	vm_is(watch(netlink, CPU, pid, pid), 0, "its first thread alone is watched");
	vm_sleep_ms(1000);
	reading = read_of(netlink, NODE_WATCH_OWN);
	total = total_of(&reading, "other threads", &number);
	vm_note("of %.1f ms the other thread had %.1f", reading.watched * 1e-6, total * 1e-6);
	/* Half of it, where the machine's own cores are not others' for long. */
	vm_ok(total > reading.watched / 10 && total < reading.watched / 10 * 9, "the other one has a part of its time");
	vm_is(number, pid, "... under the process' number");
	vm_is(total_of(&reading, "rank", NULL), 0, "... and not under its own");
	unwatch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- a thread that has just been made ------------------------------------------------- */

static void *nothing(void *argument)
{
	return argument;
}

/* Before all others, on the CPU: makes threads that are not, and waits for each. */
static pid_t makes_threads(void)
{
	const pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	vm_run_on(CPU);
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 2 });
	for (;;) {
		vm_sleep_ms(2);
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			_exit(1);
	}
}

/* In one good round of some, so much of what the daemon had was taken from the process. */
static bool daemon_takes(struct netlink *netlink, struct known *daemon, double part)
{
	for (int round = 0; round < 8; round++) {
		struct reading reading = read_of(netlink, NODE_WATCH_OWN);
		const uint64_t before = total_of(&reading, "known-daemon", NULL);
		uint64_t taken;

		known_work(daemon, 20);
		reading = read_of(netlink, NODE_WATCH_OWN);
		taken = total_of(&reading, "known-daemon", NULL) - before;
		vm_note("the daemon had %.1f ms, for %.1f of which a thread waited", daemon->own * 1e-6, taken * 1e-6);
		if (taken > part * daemon->own)
			return true;
	}
	return false;
}

/* It waits from the begin on: a daemon of 20 ms at a time is there already, for all but what its maker sleeps. */
static void new_threads(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	const pid_t pid = makes_threads();

	vm_is(watch(netlink, CPU, pid, 0), 0, "a process that makes threads is watched");
	vm_ok(daemon_takes(netlink, &daemon, 0.5), "a new thread waits from when it is made");
	unwatch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	known_end(&daemon);
}

/* ---- two threads that wait --------------------------------------------------------- */

static void *works_at_times(void *argument)
{
	for (;;) {
		const uint64_t until = vm_now() + 3000000;

		while (vm_now() < until)
			;
		vm_sleep_ms(1);
	}
	return argument;
}

/* Its first thread works for a moment at times, before the second one, which is there always. */
static pid_t a_short_one_and_a_long_one(void)
{
	const pid_t pid = fork();
	pthread_t second;

	if (pid)
		return pid;
	vm_run_on(CPU);
	pthread_create(&second, NULL, spins, NULL);
	setpriority(PRIO_PROCESS, 0, -20);
	works_at_times(NULL);
	return 0;
}

/*
 * The daemon goes before both. It keeps the first one, which then runs and sleeps, while the second one waits all the
 * time: all that the daemon has is taken from the process.
 */
static void two_wait(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	const pid_t pid = a_short_one_and_a_long_one();

	vm_sleep_ms(100);
	vm_is(watch(netlink, CPU, pid, 0), 0, "a process of which two threads wait is watched");
	vm_ok(daemon_takes(netlink, &daemon, 0.9), "one goes on waiting when the other runs");
	unwatch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	known_end(&daemon);
}

/* It waits before the watch begins, and does nothing until long after: nobody wakes it meanwhile. */
static void waits_already(struct netlink *netlink)
{
	const pid_t first = fork(), second = first ? fork() : 0;
	struct reading reading;

	if (!first || !second) {
		vm_run_on(CPU);
		prctl(PR_SET_NAME, first ? "waits" : "before-all");
		if (!first)
			sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 2 });
		spins(NULL);
	}
	vm_sleep_ms(200);
	vm_is(watch(netlink, CPU, second, second), 0, "a process that waits already is watched");
	vm_sleep_ms(300);
	reading = read_of(netlink, NODE_WATCH_OWN);
	vm_ok(total_of(&reading, "before-all", NULL) > reading.watched / 2, "what has its CPU takes it from then on");
	unwatch(netlink);
	kill(first, SIGKILL);
	kill(second, SIGKILL);
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
}

/* ---- names --------------------------------------------------------------------------- */

/* A thread that renames itself before each sleep. */
static pid_t renames(void)
{
	const pid_t pid = fork();
	char name[16];

	if (pid)
		return pid;
	vm_run_on(CPU);
	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof(name), "name%u", i % 5000);
		prctl(PR_SET_NAME, name);
		sched_yield();
		vm_sleep_ms(1);
	}
}

static void names(struct netlink *netlink)
{
	const pid_t pid = renames();
	struct reading reading;
	uint32_t with = 0;

	vm_is(watch(netlink, CPU, 0, 0), 0, "a CPU is watched whose thread renames itself");
	vm_sleep_ms(500);
	reading = read_of(netlink, NODE_WATCH_OWN);
	for (uint32_t i = 0; i < reading.count; i++)
		with += reading.thread[i].number == (uint32_t)pid;
	vm_is(with, 1, "it is one source, by whatever name");
	unwatch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what it costs ----------------------------------------------------------------------- */

enum { ROUNDS = 2000 };

/* A process on the CPU that answers. */
struct answerer {
	int there[2], back[2];
	pid_t pid;
};

static bool answers_begin(struct answerer *of)
{
	char byte;

	if (pipe(of->there) || pipe(of->back))
		return vm_ok(false, "pipes");
	of->pid = fork();
	vm_run_on(CPU);
	if (of->pid)
		return true;
	close(of->there[1]);
	while (read(of->there[0], &byte, 1) == 1 && write(of->back[1], &byte, 1) == 1)
		;
	_exit(0);
}

static void answers_end(struct answerer *of)
{
	vm_run_on(0);
	close(of->there[1]);
	waitpid(of->pid, NULL, 0);
	close(of->back[0]);
	close(of->back[1]);
	close(of->there[0]);
}

/* Two processes on the CPU that wake each other: the most switches and wake-ups that there are. Returns ns. */
static uint64_t wake_each_other(const struct answerer *of)
{
	const uint64_t began = vm_now();
	char byte = 0;

	for (int i = 0; i < ROUNDS; i++)
		if (write(of->there[1], &byte, 1) != 1 || read(of->back[0], &byte, 1) != 1)
			vm_ok(false, "a byte comes back");
	return vm_now() - began;
}

/* The part of the time that the watch takes, as it says. */
static double said_cost(struct netlink *netlink, struct reading before)
{
	const struct reading after = read_of(netlink, NODE_WATCH_OWN);

	return (double)(after.cost - before.cost) / (after.watched - before.watched);
}

static double least(const uint64_t *ns)
{
	uint64_t best = ns[0];

	for (int i = 1; i < 5; i++)
		best = ns[i] < best ? ns[i] : best;
	return best;
}

static void its_cost(struct netlink *netlink)
{
	uint64_t without[5], with[5];
	struct answerer other;
	struct reading before;
	double seen, said;

	if (!answers_begin(&other))
		return;
	wake_each_other(&other);
	for (int i = 0; i < 5; i++)
		without[i] = wake_each_other(&other);
	vm_is(watch(netlink, CPU, getpid(), getpid()), 0, "watched");
	before = read_of(netlink, NODE_WATCH_OWN);
	for (int i = 0; i < 5; i++)
		with[i] = wake_each_other(&other);
	said = said_cost(netlink, before);
	seen = 1 - least(without) / least(with);
	vm_note("a round trip of two wake-ups takes %.2f us, watched %.2f: %.1f %% of it; it says %.1f %%",
		least(without) / ROUNDS * 1e-3, least(with) / ROUNDS * 1e-3, 100 * seen, 100 * said);
	vm_ok(said > 0, "it says that it costs something");
	if (exact)
		vm_ok(said > 0.6 * seen && said < 1.5 * seen, "... about what it costs");
	before = read_of(netlink, NODE_WATCH_OWN);
	for (const uint64_t until = vm_now() + 1000000000; vm_now() < until;)
		;
	said = said_cost(netlink, before);
	vm_note("who computes without a pause is slower by %.3f %%, as it says", 100 * said);
	if (exact)
		vm_ok(said < 0.01, "one that computes without a pause it costs less than 1 %%");
	unwatch(netlink);
	answers_end(&other);
}

/* Who reads it all the time interrupts the CPU for that: which is in what it costs. */
static void cost_of_reading(struct netlink *netlink)
{
	const pid_t pid = fork();
	struct reading before, after;
	double said, seen;

	if (!pid) {
		vm_run_on(CPU);
		spins(NULL);
	}
	vm_sleep_ms(50);
	vm_is(watch(netlink, CPU, pid, pid), 0, "one that computes is watched");
	before = read_of(netlink, NODE_WATCH_OWN);
	for (int i = 0; i < 500; i++)
		after = read_of(netlink, NODE_WATCH_OWN);
	said = after.cost - before.cost;
	seen = after.calls_total - before.calls_total;
	vm_note("%llu calls of its CPU took %.2f us each; it says that it cost %.2f us a reading",
		(unsigned long long)(after.calls - before.calls), seen / (after.calls - before.calls + 1) * 1e-3,
		said / 500 * 1e-3);
	vm_ok(after.calls - before.calls >= 400, "it is interrupted to be read");
	if (exact)	/* the steps at its begin and end are as long as that again */
		vm_ok(said > 1.3 * seen && said < 2.5 * seen, "... and says what that costs");
	unwatch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Nobody looks meanwhile: the CPU ends it by itself. */
static void its_share(struct netlink *netlink)
{
	const struct node_watch_order order = {
		.task = getpid(), .thread = getpid(), .share = 0.0001, .yields = true,
	};
	struct reading first, later;
	struct answerer other;
	uint64_t ns = 0;

	if (!answers_begin(&other))
		return;
	vm_is(node_watch_begin(netlink, cpu_only(CPU), &order), 0, "a watch that may cost 0.01 %%");
	for (int i = 0; i < 3; i++)
		ns += wake_each_other(&other);
	first = read_of(netlink, NODE_WATCH_OWN);
	vm_note("it was watched for %.1f of %.1f ms, and cost %.3f", first.watched * 1e-6, ns * 1e-6, first.cost * 1e-6);
	vm_is(first.dear, 1, "what costs more counts no more");
	vm_ok(first.watched < ns / 2, "... since long before it was read");
	vm_ok(first.cost > 0 && first.cost < 4000000, "... and cost little until then");
	wake_each_other(&other);
	later = read_of(netlink, NODE_WATCH_OWN);
	vm_ok(later.watched == first.watched && later.cost == first.cost, "nothing is counted any more");
	vm_is(node_watch_begin(netlink, cpu_only(CPU), &order), -EBUSY, "it has the CPU until it is stopped");
	unwatch(netlink);
	vm_is(node_watch_begin(netlink, cpu_only(CPU), &order), 0, "then it begins again");
	vm_is(read_of(netlink, NODE_WATCH_OWN).cpus, 1, "... and is read");
	unwatch(netlink);
	answers_end(&other);
}

static const struct ask_part parts[] = {
	{ "whose", whose },
	{ "numbers", numbers },
	{ "threads", which_threads },
	{ "new", new_threads },
	{ "two", two_wait },
	{ "already", waits_already },
	{ "names", names },
	{ "cost", its_cost },
	{ "reading", cost_of_reading },
	{ "share", its_share },
};

int main(int argc, char **argv)
{
	return ask_parts(argc, argv, parts, sizeof(parts) / sizeof(*parts), &exact);
}
