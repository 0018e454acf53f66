// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "kernel.h"
#include "node/netlink.h"

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

static void kernel_answer(struct circuit_kernel *kernel, u32 id, u8 state, int error)
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
		colld_log(LOG_WARNING, "the module: %s", netlink_reason(kernel->owner));
}

/* ---- orders --------------------------------------------------------------- */

static u32 kernel_peer(const struct circuit_manager *manager, struct nlattr *address)
{
	u32 i;

	for (i = 0; address && i < manager->setup.nodes; i++)
		if (manager->setup.node[i].address_bytes == nla_len(address) &&
		    !memcmp(manager->setup.node[i].address, nla_data(address), nla_len(address)))
			return i;
	return COLL_CIRCUIT_NONE;
}

static void kernel_release(struct circuit_manager *manager, struct kernel_order *order)
{
	if (order->lease == COLL_CIRCUIT_NONE)
		return;
	circuit_manager_release(manager, order->lease);
	order->lease = COLL_CIRCUIT_NONE;
}

static void kernel_order_up(struct circuit_manager *manager, u32 id, u32 peer)
{
	struct circuit_kernel *kernel = manager->kernel;
	struct kernel_order *order = &kernel->order[id];
	int error;

	kernel_release(manager, order);
	error = peer == COLL_CIRCUIT_NONE ? -EHOSTUNREACH :
		circuit_manager_request(manager,
					(struct circuit_owner){ CIRCUIT_OWNER_KERNEL, NULL },
					kernel->holder, manager->setup.kernel, peer,
					COLL_CIRCUIT_ONE_SIDED, 0, manager->setup.policy.timeout,
					id, &order->lease);
	if (error) {
		order->lease = COLL_CIRCUIT_NONE;
		kernel_answer(kernel, id, COLL_CIRCUIT_FAILED, -error);
		return;
	}
	kernel_answer(kernel, id, COLL_CIRCUIT_SWITCHING, 0);
}

static int kernel_event(enum coll_command command, struct nlattr **a, void *data)
{
	struct circuit_manager *manager = data;
	struct circuit_kernel *kernel = manager->kernel;
	u32 id;

	if (command != COLL_CMD_EVENT || !a[COLL_EVENT_A_KIND] || !a[COLL_EVENT_A_ID] ||
	    !a[COLL_EVENT_A_SERIAL])
		return 0;
	id = nla_get_u32(a[COLL_EVENT_A_ID]);
	if (id >= ORDERS_MAX)
		return 0;
	kernel->order[id].serial = nla_get_u32(a[COLL_EVENT_A_SERIAL]);
	if (nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_CIRCUIT_UP) {
		kernel_order_up(manager, id, kernel_peer(manager, a[COLL_EVENT_A_ADDRESS]));
	} else if (nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_CIRCUIT_DOWN) {
		kernel_release(manager, &kernel->order[id]);
		kernel_answer(kernel, id, COLL_CIRCUIT_DOWN, 0);
	}
	return 0;
}

void circuit_kernel_read(struct circuit_manager *manager)
{
	netlink_events(manager->kernel->events, kernel_event, manager);
}

void circuit_kernel_notify(struct circuit_manager *manager,
			   const struct coll_circuit_notification *notification)
{
	struct circuit_kernel *kernel = manager->kernel;
	const u32 id = notification->cookie;

	switch (notification->kind) {
	case COLL_CIRCUIT_NOTIFY_UP:
		kernel_answer(kernel, id, COLL_CIRCUIT_UP, 0);
		break;
	case COLL_CIRCUIT_NOTIFY_DOWN:	/* requested again when the kernel orders it again */
		kernel_answer(kernel, id, COLL_CIRCUIT_DOWN, 0);
		break;
	case COLL_CIRCUIT_NOTIFY_ENDED:
		kernel->order[id].lease = COLL_CIRCUIT_NONE;
		kernel_answer(kernel, id, COLL_CIRCUIT_FAILED, -notification->error);
		break;
	default:
		break;
	}
}

/* ---- open, close ---------------------------------------------------------- */

static int kernel_begin_domain(struct circuit_manager *manager)
{
	const struct circuit_setup *setup = &manager->setup;
	const struct circuit_node *node = &setup->node[setup->kernel];
	struct circuit_kernel *kernel = manager->kernel;
	struct nl_msg *message = netlink_message(kernel->owner, COLL_CMD_CIRCUIT_DOMAIN, 0);
	/* A packet is held for as long as another lease, its grace time and the switch take. */
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
	/* Longer than the switch's own timeout, which is over first. */
	nla_put_u32(message, COLL_CIRCUIT_A_TIMEOUT, 2 * setup->policy.timeout / 1000000 + 1);
	return netlink_ask(kernel->owner, message, NULL, NULL);
}

int circuit_kernel_open(struct circuit_manager *manager)
{
	struct circuit_kernel *kernel = calloc(1, sizeof(*kernel));
	struct netlink *failed;
	int error, i;

	if (!kernel)
		return -ENOMEM;
	manager->kernel = kernel;
	for (i = 0; i < ORDERS_MAX; i++)
		kernel->order[i].lease = COLL_CIRCUIT_NONE;
	kernel->holder = circuit_manager_join(manager, "traffic",
					      (u8[COLL_CIRCUIT_KEY]){ 0 }, 0, 0);
	error = netlink_open(&kernel->owner);
	failed = kernel->owner;
	if (!error) {
		error = netlink_open(&kernel->events);
		failed = kernel->events;
	}
	if (!error)
		error = netlink_listen(kernel->events);
	if (!error) {
		error = kernel_begin_domain(manager);
		failed = kernel->owner;
	}
	if (error)
		colld_log(LOG_ERR, "circuits of coll.ko: %s", netlink_reason(failed));
	return error;
}

int circuit_kernel_fd(const struct circuit_manager *manager)
{
	return netlink_fd(manager->kernel->events);
}

void circuit_kernel_close(struct circuit_manager *manager)
{
	if (!manager->kernel)
		return;
	if (manager->kernel->events)
		netlink_close(manager->kernel->events);
	if (manager->kernel->owner)
		netlink_close(manager->kernel->owner);
	free(manager->kernel);
}
