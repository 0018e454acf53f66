// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The family `coll` itself: it is there, and refuses what no part of it knows. */
#include <errno.h>
#include <linux/genetlink.h>

#include "node/netlink.h"
#include "vm.h"

static void there_and_gone(void)
{
	struct netlink *netlink;

	vm_is(netlink_open(&netlink), 0, "the family is there while coll.ko is");
	vm_is(netlink_listen(netlink), 0, "and its group of events");
	netlink_close(netlink);

	vm_is(vm_unload(), 0, "coll.ko unloads");
	vm_is(netlink_open(&netlink), -ENOENT, "and takes the family with it");
	vm_says(netlink_reason(netlink), "not loaded", "which the client says in words");
	netlink_close(netlink);
	vm_is(vm_load(""), 0, "coll.ko loads again");
}

static void unknown_command(void)
{
	struct netlink *netlink;

	if (vm_is(netlink_open(&netlink), 0, "a socket") == false)
		return;
	vm_is(netlink_ask(netlink, netlink_message(netlink, COLL_CMD_EVENT, 0), NULL, NULL),
	      -EOPNOTSUPP, "an event is no command");
	vm_is(netlink_ask(netlink, netlink_message(netlink, 200, 0), NULL, NULL), -EOPNOTSUPP,
	      "command 200 is none");
	vm_is(netlink_ask(netlink, netlink_message(netlink, 0, NLM_F_DUMP), NULL, NULL), -EOPNOTSUPP,
	      "nor is command 0, as a dump");
	netlink_close(netlink);
}

int main(void)
{
	there_and_gone();
	unknown_command();
	return vm_end();
}
