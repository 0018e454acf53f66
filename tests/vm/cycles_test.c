// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Over and over: coll.ko loaded and unloaded, a watch started and stopped. As
 * often as fits into the seconds given, or with a number of cycles as second
 * argument, that often.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/netlink.h"
#include "vm.h"

/* How many went well before one did not, time was up, or it was enough. */
static long repeat(int (*cycle)(void), long cycles, double seconds, int *error)
{
	uint64_t end = vm_now() + seconds * 1e9;
	long done = 0;

	*error = 0;
	while (done < cycles && (cycles != LONG_MAX || vm_now() < end) && !*error) {
		*error = cycle();
		done += !*error;
	}
	return done;
}

static int load_and_unload(void)
{
	int error = vm_load("");

	return error ? error : vm_unload();
}

static struct netlink *netlink;

static int start_and_stop(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
	int error;

	nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
	nla_put_u32(message, COLL_WATCH_A_LOG, 100);
	error = netlink_ask(netlink, message, NULL, NULL);
	if (error)
		return error;
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_STOP, 0), NULL, NULL);
}

/* Its end is its socket's. */
static int start_and_close(void)
{
	struct nl_msg *message;
	int error = netlink_open(&netlink);

	if (!error) {
		message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
		nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
		error = netlink_ask(netlink, message, NULL, NULL);
	}
	netlink_close(netlink);
	return error;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	long cycles = argc > 2 ? atol(argv[2]) : LONG_MAX, done;
	int error;

	vm_unload();
	done = repeat(load_and_unload, cycles, seconds, &error);
	vm_ok(!error && done > 0, "loaded and unloaded %ld times: %s", done, strerror(-error));
	vm_is(vm_load(""), 0, "and once more");

	if (!vm_ok(!netlink_open(&netlink), "the family is there"))
		return vm_end();
	done = repeat(start_and_stop, cycles, seconds, &error);
	vm_ok(!error && done > 0, "a watch started and stopped %ld times: %s", done,
	      strerror(-error));
	netlink_close(netlink);
	done = repeat(start_and_close, cycles, seconds, &error);
	vm_ok(!error && done > 0, "a watch started and its owner gone %ld times: %s", done,
	      strerror(-error));
	return vm_end();
}
