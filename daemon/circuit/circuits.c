// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "circuits.h"
#include "clients.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "kernel.h"
#include "manager.h"

enum { EVENTS_MAX = 64 };		/* in one call of progress */

struct colld_circuits {
	struct circuit_manager manager;
	int epoll;
	char pause, refill;	/* addresses: clients may be accepted, or read, again */
};

static const struct circuit_listener circuits_listener = {
	.client_notified = circuit_client_notify,
	.kernel_notified = circuit_kernel_notify,
	.circuit_changed = circuit_clients_changed,
};

/* `data` tells the descriptor's events from a client's. */
static int circuits_watch(struct colld_circuits *circuits, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	return epoll_ctl(circuits->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int circuits_watch_all(struct colld_circuits *circuits)
{
	struct circuit_manager *manager = &circuits->manager;
	int error = 0;

	if (manager->kernel)
		error = circuits_watch(circuits, circuit_kernel_fd(manager), &manager->kernel);
	if (!error)
		error = circuits_watch(circuits, manager->timer, &manager->timer);
	if (!error)
		error = circuits_watch(circuits, switch_worker_fd(manager->worker),
				       &manager->worker);
	if (!error)
		error = circuits_watch(circuits, circuit_clients_fd(manager), &manager->clients);
	if (!error)
		error = circuits_watch(circuits, circuit_clients_pause_fd(manager),
				       &circuits->pause);
	if (!error)
		error = circuits_watch(circuits, circuit_clients_refill_fd(manager),
				       &circuits->refill);
	return error;
}

int colld_circuits_open(struct colld_circuits **made, const struct circuit_setup *setup)
{
	struct colld_circuits *circuits = calloc(1, sizeof(*circuits));
	int error;

	*made = circuits;
	if (!circuits)
		return -ENOMEM;
	circuits->epoll = epoll_create1(EPOLL_CLOEXEC);
	error = circuit_manager_open(&circuits->manager, setup, &circuits_listener);
	if (!error)
		error = circuit_clients_open(&circuits->manager, circuits->epoll);
	if (!error && setup->kernel != COLL_CIRCUIT_NONE)
		error = circuit_kernel_open(&circuits->manager);
	if (!error)
		error = circuits_watch_all(circuits);
	if (error)
		colld_log(LOG_ERR, "circuits are not managed: %s", strerror(-error));
	else
		circuit_manager_follow(&circuits->manager);
	return error;
}

int colld_circuits_fd(const struct colld_circuits *circuits)
{
	return circuits->epoll;
}

void colld_circuits_progress(struct colld_circuits *circuits)
{
	struct circuit_manager *manager = &circuits->manager;
	struct epoll_event event;
	u32 i;

	/*
	 * One event at a time: handling a client's may free another client. What follows from
	 * all of them follows once: ranks of a job request together.
	 */
	for (i = 0; i < EVENTS_MAX && epoll_wait(circuits->epoll, &event, 1, 0) > 0; i++) {
		if (event.data.ptr == &manager->worker)
			circuit_manager_switch_events(manager);
		else if (event.data.ptr == &manager->timer)
			circuit_manager_timer_expired(manager);
		else if (event.data.ptr == &manager->kernel)
			circuit_kernel_read(manager);
		else if (event.data.ptr == &manager->clients)
			circuit_clients_accept(manager);
		else if (event.data.ptr == &circuits->pause)
			circuit_clients_resume(manager);
		else if (event.data.ptr == &circuits->refill)
			circuit_clients_refill(manager);
		else
			circuit_client_read(manager, event.data.ptr);
	}
	if (i)
		circuit_manager_follow(manager);
}

void colld_circuits_close(struct colld_circuits *circuits)
{
	if (!circuits)
		return;
	circuit_clients_close(&circuits->manager);
	circuit_kernel_close(&circuits->manager);
	circuit_manager_close(&circuits->manager);
	close(circuits->epoll);
	free(circuits);
}

void colld_circuits_metrics(const struct colld_circuits *circuits, FILE *to)
{
	const struct circuit_manager *manager = &circuits->manager;
	static const char *const parts[CIRCUIT_DELAYS] = {
		"queue", "switch", "lock", "notify", "all", "p90" };
	static const char *const drops[CIRCUIT_DROPS] = { "limit", "protocol", "descriptors" };
	const struct coll_circuit_manager *c = &manager->core;
	u32 count[COLL_CIRCUIT_STATES] = { 0 }, i;
	char help[64];

	for (i = 0; i < c->made; i++)
		count[c->circuit[i].state]++;
	colld_metrics_gauge(to, "coll_circuits", "Circuits by state.");
	for (i = COLL_CIRCUIT_REQUESTED; i < COLL_CIRCUIT_STATES; i++)
		colld_metrics_count(to, "coll_circuits", "state", coll_circuit_state_names[i], count[i]);
	colld_metrics_counter(to, "coll_circuit_events_total", "What became of circuits.");
	colld_metrics_count(to, "coll_circuit_events_total", "event", "setup", c->setups);
	colld_metrics_count(to, "coll_circuit_events_total", "event", "failed", c->failures);
	colld_metrics_count(to, "coll_circuit_events_total", "event", "lost", c->lost);
	colld_metrics_count(to, "coll_circuit_events_total", "event", "revoked", c->revoked);
	colld_metrics_count(to, "coll_circuit_events_total", "event", "drift", manager->drift);
	colld_metrics_counter(to, "coll_circuit_clients_dropped_total", "Connections dropped, by why.");
	for (i = 0; i < CIRCUIT_DROPS; i++)
		colld_metrics_count(to, "coll_circuit_clients_dropped_total", "why", drops[i],
				    manager->clients->dropped[i]);
	snprintf(help, sizeof(help), "Median of the latest %d; p90: 90th percentile.", CIRCUIT_SAMPLES);
	colld_metrics_gauge(to, "coll_circuit_reconfiguration_seconds", help);
	for (i = 0; i < CIRCUIT_DELAYS; i++)
		colld_metrics_seconds(to, "coll_circuit_reconfiguration_seconds", "part", parts[i],
				      circuit_delays_figure(&manager->delays, i));
	colld_metrics_gauge(to, "coll_circuit_ports_taken", "Ports of a node that have a circuit.");
	for (i = 0; i < manager->setup.nodes; i++)
		colld_metrics_count(to, "coll_circuit_ports_taken", "node", manager->setup.node[i].name,
				    __builtin_popcountll(c->node[i].taken));
}
