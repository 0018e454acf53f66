// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "circuit.h"
#include "colld.h"

#define ADOPTED_KEEP_NS	5000000000ull

enum { EVENTS_MAX = 64 };		/* in a turn */

static u32 port_of(const struct colld_circuits *circuits, u32 node, u8 port)
{
	return circuits->setup.node[node].port[port];
}

u32 coll_circuits_node(const struct colld_circuits *circuits, const char *name)
{
	u32 i;

	for (i = 0; i < circuits->setup.nodes; i++)
		if (!strcmp(circuits->setup.node[i].name, name))
			return i;
	return COLL_CIRCUIT_NONE;
}

/* ---- set-up times -------------------------------------------------------- */

static int circuit_compare(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

u64 circuits_sampled(const struct colld_circuits *circuits, enum circuit_delay which)
{
	const u64 count = circuits->samples < CIRCUIT_SAMPLES ? circuits->samples : CIRCUIT_SAMPLES;
	const bool late = which == CIRCUIT_DELAY_P90;
	const u32 part = late ? CIRCUIT_DELAY_ALL : which;
	u64 sorted[CIRCUIT_SAMPLES];

	memcpy(sorted, circuits->sample[part], sizeof(sorted));
	qsort(sorted, count, sizeof(*sorted), circuit_compare);
	return count ? sorted[late ? count * 9 / 10 : count / 2] : 0;
}

/* Its holders have just been told that it is lit. */
static void take_sample(struct colld_circuits *circuits, u32 circuit)
{
	struct circuit_times *time = &circuits->time[circuit];
	const u64 now = switch_now();
	const u64 parts[] = { time->begun - time->given, time->moved - time->begun,
			      time->locked - time->moved, now - time->locked, now - time->given };
	u32 i;

	if (!time->given)
		return;
	for (i = 0; i < CIRCUIT_DELAY_SAMPLED; i++)
		circuits->sample[i][circuits->samples % CIRCUIT_SAMPLES] = parts[i];
	circuits->samples++;
	time->given = 0;
}

/* ---- what follows from an event ------------------------------------------ */

static void give_orders(struct colld_circuits *circuits)
{
	struct coll_circuit_order order;

	while (coll_circuit_next_order(&circuits->c, switch_now(), &order)) {
		struct switch_order give = {
			.what = order.kind, .circuit = order.circuit, .serial = order.serial,
			.port = { port_of(circuits, order.node[0], order.port[0]),
				  port_of(circuits, order.node[1], order.port[1]) },
			.given = switch_now(),
		};

		if (switch_worker_give(circuits->worker, &give))
			colld_say(3, "no memory: an order is lost, and given again later");
	}
}

static void tell_news(struct colld_circuits *circuits)
{
	struct coll_circuit_notification told;

	while (coll_circuit_next_notification(&circuits->c, switch_now(), &told)) {
		struct circuit_client *client = circuits->owner[told.lease];

		const bool kernels = circuits->is_kernels[told.lease];

		if (told.kind == COLL_CIRCUIT_NOTIFY_ENDED) {
			circuits->owner[told.lease] = NULL;
			circuits->is_kernels[told.lease] = false;
		}
		if (kernels)
			circuit_kernel_tell(circuits, &told);
		if (client)
			circuit_client_tell(circuits, client, &told);
		if (told.kind == COLL_CIRCUIT_NOTIFY_UP)
			take_sample(circuits, told.circuit);
	}
}

static void set_timer(struct colld_circuits *circuits)
{
	const u64 next = coll_circuit_next_tick(&circuits->c);
	struct itimerspec at = { .it_value = { next / 1000000000, next % 1000000000 } };

	if (next == circuits->next)
		return;
	circuits->next = next;
	if (next == COLL_CIRCUIT_FOREVER)
		at = (struct itimerspec){ .it_value = { 0, 0 } };
	else if (!next)
		at.it_value.tv_nsec = 1;
	timerfd_settime(circuits->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void circuits_follow(struct colld_circuits *circuits)
{
	u32 circuit;

	give_orders(circuits);
	tell_news(circuits);
	while (coll_circuit_next_change(&circuits->c, &circuit))
		circuit_clients_changed(circuits, circuit);
	set_timer(circuits);
}

/* ---- the switch's side --------------------------------------------------- */

static void circuit_done(struct colld_circuits *circuits, const struct switch_order *order)
{
	struct coll_circuit *circuit = &circuits->circuit[order->circuit];

	if (order->error)
		snprintf(circuits->why[order->circuit], SWITCH_WHY, "%s", order->why);
	if (order->what == COLL_CIRCUIT_ORDER_UP && !order->error &&
	    circuit->serial == order->serial)
		circuits->time[order->circuit] = (struct circuit_times){
			order->given, order->begun, order->moved, order->locked };
	if (order->error)
		colld_say(4, "circuit %s - %s: %s: %s", circuits->setup.node[circuit->node[0]].name,
			  circuits->setup.node[circuit->node[1]].name,
			  order->what == COLL_CIRCUIT_ORDER_UP ? "not set up" : "not taken down",
			  order->why);
	coll_circuit_order_done(&circuits->c, switch_now(), order->circuit, order->serial,
				order->error);
}

/* The circuit that has this port of the switch, or COLL_CIRCUIT_NONE. */
static u32 circuit_at(const struct colld_circuits *circuits, u32 port)
{
	u32 i, end;

	for (i = 0; i < circuits->c.made; i++)
		for (end = 0; end < 2; end++) {
			const struct coll_circuit *circuit = &circuits->circuit[i];

			if (circuit->port[end] < COLL_CIRCUIT_PORTS_MAX &&
			    port_of(circuits, circuit->node[end], circuit->port[end]) == port)
				return i;
		}
	return COLL_CIRCUIT_NONE;
}

static void switch_said(struct colld_circuits *circuits, const struct switch_event *event)
{
	const struct switch_order *order = &event->order;
	u32 circuit;

	switch (event->kind) {
	case SWITCH_BEGUN:
		coll_circuit_order_begun(&circuits->c, switch_now(), order->circuit, order->serial);
		break;
	case SWITCH_DONE:
		circuit_done(circuits, order);
		break;
	case SWITCH_LOST:
		circuit = circuit_at(circuits, order->port[0]);
		if (circuit == COLL_CIRCUIT_NONE)
			break;
		snprintf(circuits->why[circuit], SWITCH_WHY, "the switch has it no more");
		coll_circuit_lost(&circuits->c, switch_now(), circuit);
		break;
	case SWITCH_DRIFT:
		circuits->drift++;
		colld_say(4, "the switch's port %u leads to %u: that was somebody else, or a fault",
			  order->port[0], order->port[1]);
		break;
	case SWITCH_TROUBLE:
		colld_say(3, "the switch does not answer: %s", order->why);
		break;
	}
}

/* Both ways, between two nodes' ports, for a circuit that is to be kept. */
static bool circuit_adopt(struct colld_circuits *circuits, const u32 *leads, u32 port)
{
	const u32 other = leads[port];
	const struct switch_node *a = &circuits->at[port], *b = &circuits->at[other];

	if (other <= port || leads[other] != port || !a->name || !b->name)
		return false;
	if (coll_circuit_adopt(&circuits->c, switch_now(), a->index, a->port, b->index, b->port))
		return false;
	switch_worker_adopt(circuits->worker, (u32[]){ port, other });
	return true;
}

/* What the switch has already: circuits of this setup stay, the rest goes. */
static int take_over(struct colld_circuits *circuits, char *why)
{
	static struct switch_path path[SWITCH_PORTS_MAX];
	static u32 leads[SWITCH_PORTS_MAX + 1];
	const int paths = circuits->s.ops->read(&circuits->s, path, SWITCH_PORTS_MAX, why);
	bool kept[SWITCH_PORTS_MAX + 1] = { false };
	u32 port, adopted = 0;
	int i;

	if (paths < 0)
		return paths;
	memset(leads, 0, sizeof(leads));
	/* Those who had them are given time to come back. */
	if (circuits->c.policy.keep < ADOPTED_KEEP_NS)
		circuits->c.policy.keep = ADOPTED_KEEP_NS;
	for (i = 0; i < paths; i++)
		if (path[i].in <= SWITCH_PORTS_MAX && path[i].out <= SWITCH_PORTS_MAX)
			leads[path[i].in] = path[i].out;
	for (port = 1; port <= SWITCH_PORTS_MAX; port++)
		if (leads[port] && circuit_adopt(circuits, leads, port)) {
			kept[port] = kept[leads[port]] = true;
			adopted++;
		}
	circuits->c.policy.keep = circuits->setup.policy.keep;
	for (i = 0; i < paths; i++)
		if (path[i].in > SWITCH_PORTS_MAX || !kept[path[i].in])
			circuits->s.ops->remove(&circuits->s, path[i]);
	if (adopted)
		colld_say(6, "took over %u circuits that the switch had", adopted);
	return 0;
}

/* ---- open, turn, close --------------------------------------------------- */

static void machine_init(struct colld_circuits *circuits)
{
	const struct circuit_setup *setup = &circuits->setup;
	u32 node, port;

	circuits->c = (struct coll_circuit_manager){
		.node = circuits->node, .circuit = circuits->circuit, .lease = circuits->lease,
		.holder = circuits->holder, .nodes = setup->nodes, .circuits = CIRCUITS_MAX,
		.leases = CIRCUIT_LEASES_MAX, .holders = CIRCUIT_HOLDERS_MAX,
		.policy = setup->policy,
	};
	coll_circuit_manager_init(&circuits->c);
	for (node = 0; node < setup->nodes; node++) {
		for (port = 0; port < setup->node[node].ports; port++)
			circuits->at[setup->node[node].port[port]] = (struct switch_node){
				setup->node[node].name, node, port };
		coll_circuit_set_ports(&circuits->c, switch_now(), node,
				       setup->node[node].ports == 64 ? ~0ull :
				       (1ull << setup->node[node].ports) - 1);
	}
}

static int open_switch(struct colld_circuits *circuits)
{
	const struct circuit_setup *setup = &circuits->setup;
	struct circuit_switch *s = &circuits->s;
	const struct switch_ops *ops = switch_find(setup->driver);
	char why[SWITCH_WHY] = "";
	int error;

	*s = (struct circuit_switch){ .ops = ops, .at = circuits->at,
				      .timeout = setup->policy.timeout };
	error = ops->open(s, setup->argument, why);
	if (!error)
		error = switch_worker_start(&circuits->worker, s, setup->reconcile);
	if (!error)
		error = take_over(circuits, why);
	if (!error)
		error = switch_worker_give(circuits->worker, &(struct switch_order){ .what = 0 });
	if (error)
		colld_say(3, "switch %s %s: %s", setup->driver, setup->argument,
			  *why ? why : strerror(-error));
	return error;
}

static int watch_fd(struct colld_circuits *circuits, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	return epoll_ctl(circuits->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int colld_circuits_open(struct colld_circuits **made, const struct circuit_setup *setup)
{
	struct colld_circuits *circuits = calloc(1, sizeof(*circuits));
	u32 node, port;
	int error;

	*made = circuits;
	if (!circuits)
		return -ENOMEM;
	circuits->setup = *setup;
	circuits->listener = -1;
	circuits->operator = COLL_CIRCUIT_NONE;
	circuits->next = COLL_CIRCUIT_FOREVER;
	circuits->epoll = epoll_create1(EPOLL_CLOEXEC);
	circuits->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	machine_init(circuits);
	error = open_switch(circuits);
	for (node = 0; !error && circuits->s.ports && node < setup->nodes; node++)
		for (port = 0; port < setup->node[node].ports; port++)
			if (setup->node[node].port[port] > circuits->s.ports) {
				colld_say(3, "node %s: the switch has no port %u, but %u",
					  setup->node[node].name, setup->node[node].port[port],
					  circuits->s.ports);
				error = -EINVAL;
			}
	if (!error)
		error = circuit_clients_open(circuits);
	if (!error && setup->kernel != COLL_CIRCUIT_NONE)
		error = circuit_kernel_open(circuits);
	if (!error && circuits->kernel)
		error = watch_fd(circuits, circuit_kernel_fd(circuits), &circuits->kernel);
	if (!error)
		error = watch_fd(circuits, circuits->timer, &circuits->timer);
	if (!error)
		error = watch_fd(circuits, switch_worker_fd(circuits->worker), &circuits->worker);
	if (!error)
		error = watch_fd(circuits, circuits->listener, &circuits->listener);
	if (error)
		colld_say(3, "circuits are not managed: %s", strerror(-error));
	else
		circuits_follow(circuits);
	return error;
}

int colld_circuits_fd(const struct colld_circuits *circuits)
{
	return circuits->epoll;
}

void colld_circuits_turn(struct colld_circuits *circuits)
{
	struct switch_event said;
	struct epoll_event event;
	u64 expired;
	u32 i;

	/*
	 * One at a time: a client may be gone after the turn of another. What follows from all
	 * of them follows once: ranks of a job ask together.
	 */
	for (i = 0; i < EVENTS_MAX && epoll_wait(circuits->epoll, &event, 1, 0) > 0; i++) {
		if (event.data.ptr == &circuits->worker) {
			while (switch_worker_event(circuits->worker, &said))
				switch_said(circuits, &said);
		} else if (event.data.ptr == &circuits->timer) {
			if (read(circuits->timer, &expired, sizeof(expired)) > 0)
				coll_circuit_tick(&circuits->c, switch_now());
			circuits->next = COLL_CIRCUIT_FOREVER;	/* it is set no more */
		} else if (event.data.ptr == &circuits->kernel) {
			circuit_kernel_read(circuits);
		} else if (event.data.ptr == &circuits->listener) {
			circuit_clients_accept(circuits);
		} else {
			circuit_client_read(circuits, event.data.ptr);
		}
	}
	if (i)
		circuits_follow(circuits);
}

void colld_circuits_close(struct colld_circuits *circuits)
{
	if (!circuits)
		return;
	circuit_clients_close(circuits);
	circuit_kernel_close(circuits);
	switch_worker_stop(circuits->worker);
	if (circuits->s.ops)
		circuits->s.ops->close(&circuits->s);
	close(circuits->timer);
	close(circuits->epoll);
	free(circuits);
}

/* ---- metrics ------------------------------------------------------------- */

void colld_circuits_metrics(const struct colld_circuits *circuits, FILE *to)
{
	static const char *const parts[] = { "queue", "switch", "lock", "notify", "all", "p90" };
	const struct coll_circuit_manager *c = &circuits->c;
	u32 count[COLL_CIRCUIT_STATES] = { 0 }, i;

	for (i = 0; i < c->made; i++)
		count[c->circuit[i].state]++;
	fprintf(to, "# HELP coll_circuits Circuits by state.\n# TYPE coll_circuits gauge\n");
	for (i = COLL_CIRCUIT_REQUESTED; i < COLL_CIRCUIT_STATES; i++)
		fprintf(to, "coll_circuits{state=\"%s\"} %u\n", coll_circuit_state_names[i],
			count[i]);
	fprintf(to, "# HELP coll_circuit_events_total What became of circuits.\n"
		"# TYPE coll_circuit_events_total counter\n"
		"coll_circuit_events_total{event=\"setup\"} %llu\n"
		"coll_circuit_events_total{event=\"failed\"} %llu\n"
		"coll_circuit_events_total{event=\"lost\"} %llu\n"
		"coll_circuit_events_total{event=\"revoked\"} %llu\n"
		"coll_circuit_events_total{event=\"drift\"} %llu\n",
		(unsigned long long)c->setups, (unsigned long long)c->failures,
		(unsigned long long)c->lost, (unsigned long long)c->revoked,
		(unsigned long long)circuits->drift);
	fprintf(to,
		"# HELP coll_circuit_reconfiguration_seconds Median of the latest %d; p90: 90th "
		"percentile.\n"
		"# TYPE coll_circuit_reconfiguration_seconds gauge\n",
		CIRCUIT_SAMPLES);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		fprintf(to, "coll_circuit_reconfiguration_seconds{part=\"%s\"} %.9f\n", parts[i],
			circuits_sampled(circuits, i) / 1e9);
	for (i = 0; i < circuits->setup.nodes; i++)
		fprintf(to, "coll_circuit_ports_taken{node=\"%s\"} %d\n",
			circuits->setup.node[i].name, __builtin_popcountll(c->node[i].taken));
}
