// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The traffic of this node as a client: coll.ko holds what is sent in the dark and orders
 * circuits by events; each order up becomes a want here, and what becomes of that is the
 * kernel's answer. Closing the socket ends the domain, and what is held goes its way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/netlink.h"
#include "circuit.h"
#include "colld.h"

enum { ORDERS_MAX = 256, AGE_MAX_MS = 60000 };

/* By the kernel's number of the circuit. */
struct kernel_order {
	u32 serial;
	u32 lease;		/* COLL_CIRCUIT_NONE */
};

struct circuit_kernel {
	struct netlink *owner, *events;
	u32 holder;
	struct kernel_order order[ORDERS_MAX];
};

static void circuit_kernel_answer(struct circuit_kernel *kernel, u32 id, u8 state, int error)
{
	struct nl_msg *message = netlink_message(kernel->owner, COLL_CMD_CIRCUIT_SET, 0);

	if (!message)
		return;
	nla_put_u32(message, COLL_CIRCUIT_A_ID, id);
	nla_put_u32(message, COLL_CIRCUIT_A_SERIAL, kernel->order[id].serial);
	nla_put_u8(message, COLL_CIRCUIT_A_STATE, state);
	if (error)
		nla_put_u32(message, COLL_CIRCUIT_A_ERROR, error);
	if (netlink_ask(kernel->owner, message, NULL, NULL))
		colld_say(4, "the module: %s", netlink_reason(kernel->owner));
}

/* ---- orders -------------------------------------------------------------- */

static u32 node_at(const struct colld_circuits *circuits, struct nlattr *address)
{
	u32 i;

	for (i = 0; address && i < circuits->setup.nodes; i++)
		if (circuits->setup.node[i].address_bytes == nla_len(address) &&
		    !memcmp(circuits->setup.node[i].address, nla_data(address), nla_len(address)))
			return i;
	return COLL_CIRCUIT_NONE;
}

static void give_up(struct colld_circuits *circuits, struct kernel_order *order)
{
	if (order->lease == COLL_CIRCUIT_NONE)
		return;
	circuits->is_kernels[order->lease] = false;
	coll_circuit_release(&circuits->c, switch_now(), order->lease);
	order->lease = COLL_CIRCUIT_NONE;
}

static void circuit_kernel_up(struct colld_circuits *circuits, u32 id, u32 peer)
{
	struct circuit_kernel *kernel = circuits->kernel;
	struct kernel_order *order = &kernel->order[id];
	int error;

	give_up(circuits, order);
	error = peer == COLL_CIRCUIT_NONE
			? -EHOSTUNREACH
			: coll_circuit_request(&circuits->c, switch_now(), kernel->holder,
					       circuits->setup.kernel, peer, COLL_CIRCUIT_ONE_SIDED,
					       0, switch_now() + circuits->setup.policy.timeout, id,
					       &order->lease);
	if (error) {
		order->lease = COLL_CIRCUIT_NONE;
		circuit_kernel_answer(kernel, id, COLL_CIRCUIT_FAILED, -error);
		return;
	}
	circuits->is_kernels[order->lease] = true;
	circuit_kernel_answer(kernel, id, COLL_CIRCUIT_SWITCHING, 0);
}

static int take_event(enum coll_command command, struct nlattr **a, void *data)
{
	struct colld_circuits *circuits = data;
	struct circuit_kernel *kernel = circuits->kernel;
	u32 id;

	if (command != COLL_CMD_EVENT || !a[COLL_EVENT_A_KIND] || !a[COLL_EVENT_A_ID] ||
	    !a[COLL_EVENT_A_SERIAL])
		return 0;
	id = nla_get_u32(a[COLL_EVENT_A_ID]);
	if (id >= ORDERS_MAX)
		return 0;
	kernel->order[id].serial = nla_get_u32(a[COLL_EVENT_A_SERIAL]);
	if (nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_CIRCUIT_UP) {
		circuit_kernel_up(circuits, id, node_at(circuits, a[COLL_EVENT_A_ADDRESS]));
	} else if (nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_CIRCUIT_DOWN) {
		give_up(circuits, &kernel->order[id]);
		circuit_kernel_answer(kernel, id, COLL_CIRCUIT_DOWN, 0);
	}
	return 0;
}

void circuit_kernel_read(struct colld_circuits *circuits)
{
	netlink_events(circuits->kernel->events, take_event, circuits);
}

void circuit_kernel_tell(struct colld_circuits *circuits,
			 const struct coll_circuit_notification *told)
{
	struct circuit_kernel *kernel = circuits->kernel;
	const u32 id = told->cookie;

	switch (told->kind) {
	case COLL_CIRCUIT_NOTIFY_UP:
		circuit_kernel_answer(kernel, id, COLL_CIRCUIT_UP, 0);
		break;
	case COLL_CIRCUIT_NOTIFY_DOWN:	/* it is asked for anew when the kernel orders so */
		circuit_kernel_answer(kernel, id, COLL_CIRCUIT_DOWN, 0);
		break;
	case COLL_CIRCUIT_NOTIFY_ENDED:
		kernel->order[id].lease = COLL_CIRCUIT_NONE;
		circuit_kernel_answer(kernel, id, COLL_CIRCUIT_FAILED, -told->error);
		break;
	default:
		break;
	}
}

/* ---- open, close --------------------------------------------------------- */

static int begin_domain(struct colld_circuits *circuits)
{
	const struct circuit_setup *setup = &circuits->setup;
	const struct circuit_node *node = &setup->node[setup->kernel];
	struct circuit_kernel *kernel = circuits->kernel;
	struct nl_msg *message = netlink_message(kernel->owner, COLL_CMD_CIRCUIT_DOMAIN, 0);
	/* Its turn may take a lease, and the switch its time: it is held until then. */
	const u64 age =
		(setup->policy.lease + setup->policy.grace + setup->policy.timeout) / 1000000;

	if (!message)
		return -ENOMEM;
	nla_put_u32(message, COLL_CIRCUIT_A_AGE, age < AGE_MAX_MS ? age : AGE_MAX_MS);
	nla_put_u32(message, COLL_CIRCUIT_A_GRACE, setup->policy.grace / 1000000);
	nla_put(message, COLL_CIRCUIT_A_ADDRESS, node->address_bytes, node->address);
	nla_put_u8(message, COLL_CIRCUIT_A_PREFIX, setup->kernel_prefix);
	nla_put_u32(message, COLL_CIRCUIT_A_PORTS, node->ports);
	nla_put_u32(message, COLL_CIRCUIT_A_KEEP, setup->policy.keep / 1000000);
	nla_put_u32(message, COLL_CIRCUIT_A_LEASE, setup->policy.lease / 1000000);
	/* The switch has its own patience; the kernel has more, and waits for both. */
	nla_put_u32(message, COLL_CIRCUIT_A_TIMEOUT, 2 * setup->policy.timeout / 1000000 + 1);
	return netlink_ask(kernel->owner, message, NULL, NULL);
}

int circuit_kernel_open(struct colld_circuits *circuits)
{
	struct circuit_kernel *kernel = calloc(1, sizeof(*kernel));
	struct netlink *said;
	int error, i;

	if (!kernel)
		return -ENOMEM;
	circuits->kernel = kernel;
	for (i = 0; i < ORDERS_MAX; i++)
		kernel->order[i].lease = COLL_CIRCUIT_NONE;
	kernel->holder = coll_circuit_add_holder(&circuits->c, 0);
	snprintf(circuits->job[kernel->holder].name, COLL_CIRCUIT_NAME, "traffic");
	circuits->job[kernel->holder].clients = 1;
	error = netlink_open(&kernel->owner);
	said = kernel->owner;
	if (!error) {
		error = netlink_open(&kernel->events);
		said = kernel->events;
	}
	if (!error)
		error = netlink_listen(kernel->events);
	if (!error) {
		error = begin_domain(circuits);
		said = kernel->owner;
	}
	if (error)
		colld_say(3, "the kernel's circuits: %s", netlink_reason(said));
	return error;
}

int circuit_kernel_fd(const struct colld_circuits *circuits)
{
	return netlink_fd(circuits->kernel->events);
}

void circuit_kernel_close(struct colld_circuits *circuits)
{
	if (!circuits->kernel)
		return;
	if (circuits->kernel->events)
		netlink_close(circuits->kernel->events);
	if (circuits->kernel->owner)
		netlink_close(circuits->kernel->owner);
	free(circuits->kernel);
}
