// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What pinning costs the machine and whom it makes wait: migrations between cgroups, closed
 * sockets, owners that follow each other, and a kernel that exports no task_work_add().
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/netlink.h>
#include <unistd.h>

#include "node/netlink.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/"
#define MS 1000000ull

enum {
	HOUSE = 1, BOTH = 3,
	SLEEPERS = 500, RULES = 200, MIGRATIONS = 400,
	CLOSES = 300, SLOW_MS = 15,
};

/* ---- rules --------------------------------------------------------------------------------- */

static void put_rule(struct nl_msg *message, const char *comm, uint64_t cgroup)
{
	struct nlattr *nest = nla_nest_start(message, COLL_PIN_A_RULE);

	if (comm)
		nla_put_string(message, COLL_PIN_A_COMM, comm);
	if (cgroup)
		nla_put_u64(message, COLL_PIN_A_CGROUP, cgroup);
	nla_nest_end(message, nest);
}

/* `more` rules that match nothing, then one by name and one by cgroup, where they are not 0. */
static int set(struct netlink *netlink, const char *comm, uint64_t cgroup, int more,
	       uint32_t linger)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_SET, 0);
	int i;

	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING, "0");
	if (linger)
		nla_put_u32(message, COLL_PIN_A_LINGER, linger);
	for (i = 0; i < more; i++)
		put_rule(message, "no-task-has-this-name-*", 0);
	if (comm)
		put_rule(message, comm, 0);
	if (cgroup)
		put_rule(message, NULL, cgroup);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int clear(struct netlink *netlink)
{
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_CLEAR, 0), NULL, NULL);
}

static int where(pid_t pid)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (sched_getaffinity(pid, sizeof(cpus), &cpus))
		return -errno;
	return (CPU_ISSET(0, &cpus) ? 1 : 0) | (CPU_ISSET(1, &cpus) ? 2 : 0);
}

static pid_t sleeper(const char *name)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, name);
		for (;;)
			pause();
	}
	return pid;
}

static void kill_all(const pid_t *pid, int count)
{
	for (int i = 0; i < count; i++)
		kill(pid[i], SIGKILL);
	for (int i = 0; i < count; i++)
		waitpid(pid[i], NULL, 0);
}

/* ---- migrations ------------------------------------------------------------------------------ */

static pid_t thread_named(const char *name)
{
	pid_t thread = 0;

	vm_threads(name, &thread, 1);
	return thread;
}

/* ns of CPU time. */
static uint64_t time_of(pid_t pid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	vm_read(path, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static uint64_t cgroup_make(const char *path)
{
	struct stat status = { 0 };

	mkdir(path, 0755);
	stat(path, &status);
	return status.st_ino;
}

/* What the pin thread computes for a migration, in ns. */
static uint64_t cost_of_migrations(void)
{
	const pid_t thread = thread_named("coll-pin");
	uint64_t before, begin = vm_now(), idle;
	pid_t mover = sleeper("mover");
	char text[16];

	snprintf(text, sizeof(text), "%d", mover);
	before = time_of(thread);	/* what it computes once a second does not count */
	vm_sleep_ms(4000);
	idle = (time_of(thread) - before) * 1000 / ((vm_now() - begin) / MS);
	before = time_of(thread);
	begin = vm_now();
	for (int i = 0; i < MIGRATIONS; i++)
		vm_write(i % 2 ? CGROUP "a/cgroup.procs" : CGROUP "b/cgroup.procs", text);
	before = time_of(thread) - before;
	idle = idle * ((vm_now() - begin) / MS) / 1000;
	kill_all(&mover, 1);
	return thread ? (before > idle ? before - idle : 0) / MIGRATIONS : 0;
}

static void migrations(struct netlink *netlink)
{
	static pid_t pid[SLEEPERS];
	const uint64_t id = cgroup_make(CGROUP "pinned");
	uint64_t few, many;
	pid_t daemon = sleeper("daemon");
	char text[16];

	cgroup_make(CGROUP "a");
	cgroup_make(CGROUP "b");
	vm_is(set(netlink, NULL, id, RULES, 0), 0, "a rule for a cgroup, behind 200 others");
	few = cost_of_migrations();
	for (int i = 0; i < SLEEPERS; i++)
		pid[i] = sleeper("sleeper");
	many = cost_of_migrations();
	vm_note("a migration costs the thread %.0f us, with 500 processes more %.0f us", few / 1e3,
		many / 1e3);
	vm_ok(many < 3 * few + 500000, "a migration costs no look at all tasks");
	kill_all(pid, SLEEPERS);
	snprintf(text, sizeof(text), "%d", daemon);
	vm_write(CGROUP "pinned/cgroup.procs", text);
	vm_ok(VM_COMES(where(daemon) == HOUSE), "who comes into the cgroup is pinned");
	vm_write(CGROUP "a/cgroup.procs", text);
	vm_ok(VM_COMES(where(daemon) == BOTH), "who leaves it is not");
	kill_all(&daemon, 1);
	clear(netlink);
	vm_ok(VM_COMES(!rmdir(CGROUP "pinned") || errno == ENOENT), "the cgroup goes");
	rmdir(CGROUP "a");
	rmdir(CGROUP "b");
}

/* ---- sockets of others ----------------------------------------------------------------------- */

/* How many of many closes of a socket that owns nothing took long. */
static int slow_closes(void)
{
	int slow = 0;

	for (int i = 0; i < CLOSES; i++) {
		struct sockaddr_nl address = { .nl_family = AF_NETLINK };
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
		uint64_t begin;

		bind(fd, (struct sockaddr *)&address, sizeof(address));
		begin = vm_now();
		close(fd);
		slow += vm_now() - begin > SLOW_MS * MS;
		vm_sleep_ms(1);
	}
	return slow;
}

/* To give tasks back takes 20 ms, with a mutex held. */
static void closes(struct netlink *netlink)
{
	pid_t daemon = sleeper("daemon-x"), forth;
	int slow;

	fflush(stdout);
	forth = fork();
	if (!forth) {
		struct netlink *mine;

		if (netlink_open(&mine))
			_exit(1);
		for (;;) {
			set(mine, "daemon-*", 0, 0, 0);
			clear(mine);
		}
	}
	vm_sleep_ms(100);
	slow = slow_closes();
	kill_all(&forth, 1);
	kill_all(&daemon, 1);
	vm_note("%d of %d closes took more than %d ms", slow, CLOSES, SLOW_MS);
	vm_ok(slow < CLOSES / 10, "sockets that own nothing are closed at once");
	clear(netlink);
}

/* ---- owners ------------------------------------------------------------------------------------ */

/* Sets rules and dies. */
static void owner_comes_and_goes(uint32_t linger)
{
	pid_t owner;

	fflush(stdout);
	owner = fork();
	if (!owner) {
		struct netlink *mine;

		_exit(netlink_open(&mine) || set(mine, "daemon-*", 0, 0, linger));
	}
	waitpid(owner, NULL, 0);
}

static void linger_of_another(struct netlink *netlink)
{
	pid_t daemon = sleeper("daemon-x");

	vm_sleep_ms(50);
	owner_comes_and_goes(1000);
	owner_comes_and_goes(UINT32_MAX);
	vm_is(where(daemon), HOUSE, "an owner whose rules linger for 1 s, one until cleared");
	vm_sleep_ms(2500);
	vm_is(where(daemon), HOUSE, "the rules of the second outlive the time of the first");
	vm_is(clear(netlink), 0, "rules are cleared");
	vm_is(where(daemon), BOTH, "and given back");
	kill_all(&daemon, 1);
}

/* ---- without task_work_add() --------------------------------------------------------------------- */

static struct netlink *without_task_work(struct netlink *netlink)
{
	pid_t child[50];
	int i, moved = 0;

	netlink_close(netlink);
	vm_is(vm_unload(), 0, "coll.ko unloads");
	vm_is(vm_load("pin_at_once=0"), 0, "loaded as if task_work_add() was not exported");
	if (netlink_open(&netlink))
		return NULL;
	vm_is(set(netlink, "daemon-*", 0, 0, 0), 0, "rules");
	for (i = 0; i < 50; i++)
		child[i] = sleeper("daemon-y");
	for (i = 0; i < 50; i++)
		moved += VM_COMES(where(child[i]) == HOUSE);
	vm_is(moved, 50, "the thread moves all that match");
	clear(netlink);
	for (i = moved = 0; i < 50; i++)
		moved += where(child[i]) == BOTH;
	vm_is(moved, 50, "and gives back what they had");
	kill_all(child, 50);
	netlink_close(netlink);
	vm_is(vm_unload(), 0, "coll.ko unloads");
	vm_is(vm_load(""), 0, "loaded as usual");
	return netlink_open(&netlink) ? NULL : netlink;
}

int main(void)
{
	struct netlink *netlink;

	if (!vm_is(netlink_open(&netlink), 0, "a socket"))
		return vm_end();
	migrations(netlink);
	closes(netlink);
	linger_of_another(netlink);
	netlink = without_task_work(netlink);
	netlink_close(netlink);
	return vm_end();
}
