// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Attribution that finds no memory for its first CPU: a process in a cgroup of 8 MB asks
 * for a log that needs more. Nothing of it stays, the next start works.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/netlink.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/small"

enum { LOG = 1 << 20, NO_CGROUP = 9, STARTED = 1 };

static int start(struct netlink *netlink, uint32_t log)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "1");
	if (log)
		nla_put_u32(message, COLL_WATCH_A_LOG, log);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int starved(void)
{
	struct netlink *netlink;

	if (vm_write(CGROUP "/cgroup.procs", "0") || netlink_open(&netlink))
		return NO_CGROUP;
	return start(netlink, LOG) == -ENOMEM ? 0 : STARTED;
}

int main(void)
{
	struct netlink *netlink;
	int status;
	pid_t child;

	vm_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	if (vm_write(CGROUP "/memory.max", "8M")) {
		vm_skip("attribution without memory", "this kernel has no memory cgroups");
		return vm_end();
	}
	child = fork();
	if (!child)
		_exit(starved());
	waitpid(child, &status, 0);
	vm_is(status, 0, "the log is refused for lack of memory");
	vm_is(netlink_open(&netlink), 0, "a second program");
	vm_is(start(netlink, 0), 0, "starts attribution after the failure");
	netlink_close(netlink);
	vm_is(rmdir(CGROUP), 0, "the cgroup goes");
	return vm_end();
}
