// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/probe.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "daemon/common/subuid.h"
#include "node/capture.h"
#include "manager.h"

#define ADOPTED_KEEP_NS	5000000000ull

/* ---- shares of a user ----------------------------------------------------- */

static bool counts_as(const struct circuit_job *job, uid_t counted)
{
	return colld_subuid_counts_as(job->user) == counted;
}

static bool job_share_left(const struct circuit_manager *manager, uid_t user)
{
	const uid_t counted = colld_subuid_counts_as(user);
	u32 has = 0, taken = 0, i;

	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++) {
		taken += manager->job[i].clients > 0;
		has += manager->job[i].clients > 0 && counts_as(&manager->job[i], counted);
	}
	return circuit_manager_share_left(counted, has, taken, CIRCUIT_HOLDERS_MAX);
}

static bool request_share_left(const struct circuit_manager *manager, uid_t user)
{
	const uid_t counted = colld_subuid_counts_as(user);
	u32 has = 0, taken = 0, i;

	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++) {
		if (!manager->job[i].clients)
			continue;
		taken += manager->holder[i].requests;
		has += counts_as(&manager->job[i], counted) ? manager->holder[i].requests : 0;
	}
	return circuit_manager_share_left(counted, has, taken, CIRCUIT_LEASES_MAX);
}

/* ---- requests ------------------------------------------------------------- */

int circuit_manager_request(struct circuit_manager *manager, struct circuit_owner owner, u32 holder,
			    u32 node, u32 peer, u32 flags, u64 session, u64 timeout, u64 cookie,
			    u32 *lease)
{
	const u64 now = colld_now();
	const u64 deadline = timeout < COLL_CIRCUIT_FOREVER - now ? now + timeout :
								    COLL_CIRCUIT_FOREVER;
	int error;

	if (!request_share_left(manager, manager->job[holder].user))
		return -EDQUOT;
	error = coll_circuit_request(&manager->core, now, holder, node, peer, flags, session,
				     deadline, cookie, lease);
	COLL_PROBE3(colld, circuit_request, node, peer, error);
	if (error)
		return error;
	coll_assert(manager->owner[*lease].kind == CIRCUIT_OWNER_NONE);
	manager->owner[*lease] = owner;
	return 0;
}

void circuit_manager_release(struct circuit_manager *manager, u32 lease)
{
	coll_assert(manager->lease[lease].used);
	COLL_PROBE2(colld, circuit_release, lease, (int)manager->owner[lease].kind);
	manager->owner[lease] = (struct circuit_owner){ .kind = CIRCUIT_OWNER_NONE };
	coll_circuit_release(&manager->core, colld_now(), lease);
}

static bool is_job(const struct circuit_job *job, const char *name,
		   const u8 key[COLL_CIRCUIT_KEY], uid_t user)
{
	static const u8 no_key[COLL_CIRCUIT_KEY];

	return job->clients && !strcmp(job->name, name) &&
	       !memcmp(job->key, key, COLL_CIRCUIT_KEY) &&
	       (memcmp(key, no_key, COLL_CIRCUIT_KEY) || job->user == user);
}

u32 circuit_manager_join(struct circuit_manager *manager, const char *name,
			 const u8 key[COLL_CIRCUIT_KEY], uid_t user, u32 priority)
{
	u32 i;

	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++)
		if (is_job(&manager->job[i], name, key, user))
			break;
	if (i == CIRCUIT_HOLDERS_MAX) {
		if (!job_share_left(manager, user))
			return COLL_CIRCUIT_NONE;
		i = coll_circuit_add_holder(&manager->core, priority);
		if (i == COLL_CIRCUIT_NONE)
			return i;
		coll_assert(!manager->job[i].clients);
		manager->job[i].user = user;
		memcpy(manager->job[i].key, key, COLL_CIRCUIT_KEY);
		snprintf(manager->job[i].name, COLL_CIRCUIT_NAME, "%s", name);
	}
	manager->job[i].clients++;
	return i;
}

void circuit_manager_leave(struct circuit_manager *manager, u32 holder)
{
	coll_assert(manager->job[holder].clients);
	if (!--manager->job[holder].clients)
		coll_circuit_remove_holder(&manager->core, colld_now(), holder);
}

void circuit_manager_set_ports(struct circuit_manager *manager, u32 node, u32 ports)
{
	coll_assert(ports <= COLL_CIRCUIT_PORTS_MAX);
	coll_circuit_set_ports(&manager->core, colld_now(), node,
			       ports == 64 ? ~0ull : (1ull << ports) - 1);
}

/* ---- what follows from an event ------------------------------------------- */

static void manager_order(struct circuit_manager *manager)
{
	const struct circuit_setup *setup = &manager->setup;
	struct coll_circuit_order order;

	while (coll_circuit_next_order(&manager->core, colld_now(), &order)) {
		struct switch_order give = {
			.what = order.kind, .circuit = order.circuit, .serial = order.serial,
			.port = { circuit_setup_port(setup, order.node[0], order.port[0]),
				  circuit_setup_port(setup, order.node[1], order.port[1]) },
			.given = colld_now(),
		};

		if (switch_worker_give(manager->worker, &give))
			colld_log(LOG_ERR, "no memory: an order to the switch is lost; it is "
				  "given again after its timeout");
	}
}

static void manager_notify(struct circuit_manager *manager)
{
	struct coll_circuit_notification n;

	while (coll_circuit_next_notification(&manager->core, colld_now(), &n)) {
		const struct circuit_owner owner = manager->owner[n.lease];

		if (n.kind == COLL_CIRCUIT_NOTIFY_ENDED)
			manager->owner[n.lease] = (struct circuit_owner){ CIRCUIT_OWNER_NONE };
		if (owner.kind == CIRCUIT_OWNER_KERNEL)
			manager->listener->kernel_notified(manager, &n);
		if (owner.kind == CIRCUIT_OWNER_CLIENT)
			manager->listener->client_notified(manager, owner.client, &n);
		if (n.kind == COLL_CIRCUIT_NOTIFY_UP)
			circuit_delays_add(&manager->delays, &manager->time[n.circuit],
					   colld_now());
	}
}

static void manager_set_timer(struct circuit_manager *manager)
{
	const u64 next = coll_circuit_next_tick(&manager->core);
	struct itimerspec at = { .it_value = { next / 1000000000, next % 1000000000 } };

	if (next == manager->timer_at)
		return;
	manager->timer_at = next;
	if (next == COLL_CIRCUIT_FOREVER)
		at = (struct itimerspec){ .it_value = { 0, 0 } };
	else if (!next)
		at.it_value.tv_nsec = 1;
	timerfd_settime(manager->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void circuit_manager_follow(struct circuit_manager *manager)
{
	u32 circuit;

	manager_order(manager);
	manager_notify(manager);
	while (coll_circuit_next_change(&manager->core, &circuit))
		manager->listener->circuit_changed(manager, circuit);
	manager_set_timer(manager);
}

void circuit_manager_timer_expired(struct circuit_manager *manager)
{
	u64 expired;

	if (read(manager->timer, &expired, sizeof(expired)) > 0)
		coll_circuit_tick(&manager->core, colld_now());
	manager->timer_at = COLL_CIRCUIT_FOREVER;	/* it is set no more */
}

/* ---- the switch's side ---------------------------------------------------- */

/* What a switch says is for the log, and for terminals. */
static void manager_explain(char why[SWITCH_WHY], const char *text)
{
	snprintf(why, SWITCH_WHY, "%s", text);
	node_make_printable(why);
}

static void manager_order_done(struct circuit_manager *manager, const struct switch_order *order)
{
	const struct coll_circuit *circuit = &manager->circuit[order->circuit];

	if (order->error) {
		manager_explain(manager->why[order->circuit], order->why);
		colld_log(LOG_WARNING, "circuit %s - %s: not %s: %s",
			  manager->setup.node[circuit->node[0]].name,
			  manager->setup.node[circuit->node[1]].name,
			  order->what == COLL_CIRCUIT_ORDER_UP ? "set up" : "taken down",
			  manager->why[order->circuit]);
	} else if (order->what == COLL_CIRCUIT_ORDER_UP && circuit->serial == order->serial) {
		manager->time[order->circuit] = (struct circuit_times){
			order->given, order->begun, order->moved, order->locked };
	}
	coll_circuit_order_done(&manager->core, colld_now(), order->circuit, order->serial,
				order->error);
}

/* The circuit that has this port of the switch, or COLL_CIRCUIT_NONE. */
static u32 manager_circuit_at(const struct circuit_manager *manager, u32 port)
{
	u32 i, end;

	for (i = 0; i < manager->core.made; i++)
		for (end = 0; end < 2; end++) {
			const struct coll_circuit *circuit = &manager->circuit[i];

			if (circuit->port[end] < COLL_CIRCUIT_PORTS_MAX &&
			    circuit_setup_port(&manager->setup, circuit->node[end],
					       circuit->port[end]) == port)
				return i;
		}
	return COLL_CIRCUIT_NONE;
}

static void manager_switch_event(struct circuit_manager *manager, const struct switch_event *event)
{
	const struct switch_order *order = &event->order;
	char why[SWITCH_WHY];
	u32 circuit;

	switch (event->kind) {
	case SWITCH_BEGUN:
		coll_circuit_order_begun(&manager->core, colld_now(), order->circuit,
					 order->serial);
		break;
	case SWITCH_DONE:
		manager_order_done(manager, order);
		break;
	case SWITCH_LOST:
		circuit = manager_circuit_at(manager, order->port[0]);
		if (circuit == COLL_CIRCUIT_NONE)
			break;
		snprintf(manager->why[circuit], SWITCH_WHY, "the switch has lost it");
		coll_circuit_lost(&manager->core, colld_now(), circuit);
		break;
	case SWITCH_DRIFT:
		manager->drift++;
		colld_log(LOG_WARNING, "drift: the switch's port %u leads to %u; colld has not "
			  "ordered that", order->port[0], order->port[1]);
		break;
	case SWITCH_TROUBLE:
		manager_explain(why, order->why);
		colld_log(LOG_ERR, "the switch does not answer: %s", why);
		break;
	}
}

void circuit_manager_switch_events(struct circuit_manager *manager)
{
	struct switch_event event;

	while (switch_worker_event(manager->worker, &event))
		manager_switch_event(manager, &event);
}

/* ---- open and close ------------------------------------------------------- */

/* Both ways, between two nodes' ports, for a circuit that is to be kept. */
static bool manager_adopt(struct circuit_manager *manager, const u32 *leads, u32 port)
{
	const u32 other = leads[port];
	const struct switch_node *a = &manager->at[port], *b = &manager->at[other];

	if (other <= port || leads[other] != port || !a->name || !b->name)
		return false;
	if (coll_circuit_adopt(&manager->core, colld_now(), a->index, a->port, b->index, b->port))
		return false;
	switch_worker_adopt(manager->worker, (u32[]){ port, other });
	return true;
}

/* Of what the switch has already, the circuits of this setup stay; the rest is removed. */
static int manager_take_over(struct circuit_manager *manager, char *why)
{
	static struct switch_path path[SWITCH_PORTS_MAX];
	static u32 leads[SWITCH_PORTS_MAX + 1];
	const int paths = manager->device.ops->read(&manager->device, path, SWITCH_PORTS_MAX, why);
	bool kept[SWITCH_PORTS_MAX + 1] = { false };
	u32 port, adopted = 0;
	int i;

	if (paths < 0)
		return paths;
	memset(leads, 0, sizeof(leads));
	/* Their former holders have this time to request them again. */
	if (manager->core.policy.keep < ADOPTED_KEEP_NS)
		manager->core.policy.keep = ADOPTED_KEEP_NS;
	for (i = 0; i < paths; i++)
		if (path[i].in <= SWITCH_PORTS_MAX && path[i].out <= SWITCH_PORTS_MAX)
			leads[path[i].in] = path[i].out;
	for (port = 1; port <= SWITCH_PORTS_MAX; port++)
		if (leads[port] && manager_adopt(manager, leads, port)) {
			kept[port] = kept[leads[port]] = true;
			adopted++;
		}
	manager->core.policy.keep = manager->setup.policy.keep;
	for (i = 0; i < paths; i++)
		if (path[i].in > SWITCH_PORTS_MAX || !kept[path[i].in])
			manager->device.ops->remove(&manager->device, path[i]);
	if (adopted)
		colld_log(LOG_INFO, "took over %u circuits that the switch had", adopted);
	return 0;
}

static void manager_init_core(struct circuit_manager *manager)
{
	const struct circuit_setup *setup = &manager->setup;
	u32 node, port;

	manager->core = (struct coll_circuit_manager){
		.node = manager->node, .circuit = manager->circuit, .lease = manager->lease,
		.holder = manager->holder, .nodes = setup->nodes, .circuits = CIRCUITS_MAX,
		.leases = CIRCUIT_LEASES_MAX, .holders = CIRCUIT_HOLDERS_MAX,
		.policy = setup->policy,
	};
	coll_circuit_manager_init(&manager->core);
	for (node = 0; node < setup->nodes; node++) {
		for (port = 0; port < setup->node[node].ports; port++)
			manager->at[circuit_setup_port(setup, node, port)] = (struct switch_node){
				setup->node[node].name, node, port };
		circuit_manager_set_ports(manager, node, setup->node[node].ports);
	}
}

static int manager_open_switch(struct circuit_manager *manager)
{
	const struct circuit_setup *setup = &manager->setup;
	struct switch_device *device = &manager->device;
	const char *shown = circuit_setup_shown(setup);
	const struct switch_ops *ops = switch_find(setup->driver);
	char why[SWITCH_WHY] = "";
	int error;

	coll_assert(ops);	/* the setup names no other */
	*device = (struct switch_device){ .ops = ops, .at = manager->at,
					  .timeout = setup->policy.timeout };
	error = ops->open(device, setup->argument, why);
	if (!error)
		error = switch_worker_start(&manager->worker, device, setup->reconcile);
	if (!error)
		error = manager_take_over(manager, why);
	if (!error)
		error = switch_worker_give(manager->worker,
					   &(struct switch_order){ .what = COLL_CIRCUIT_NO_ORDER });
	node_make_printable(why);
	if (error)
		colld_log(LOG_ERR, "switch %s%s%s: %s", setup->driver, *shown ? " " : "", shown,
			  *why ? why : strerror(-error));
	return error;
}

static int manager_check_ports(const struct circuit_manager *manager)
{
	const struct circuit_setup *setup = &manager->setup;
	int error = 0;
	u32 node, port;

	if (!manager->device.ports)
		return 0;
	for (node = 0; node < setup->nodes; node++)
		for (port = 0; port < setup->node[node].ports; port++)
			if (circuit_setup_port(setup, node, port) > manager->device.ports) {
				colld_log(LOG_ERR, "node %s: the switch has no port %u; valid: 1 "
					  "to %u", setup->node[node].name,
					  circuit_setup_port(setup, node, port),
					  manager->device.ports);
				error = -EINVAL;
			}
	return error;
}

int circuit_manager_open(struct circuit_manager *manager, const struct circuit_setup *setup,
			 const struct circuit_listener *listener)
{
	int error;

	manager->setup = *setup;
	manager->listener = listener;
	manager->operator = COLL_CIRCUIT_NONE;
	manager->timer_at = COLL_CIRCUIT_FOREVER;
	manager->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	manager_init_core(manager);
	error = manager_open_switch(manager);
	return error ? error : manager_check_ports(manager);
}

void circuit_manager_close(struct circuit_manager *manager)
{
	switch_worker_stop(manager->worker);
	if (manager->device.ops)
		manager->device.ops->close(&manager->device);
	close(manager->timer);
}
