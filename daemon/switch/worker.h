/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The thread that gives orders to a switch, so that no caller waits for it. */
#ifndef COLL_DAEMON_SWITCH_WORKER_H
#define COLL_DAEMON_SWITCH_WORKER_H

#include "switch.h"

struct switch_worker;

/* What the worker tells. */
struct switch_event {
	enum { SWITCH_BEGUN, SWITCH_DONE, SWITCH_LOST, SWITCH_DRIFT, SWITCH_TROUBLE } kind;
	struct switch_order order;	/* LOST: port; TROUBLE: why */
};

/*
 * A thread that gives orders to the switch in batches, and every `reconcile` ns reads
 * back what the switch really has. It begins with the first order; one that asks for
 * nothing will do. The switch stays the caller's.
 */
int switch_worker_start(struct switch_worker **worker, struct switch_device *s, u64 reconcile);
/* What the switch had at the start and is to keep. Before the first order. */
int switch_worker_adopt(struct switch_worker *worker, const u32 *port);
int switch_worker_give(struct switch_worker *worker, const struct switch_order *order);
int switch_worker_fd(const struct switch_worker *worker);	/* readable: there are events */
bool switch_worker_event(struct switch_worker *worker, struct switch_event *event);
void switch_worker_stop(struct switch_worker *worker);

#endif
