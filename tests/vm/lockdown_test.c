// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A kernel that is locked down for confidentiality, where perf shows nothing of the kernel:
 * nor does attribution, while noise and pinning work. There is no way back: it is the last
 * test of its machine, which loads no module any more.
 */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "node/netlink.h"
#include "ask.h"
#include "vm.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

int main(void)
{
	struct netlink *netlink;

	mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	vm_is(netlink_open(&netlink), 0, "a socket");
	vm_is(ask_watch(netlink), 0, "attribution starts");
	if (vm_write(LOCKDOWN, "confidentiality")) {
		vm_skip("attribution where the kernel is locked down", "this kernel has no lockdown");
	} else {
		vm_is(ask_dump(netlink, COLL_CMD_WATCH_GET), -EPERM, "locked down, it shows nothing");
		vm_is(ask_dump(netlink, COLL_CMD_WATCH_LOG), -EPERM, "nor its log");
		netlink_close(netlink);
		vm_is(netlink_open(&netlink), 0, "another socket");
		vm_is(ask_watch(netlink), -EPERM, "and it does not start");
		vm_says(netlink_reason(netlink), "locked down", "and says why");
		vm_is(ask_noise(netlink, 100000), 0, "noise starts");
		vm_is(ask_dump(netlink, COLL_CMD_NOISE_GET), 0, "and is shown");
		vm_is(ask_dump(netlink, COLL_CMD_PIN_GET), 0, "as are pinned tasks");
	}
	netlink_close(netlink);
	return vm_end();
}
