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
#include "uapi/coll_noise.h"
#include "vm.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

static int nothing(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)attributes, (void)data;
	return 0;
}

static int dump(struct netlink *netlink, enum coll_command command)
{
	return netlink_ask(netlink, netlink_message(netlink, command, NLM_F_DUMP), nothing, NULL);
}

static int watch(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "1");
	return netlink_ask(netlink, message, NULL, NULL);
}

static int noise(struct netlink *netlink)
{
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_PERIODIC, .period = 10000000, .duration = 100000,
	};
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	return netlink_ask(netlink, message, nothing, NULL);
}

int main(void)
{
	struct netlink *netlink;

	mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	vm_is(netlink_open(&netlink), 0, "a socket");
	vm_is(watch(netlink), 0, "attribution starts");
	if (vm_write(LOCKDOWN, "confidentiality")) {
		vm_skip("attribution where the kernel is locked down", "this kernel has no lockdown");
	} else {
		vm_is(dump(netlink, COLL_CMD_WATCH_GET), -EPERM, "locked down, it shows nothing");
		vm_is(dump(netlink, COLL_CMD_WATCH_LOG), -EPERM, "nor its log");
		netlink_close(netlink);
		vm_is(netlink_open(&netlink), 0, "another socket");
		vm_is(watch(netlink), -EPERM, "and it does not start");
		vm_says(netlink_reason(netlink), "locked down", "and says why");
		vm_is(noise(netlink), 0, "noise starts");
		vm_is(dump(netlink, COLL_CMD_NOISE_GET), 0, "and is shown");
		vm_is(dump(netlink, COLL_CMD_PIN_GET), 0, "as are pinned tasks");
	}
	netlink_close(netlink);
	return vm_end();
}
