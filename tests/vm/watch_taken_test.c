// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What is taken from a rank is what was taken while it wanted the CPU: NMIs while it sleeps are nobody's, and what the
 * hypervisor took while it ran is its loss also when that is found out after it went to sleep.
 * tests/vm/disturb makes both.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/coll_noise.h"
#include "ask.h"
#include "known.h"
#include "vm.h"
#include "watches.h"

enum { CPU = 1, NMIS = 20, NMI_NS = 500000, MS = 1000000 };

static bool exact;

/* ---- what is read ------------------------------------------------------------------ */

struct reading {
	int64_t watched, ran, idle, taken;	/* taken: by all sources */
	int64_t nmi, nmis, steal, daemon;
};

static void take(const struct watches_said *said, void *argument)
{
	struct reading *reading = argument;

	reading->taken += said->total;
	reading->watched += said->watched;
	reading->ran += said->ran;
	reading->idle += said->idle;
	if (said->is_source && said->cause == COLL_NOISE_NMI) {
		reading->nmi += said->total;
		reading->nmis += said->count;
	} else if (said->is_source && said->cause == COLL_NOISE_STEAL) {
		reading->steal += said->total;
	} else if (!strcmp(said->name, "known-daemon")) {
		reading->daemon += said->total;
	}
}

static struct reading read_watch(struct netlink *netlink)
{
	struct reading reading = { 0 };

	watches_read(netlink, take, &reading);
	return reading;
}

/* By how much all have grown. */
static struct reading read_since(struct netlink *netlink, const struct reading *before)
{
	const struct reading now = read_watch(netlink);
	struct reading grown = {
		.watched = now.watched - before->watched, .ran = now.ran - before->ran,
		.idle = now.idle - before->idle, .taken = now.taken - before->taken, .nmi = now.nmi - before->nmi,
		.nmis = now.nmis - before->nmis, .steal = now.steal - before->steal,
		.daemon = now.daemon - before->daemon,
	};

	vm_note("of %.2f ms it ran for %.2f, others took %.2f (%lld NMIs %.2f, the hypervisor %.2f), idle %.2f",
		grown.watched * 1e-6, grown.ran * 1e-6, grown.taken * 1e-6, (long long)grown.nmis, grown.nmi * 1e-6,
		grown.steal * 1e-6, grown.idle * 1e-6);
	return grown;
}

/* A CPU on which little changes is read: that comes between two numbers. */
static void adds_up(const struct reading *reading)
{
	const int64_t apart = reading->watched - reading->ran - reading->idle - reading->taken,
		      most = reading->watched / (vm_slowness() > 1 ? 50 : 1000) + 20000;

	if (!vm_ok(apart <= most && apart >= -most, "all time has one owner"))
		vm_note("%lld ns of %lld have none", (long long)apart, (long long)reading->watched);
}

/* ---- a rank, and what disturbs it ------------------------------------------------------- */

static struct rank {
	pid_t pid;
	int orders, answers;
} rank;

static void serve(int orders, int answers)
{
	uint64_t ns, began;

	while (read(orders, &ns, sizeof(ns)) == sizeof(ns)) {
		for (began = vm_now(); vm_now() - began < ns;)
			;
		if (write(answers, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static void rank_begin(void)
{
	int orders[2], answers[2];

	if (pipe(orders) || pipe(answers)) {
		vm_ok(false, "pipes");
		return;
	}
	rank.pid = fork();
	if (!rank.pid) {
		vm_run_on(CPU);
		close(orders[1]);
		serve(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	rank.orders = orders[1];
	rank.answers = answers[0];
}

/* It wants its CPU for so long from now on. */
static void rank_works(uint64_t ns)
{
	if (write(rank.orders, &ns, sizeof(ns)) != sizeof(ns))
		vm_ok(false, "the rank works");
}

/* Then it sleeps. */
static void rank_has_worked(void)
{
	uint64_t ns;

	if (read(rank.answers, &ns, sizeof(ns)) != sizeof(ns))
		vm_ok(false, "the rank worked");
	vm_sleep_ms(2);
}

static void rank_work(uint64_t ns)
{
	rank_works(ns);
	rank_has_worked();
}

static void rank_end(void)
{
	close(rank.orders);
	close(rank.answers);
	waitpid(rank.pid, NULL, 0);
}

static void disturb(const char *how, uint64_t ns)
{
	char path[64], text[24];

	snprintf(path, sizeof(path), "/sys/module/disturb/parameters/%s", how);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)ns);
	if (vm_write(path, text))
		vm_ok(false, "%s by order", how);
}

static void some_nmis(void)
{
	for (int i = 0; i < NMIS; i++)
		disturb("nmi", NMI_NS);
}

/* ---- NMIs ------------------------------------------------------------------------------- */

static void nmis(struct netlink *netlink)
{
	struct reading before, grown;

	rank_begin();
	vm_is(watches_start(netlink, rank.pid, 0), 0, "a rank's CPU is watched");
	rank_work(5 * MS);
	before = read_watch(netlink);
	some_nmis();
	grown = read_since(netlink, &before);
	vm_is(grown.nmi, 0, "NMIs take nothing from a rank that sleeps");
	vm_is(grown.nmis, 0, "... and are not counted");
	vm_ok(grown.idle >= NMIS * NMI_NS, "... the CPU was idle for it");
	adds_up(&grown);
	before = read_watch(netlink);
	rank_works(30ull * NMIS * NMI_NS);
	vm_sleep_ms(5);
	some_nmis();
	rank_has_worked();
	grown = read_since(netlink, &before);
	/* One counts as many as its handlers. */
	vm_ok(grown.nmis >= NMIS && grown.nmis % NMIS == 0, "each NMI is counted that stops a rank which runs");
	vm_ok(grown.nmi >= NMIS * NMI_NS && (!exact || grown.nmi < 1.05 * NMIS * NMI_NS), "... with its time");
	vm_ok(grown.ran + grown.taken >= 30ll * NMIS * NMI_NS, "... which the rank did not run");
	adds_up(&grown);
	watches_stop(netlink);
	rank_end();
}

/* Whatever runs: it is taken from an idle CPU, too. */
static void nmis_of_a_cpu(struct netlink *netlink)
{
	struct reading before, grown;

	vm_is(watches_start(netlink, 0, 0), 0, "a CPU is watched, and no task");
	before = read_watch(netlink);
	some_nmis();
	grown = read_since(netlink, &before);
	vm_ok(grown.nmis >= NMIS && grown.nmis % NMIS == 0, "each NMI is counted");
	vm_ok(grown.nmi >= NMIS * NMI_NS, "... with its time");
	adds_up(&grown);
	watches_stop(netlink);
}

/* ---- stolen time ------------------------------------------------------------------------ */

/* The rank runs for 3 ms, and sleeps when the kernel finds out that so much was stolen. What is taken off later? */
static int64_t stolen_before_a_sleep(struct netlink *netlink, uint64_t stolen)
{
	struct reading before, grown;

	before = read_watch(netlink);
	rank_work(3 * MS);
	disturb("steal", stolen);
	vm_sleep_ms(20);
	rank_work(60 * MS);
	grown = read_since(netlink, &before);
	adds_up(&grown);
	return grown.steal;
}

/* The daemon has the CPU while the rank sleeps: what is stolen then is not the rank's. */
static void stolen_from_others(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	struct reading before = read_watch(netlink), grown;

	known_work(&daemon, 2);
	disturb("steal", 5 * MS);
	known_work(&daemon, 1);
	rank_work(40 * MS);
	grown = read_since(netlink, &before);
	vm_ok(grown.steal < MS / 2, "what is stolen while others run and the rank sleeps is not the rank's");
	vm_ok(grown.daemon < MS / 2, "... and others take nothing from it then");
	adds_up(&grown);
	known_end(&daemon);
}

static void steal(struct netlink *netlink)
{
	struct reading before, grown;
	int64_t taken;

	rank_begin();
	vm_is(watches_start(netlink, rank.pid, 0), 0, "a rank's CPU is watched");
	rank_work(40 * MS);
	before = read_watch(netlink);
	rank_works(60 * MS);
	vm_sleep_ms(10);
	disturb("steal", 5 * MS);
	rank_has_worked();
	grown = read_since(netlink, &before);
	vm_ok(grown.steal >= (exact ? 4.9 : 2) * MS && grown.steal <= 5 * MS,
	      "what is stolen while the rank runs is taken from it");
	vm_ok(!exact || grown.ran < 56 * MS, "... and off what it ran");
	adds_up(&grown);
	taken = stolen_before_a_sleep(netlink, 2 * MS);
	/* Elsewhere the emulator's interrupts are a good part of the time for which the CPU does not sleep. */
	vm_ok(taken > (exact ? 1.9 : 0.2) * MS && taken <= 2 * MS, "also when it is found out while the rank sleeps");
	disturb("steal", 1000);		/* all before is over */
	taken = stolen_before_a_sleep(netlink, 500 * MS);
	vm_ok(taken > 2 * MS && (!exact || taken < 5 * MS), "but never more than the rank wanted");
	stolen_from_others(netlink);
	watches_stop(netlink);
	rank_end();
}

static void steal_of_a_cpu(struct netlink *netlink)
{
	struct reading before, grown;

	vm_is(watches_start(netlink, 0, 0), 0, "a CPU is watched, and no task");
	vm_sleep_ms(20);
	before = read_watch(netlink);
	disturb("steal", 3 * MS);
	vm_sleep_ms(100);
	grown = read_since(netlink, &before);
	vm_is(grown.steal, 3 * MS, "all that is stolen is the hypervisor's");
	adds_up(&grown);
	watches_stop(netlink);
}

static const struct ask_part parts[] = {
	{ "nmis", nmis },
	{ "nmis-of-a-cpu", nmis_of_a_cpu },
	{ "steal", steal },
	{ "steal-of-a-cpu", steal_of_a_cpu },
};

int main(int argc, char **argv)
{
	int error;

	if (access("/disturb.ko", R_OK)) {
		vm_skip("what NMIs and the hypervisor take", "no module for them on this processor");
		return vm_end();
	}
	if (!vm_is(vm_insert("/disturb.ko", ""), 0, "what disturbs is there"))
		return vm_end();
	error = ask_parts(argc, argv, parts, sizeof(parts) / sizeof(*parts), &exact);
	vm_is(syscall(SYS_delete_module, "disturb", O_NONBLOCK) ? -errno : 0, 0, "it goes");
	return vm_end() || error;
}
