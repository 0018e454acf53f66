// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	cycles_test [CYCLES [load|watch|noise]...]
 *
 * Over and over: coll.ko loaded and unloaded, at every tenth time amid noise and a
 * watch; noise and a watch started and ended, by a command and by their owner's
 * going away. As often as fits into some seconds, or that many cycles of each, or of those.
 *
 * Most of a cycle is waiting for grace periods of RCU: those that are counted have
 * them expedited, those that are timed have them as they are.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "vm.h"

enum { SECONDS = 4, AMID = 10, SLACK_KIB = 20000 };

/* ---- what is started ---------------------------------------------------------------- */

static int start_watch(struct netlink *on)
{
	struct nl_msg *message = netlink_message(on, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
	nla_put_u32(message, COLL_WATCH_A_LOG, 100);
	return netlink_ask(on, message, NULL, NULL);
}

static int start_noise(struct netlink *on)
{
	const struct coll_noise_model model = { .period = 1000000, .duration = 10000 };
	static uint8_t context;
	struct nl_msg *message = netlink_message(on, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, context++ % COLL_NOISE_CONTEXTS);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	return netlink_ask(on, message, NULL, NULL);
}

/* ---- cycles -------------------------------------------------------------------------- */

static int load_and_unload(long turn)
{
	struct netlink *netlink = NULL;
	int error = vm_load("");

	if (!error && turn % AMID == 0) {
		error = netlink_open(&netlink);
		if (!error)
			error = start_watch(netlink);
		if (!error)
			error = start_noise(netlink);
	}
	if (!error)
		error = vm_unload();
	netlink_close(netlink);
	return error;
}

/* It ends with a command, or when the socket of its owner closes. */
static int start_and_end(long turn, int (*start)(struct netlink *), enum coll_command stop)
{
	static struct netlink *netlink;
	int error = netlink ? 0 : netlink_open(&netlink);

	if (!error)
		error = start(netlink);
	if (!error && turn % 2)
		return netlink_ask(netlink, netlink_message(netlink, stop, 0), NULL, NULL);
	netlink_close(netlink);
	netlink = NULL;
	return error;
}

static int watch(long turn)
{
	return start_and_end(turn, start_watch, COLL_CMD_WATCH_STOP);
}

static int noise(long turn)
{
	return start_and_end(turn, start_noise, COLL_CMD_NOISE_STOP);
}

/* ---- over and over -------------------------------------------------------------------- */

static void repeat(int (*cycle)(long turn), long cycles, const char *what)
{
	uint64_t begin, end;
	long done = 0, free_before, less;
	int error = 0;

	error = cycle(0);	/* what is kept of the first, is not lost */
	free_before = vm_available_kib();
	begin = vm_now();
	end = begin + SECONDS * 1000000000ull;
	while (!error && (cycles ? done < cycles : vm_now() < end)) {
		error = cycle(done + 1);
		done += !error;
		if (done % 1000 == 0)
			vm_note("%s %ld times", what, done);
	}
	vm_note("%s: %.1f ms each", what, (vm_now() - begin) / 1e6 / (done ? done : 1));
	vm_ok(!error && done > 0, "%s %ld times: %s", what, done, strerror(-error));
	less = free_before - vm_available_kib();
	vm_note("%ld KiB less are free than before", less);
	if (access("/sys/kernel/debug/kmemleak", F_OK))	/* which keeps what was freed, and looks */
		vm_ok(less < done / 4 + SLACK_KIB, "memory comes back");
}

static const struct {
	const char *name, *what;
	int (*cycle)(long turn);
	bool loaded;
} kinds[] = {
	{ "load", "loaded and unloaded", load_and_unload, false },
	{ "watch", "a watch started and ended", watch, true },
	{ "noise", "noise started and ended", noise, true },
};

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc <= 2;
}

int main(int argc, char **argv)
{
	long cycles = argc > 1 ? atol(argv[1]) : 0;

	if (cycles)
		vm_is(vm_write("/sys/kernel/rcu_expedited", "1"), 0, "RCU is in a hurry");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!wanted(kinds[i].name, argc, argv))
			continue;
		if (!kinds[i].loaded)
			vm_is(vm_unload(), 0, "unloaded");
		repeat(kinds[i].cycle, cycles, kinds[i].what);
		if (!kinds[i].loaded)
			vm_is(vm_load(""), 0, "and once more");
	}
	if (cycles)
		vm_is(vm_write("/sys/kernel/rcu_expedited", "0"), 0, "RCU is not any more");
	return vm_end();
}
