// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A watch of one CPU, and a rank that comes there from elsewhere and goes there: it waits from when it comes,
 * wherever it was, and that it went where nothing is watched for it is said.
 *
 * With run -i ("watch_moves_test exact") it takes a minute and more, and may seem to stand still. That is the emulator:
 * while a process computes on its first CPU an RCU grace period takes seconds of the machine's time, for which a STOP
 * waits, or does not end. Without coll.ko, and with nothing but such a process, membarrier() did not return in two
 * minutes.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/watch_module.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "vm.h"
#include "watches.h"

enum { CPU = 1 };

static bool exact;

struct reading {
	uint64_t watched, away, hog;	/* of CPU 1 */
};

static int take(const struct node_watched *watched, void *argument)
{
	struct reading *reading = argument;

	if (watched->cpu != CPU)
		return 0;
	if (!watched->is_source) {
		reading->watched = watched->watched;
		reading->away = watched->away;
	} else if (watched->cause == COLL_NOISE_THREAD && !strcmp(watched->name, "hog")) {
		reading->hog = watched->total;
	}
	return 0;
}

static struct reading read_watch(struct netlink *netlink)
{
	struct reading reading = { 0 };

	if (node_watch_read(netlink, NODE_WATCH_OWN, take, &reading))
		vm_ok(false, "reading: %s", netlink_reason(netlink));
	return reading;
}

static void move(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		vm_ok(false, "a process is moved: %s", strerror(errno));
}

/* On this CPU. `hog`: before all others, and never gives it back. */
static pid_t start(int cpu, bool hog)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	vm_run_on(cpu);
	prctl(PR_SET_NAME, hog ? "hog" : "rank");
	if (hog)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	vm_sleep_ms(1);		/* a watch knows the name that a thread had when it got the CPU */
	for (;;)
		;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Of these CPUs, for this rank. */
static bool watch(struct netlink *netlink, pid_t rank, bool both)
{
	struct node_cpus cpus = { .bits = { 0 } };

	node_cpus_add(&cpus, CPU);
	if (both)
		node_cpus_add(&cpus, 0);
	return vm_is(node_watch_begin(netlink, &cpus, &(struct node_watch_order){ .task = rank, .thread = rank }), 0,
		     both ? "both CPUs are watched" : "one CPU is watched");
}

/* It runs elsewhere, and comes to where it has to wait. */
static void one_comes(struct netlink *netlink, bool both)
{
	const pid_t hog = start(CPU, true), rank = start(0, false);
	struct reading before, after;

	vm_sleep_ms(100);
	watch(netlink, rank, both);
	vm_sleep_ms(100);
	before = read_watch(netlink);
	vm_is(before.hog, 0, "nothing is taken from a rank where it is not");
	move(rank, CPU);
	vm_sleep_ms(300);
	after = read_watch(netlink);
	vm_note("since it came, or shortly before, %.1f ms passed, of which the hog took %.1f from it",
		(after.watched - before.watched) * 1e-6, after.hog * 1e-6);
	/* From Linux 6.12 on those that wait for a real-time task get 50 ms of a second. */
	vm_ok(after.hog > (exact ? 240000000 : 150000000) && after.hog <= after.watched - before.watched,
	      "a rank that comes waits");
	vm_is(after.away, 0, "... and has not left");
	move(rank, 0);
	vm_sleep_ms(50);
	before = read_watch(netlink);
	vm_is(before.away, both ? 0 : 1, "that it leaves for where it is not watched is said");
	vm_sleep_ms(100);
	vm_is(read_watch(netlink).hog, before.hog, "nothing is taken from it there any more");
	end(hog);	/* the STOP waits for the kernel's own threads on that CPU, perhaps */
	end(rank);
	watches_stop(netlink);
}

static void from_anywhere(struct netlink *netlink)
{
	one_comes(netlink, false);
}

static void from_a_watched_one(struct netlink *netlink)
{
	one_comes(netlink, true);
}

/* A rank that sleeps goes when it is woken: that counts, too. */
static void asleep(struct netlink *netlink)
{
	const pid_t rank = start(CPU, false);

	vm_sleep_ms(50);
	watch(netlink, rank, false);
	kill(rank, SIGSTOP);
	vm_sleep_ms(50);
	move(rank, 0);
	kill(rank, SIGCONT);
	vm_sleep_ms(50);
	vm_is(read_watch(netlink).away, 1, "a rank that slept is away when it is woken elsewhere");
	watches_stop(netlink);
	end(rank);
}

static const struct ask_part parts[] = {
	{ "anywhere", from_anywhere },
	{ "watched", from_a_watched_one },
	{ "asleep", asleep },
};

int main(int argc, char **argv)
{
	static const char runtime[] = "/proc/sys/kernel/sched_rt_runtime_us";
	int error;

	vm_write(runtime, "-1");	/* the hog has all of it */
	error = ask_parts(argc, argv, parts, sizeof(parts) / sizeof(*parts), &exact);
	vm_write(runtime, "950000");
	return error;
}
