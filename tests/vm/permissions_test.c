// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Who may ask what of the module, from which namespace; and that no user loads it. */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_circuit.h"
#include "ask.h"
#include "vm.h"

#define ALL (~0ull)
#define CAP(name) (1ull << CAP_##name)

enum { NO_NAMESPACE = 201, NO_SOCKET = 202, TOO_LARGE = 203 };

/* ---- questions ------------------------------------------------------------------------- */

static int watch_get(struct netlink *netlink)
{
	return ask_dump(netlink, COLL_CMD_WATCH_GET);
}

static int watch_log(struct netlink *netlink)
{
	return ask_dump(netlink, COLL_CMD_WATCH_LOG);
}

static int noise_get(struct netlink *netlink)
{
	return ask_dump(netlink, COLL_CMD_NOISE_GET);
}

static int pin_get(struct netlink *netlink)
{
	return ask_dump(netlink, COLL_CMD_PIN_GET);
}

static int circuit_domain(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_CIRCUIT_DOMAIN, 0);
	const uint32_t address = 0x0000090a;

	nla_put(message, COLL_CIRCUIT_A_ADDRESS, 4, &address);
	nla_put_u8(message, COLL_CIRCUIT_A_PREFIX, 24);
	nla_put_u32(message, COLL_CIRCUIT_A_PORTS, 1);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int listen_to_events(struct netlink *netlink)
{
	return netlink_listen(netlink);
}

/* ---- askers ------------------------------------------------------------------------------ */

static void keep_capabilities(uint64_t which)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = which, .permitted = which },
		{ .effective = which >> 32, .permitted = which >> 32 },
	};

	if (which != ALL)
		syscall(SYS_capset, &header, data);
}

static int in_child(int (*question)(struct netlink *netlink))
{
	struct netlink *netlink;
	int error;

	if (netlink_open(&netlink))
		return NO_SOCKET;
	error = -question(netlink);
	return error < 0 || error > 200 ? TOO_LARGE : error;
}

/* The errno that a process gets which has these capabilities and new namespaces; 0: an answer. */
static int asked_by(uint64_t capabilities, int namespaces, int (*question)(struct netlink *netlink))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (namespaces && unshare(namespaces))
			_exit(NO_NAMESPACE);
		if (namespaces & CLONE_NEWPID) {	/* its children are in there */
			child = fork();
			if (!child)
				_exit(in_child(question));
			waitpid(child, &status, 0);
			_exit(WEXITSTATUS(status));
		}
		keep_capabilities(capabilities);
		_exit(in_child(question));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void may(uint64_t capabilities, int namespaces, int (*question)(struct netlink *netlink),
		int error, const char *what)
{
	vm_is(asked_by(capabilities, namespaces, question), error, what);
}

/* ---- no user loads the module ------------------------------------------------------------ */

static bool module_has(const char *text)
{
	static char module[4 << 20];
	FILE *file = fopen("/coll.ko", "r");
	size_t bytes = file ? fread(module, 1, sizeof(module), file) : 0;

	if (file)
		fclose(file);
	return memmem(module, bytes, text, strlen(text));
}

int main(void)
{
	const uint64_t net = CAP(NET_ADMIN) | CAP(SYS_NICE);

	may(net, 0, ask_watch, EPERM, "attribution needs more than CAP_NET_ADMIN");
	may(net, 0, watch_get, EPERM, "so do its results");
	may(net, 0, watch_log, EPERM, "and its log");
	may(net | 1ull << 38, 0, ask_watch, 0, "CAP_PERFMON it is");
	may(net | CAP(SYS_ADMIN), 0, ask_watch, 0, "or CAP_SYS_ADMIN");
	may(ALL, CLONE_NEWNET, watch_get, EPERM, "results only in the initial network namespace");

	may(0, 0, noise_get, 0, "any user sees the injectors");
	may(ALL, CLONE_NEWNET, noise_get, EPERM, "but not from another network namespace");
	may(0, 0, pin_get, 0, "any user sees pinned tasks");
	may(ALL, CLONE_NEWPID, pin_get, EPERM, "but not from a pid namespace that does not have them");
	may(ALL, CLONE_NEWNET, pin_get, EPERM, "nor from another network namespace");

	may(ALL, CLONE_NEWNET, circuit_domain, 0, "circuits work in each network namespace");
	may(CAP(NET_ADMIN), CLONE_NEWNET, circuit_domain, 0, "for who has CAP_NET_ADMIN");
	may(ALL, CLONE_NEWUSER | CLONE_NEWNET, circuit_domain, EPERM,
	    "but not for root of a user namespace");

	may(0, 0, listen_to_events, EPERM, "no user hears the events");
	may(CAP(NET_ADMIN), 0, listen_to_events, 0, "who has CAP_NET_ADMIN does");
	may(ALL, CLONE_NEWUSER, listen_to_events, EPERM, "not as root of a user namespace");
	may(CAP(NET_ADMIN), CLONE_NEWNET, listen_to_events, 0, "also in another network namespace");

	vm_ok(module_has("license=GPL"), "the module's information can be read");
	vm_ok(!module_has("alias=net-pf-16-proto-16"), "asking for the family does not load it");
	return vm_end();
}
