/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The thread that gives orders to a switch, so that no caller waits for it. */
#ifndef COLL_DAEMON_SWITCH_WORKER_H
#define COLL_DAEMON_SWITCH_WORKER_H

#include "switch.h"

struct switch_worker;

/* A result or an observation of the worker. */
struct switch_event {
	enum { SWITCH_BEGUN, SWITCH_DONE, SWITCH_LOST, SWITCH_DRIFT, SWITCH_TROUBLE } kind;
	struct switch_order order;	/* LOST: port; TROUBLE: why */
};

/*
 * Starts a thread that gives orders to the switch in batches, and compares the switch's
 * paths with its orders every `reconcile` ns. It runs from the first order on, which may be
 * COLL_CIRCUIT_NO_ORDER. The device is the caller's and outlives the worker.
 */
int switch_worker_start(struct switch_worker **worker, struct switch_device *s, u64 reconcile);
/* Keeps a circuit that the switch has already. Before the first order. */
void switch_worker_adopt(struct switch_worker *worker, const u32 *port);
int switch_worker_give(struct switch_worker *worker, const struct switch_order *order);
int switch_worker_fd(const struct switch_worker *worker);	/* readable: there are events */
bool switch_worker_event(struct switch_worker *worker, struct switch_event *event);
void switch_worker_stop(struct switch_worker *worker);

#endif
