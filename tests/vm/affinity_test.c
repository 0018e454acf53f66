// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * CPUs of the module's threads: those that the process asked for or may use itself, and those
 * that rules of pinning name. They stay, whatever wakes the threads, and when a cpuset isolates
 * a CPU. With a CPU that is isolated from the start (tests/vm/all KERNEL-isolated) no thread
 * is there uninvited, and noise and attribution work there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "offload.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/"

enum { RUNS = 20 };		/* they wake the thread often enough */

/* ---- threads ----------------------------------------------------------------------- */

/* Cpus_allowed_list of a task. */
static void allowed(const char *task, char *list, size_t bytes)
{
	char path[300], status[4096] = "", *at;

	snprintf(path, sizeof(path), "/proc/%s/status", task);
	vm_read(path, status, sizeof(status));
	at = strstr(status, "Cpus_allowed_list:\t");
	snprintf(list, bytes, "%s", at ? at + strlen("Cpus_allowed_list:\t") : "");
	list[strcspn(list, "\n")] = '\0';
}

/* Of the thread whose name begins so; "" if there is none. */
static const char *allowed_thread(const char *begins)
{
	static char list[200];
	char number[16];
	pid_t thread;

	list[0] = '\0';
	if (vm_threads(begins, &thread, 1)) {
		snprintf(number, sizeof(number), "%d", thread);
		allowed(number, list, sizeof(list));
	}
	return list;
}

static void is_on(const char *thread, const char *cpus, const char *what)
{
	const char *got = allowed_thread(thread);

	if (!vm_ok(!strcmp(got, cpus), "%s: on %s", what, cpus))
		vm_note("on '%s'", got);
}

/* ---- the device's thread --------------------------------------------------------------- */

static void close_quietly(struct offload *o)
{
	munmap(o->shared, 4096);
	close(o->fd);
}

static void device_on(uint32_t cpu, const char *cpus, const char *what)
{
	static const int alone[OFFLOAD_RANKS_MAX] = { -1 };
	struct offload o;

	vm_is(offload_open_on(&o, 0, 1, alone, cpu), 0, what);
	is_on("coll/", cpus, "its thread");
	vm_is(offload_copies(&o, RUNS, 2), 0, "runs");
	is_on("coll/", cpus, "and after them");
	close_quietly(&o);
}

static bool is_6_1(void)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, "6.1.", 4);
}

/* ---- a cpuset isolates a CPU meanwhile -------------------------------------------------- */

static void isolated_meanwhile(void)
{
	static const int alone[OFFLOAD_RANKS_MAX] = { -1 };
	struct offload o;
	char state[100] = "";

	vm_is(offload_open_on(&o, 0, 1, alone, 0), 0, "a thread on CPU 0");
	vm_write(CGROUP "cgroup.subtree_control", "+cpuset");
	mkdir(CGROUP "alone", 0755);
	if (vm_write(CGROUP "alone/cpuset.cpus", "1") ||
	    vm_write(CGROUP "alone/cpuset.cpus.partition", "isolated")) {
		vm_skip("a cpuset isolates CPU 1", "this kernel has no isolated partitions");
	} else {
		vm_read(CGROUP "alone/cpuset.cpus.partition", state, sizeof(state));
		vm_says(state, "isolated", "a cpuset isolates CPU 1");
		vm_is(offload_copies(&o, RUNS, 2), 0, "runs");
		is_on("coll/", "0", "the thread stays");
		is_on("coll-pin", "0", "and that of pinning");
		vm_write(CGROUP "alone/cpuset.cpus.partition", "member");
		if (is_6_1())
			vm_skip("a thread stays when the cpuset is gone",
				"6.1's cpusets set the CPUs of all threads in the root cgroup");
		else
			is_on("coll/", "0", "and when the cpuset is gone");
		vm_ok(VM_COMES(!strcmp(allowed_thread("coll-pin"), "0")), "both");
	}
	vm_ok(VM_COMES(!rmdir(CGROUP "alone") || errno == ENOENT), "the cpuset goes");
	vm_write(CGROUP "cgroup.subtree_control", "-cpuset");
	close_quietly(&o);
}

/* ---- a process in a cpuset ---------------------------------------------------------------- */

static void in_a_cpuset(void)
{
	static const int alone[OFFLOAD_RANKS_MAX] = { -1 };
	struct offload o;
	bool moved;

	vm_write(CGROUP "cgroup.subtree_control", "+cpuset");
	mkdir(CGROUP "job", 0755);
	if (vm_write(CGROUP "job/cpuset.cpus", "1")) {
		vm_skip("a process in a cpuset", "this kernel has no cpusets");
		rmdir(CGROUP "job");
		return;
	}
	vm_is(vm_write(CGROUP "job/cgroup.procs", "0"), 0, "a process in a cpuset");
	vm_is(offload_open_on(&o, 0, 1, alone, COLL_NONE), 0, "a thread wherever it may be");
	is_on("coll/", "1", "its thread");
	moved = !vm_write(CGROUP "job/cpuset.cpus", "0");
	vm_ok(moved && VM_COMES(!strcmp(allowed_thread("coll/"), "0")), "it follows its cpuset");
	vm_is(offload_copies(&o, RUNS, 2), 0, "runs");
	close_quietly(&o);
	vm_is(vm_write(CGROUP "cgroup.procs", "0"), 0, "the process leaves");
	vm_ok(VM_COMES(!rmdir(CGROUP "job") || errno == ENOENT), "the cpuset goes");
	vm_write(CGROUP "cgroup.subtree_control", "-cpuset");
}

/* ---- pinning ----------------------------------------------------------------------------- */

static int pin_everything(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_SET, 0);
	struct nlattr *nest;

	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING, "0");
	nest = nla_nest_start(message, COLL_PIN_A_RULE);
	nla_put_string(message, COLL_PIN_A_COMM, "nobody-*");
	nla_nest_end(message, nest);
	return netlink_ask(netlink, message, NULL, NULL);
}

/* ---- a CPU that is isolated from the start ------------------------------------------------ */

static int add_injected(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	if (attributes[COLL_NOISE_A_INJECTED])
		*(uint64_t *)data += nla_get_u64(attributes[COLL_NOISE_A_INJECTED]);
	return 0;
}

static int add_watched(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	if (attributes[COLL_WATCH_A_WATCHED])
		*(uint64_t *)data = nla_get_u64(attributes[COLL_WATCH_A_WATCHED]);
	return 0;
}

static int noise_on(struct netlink *netlink, const char *cpus)
{
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_PERIODIC,
		.period = 10000000, .duration = 100000,
	};
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, cpus);
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_FIFO);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	return netlink_ask(netlink, message, NULL, NULL);
}

static void on_the_isolated(const char *cpus)
{
	struct netlink *netlink;
	struct nl_msg *message;
	uint64_t injected = 0, watched = 0;

	vm_is(netlink_open(&netlink), 0, "a socket");
	message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
	nla_put_string(message, COLL_WATCH_A_CPUS, cpus);
	vm_is(netlink_ask(netlink, message, NULL, NULL), 0, "the isolated CPU is watched");
	vm_is(noise_on(netlink, cpus), 0, "noise there");
	vm_sleep_ms(1000);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP),
		    add_injected, &injected);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP),
		    add_watched, &watched);
	vm_note("%llu events, %llu ns", (unsigned long long)injected, (unsigned long long)watched);
	vm_ok(injected > 50, "its events come");
	vm_ok(watched > 900000000, "all its time is counted");
	netlink_close(netlink);
}

int main(void)
{
	struct netlink *netlink;
	char mine[200], isolated[100] = "";

	vm_read("/sys/devices/system/cpu/isolated", isolated, sizeof(isolated));
	isolated[strcspn(isolated, "\n")] = '\0';
	allowed("self", mine, sizeof(mine));
	if (isolated[0])
		vm_ok(!strstr(mine, isolated), "the process is not on the isolated CPU %s", isolated);
	device_on(COLL_NONE, mine, "a thread wherever its process may be");
	device_on(1, "1", "a thread on CPU 1");
	in_a_cpuset();
	vm_run_on(0);
	device_on(COLL_NONE, "0", "a thread of a process that is bound to CPU 0");
	vm_is(netlink_open(&netlink), 0, "a socket");
	vm_is(pin_everything(netlink), 0, "rules with CPU 0 for all else");
	is_on("coll-pin", "0", "the thread of pinning");
	vm_sleep_ms(1200);		/* it looks at all tasks once a second */
	is_on("coll-pin", "0", "and later");
	isolated_meanwhile();
	netlink_close(netlink);
	if (isolated[0])
		on_the_isolated(isolated);
	return vm_end();
}
