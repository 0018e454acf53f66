/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Rules for tasks, given to coll.ko: it moves present tasks and later ones. */
#ifndef COLL_NODE_PIN_MODULE_H
#define COLL_NODE_PIN_MODULE_H

#include "rules.h"

struct netlink;

/* Of all rules together. */
struct node_pin_counts {
	u64 matched, moved, refused, changed;
};

/*
 * Sets the rules for tasks. They hold for `linger` ms after this socket is closed.
 * Descendants of the process `kept` stay where they are (0: of none). A rule for a cgroup
 * that does not exist is skipped, and `skipped` is called. 0, -errno with netlink_reason(),
 * or -ENOMEM.
 */
int node_pin_module_set(struct netlink *netlink, const struct node_rules *rules, u32 linger,
			u32 kept, void (*skipped)(const struct node_rule *rule));
/* All tasks get their former CPUs back. */
int node_pin_module_clear(struct netlink *netlink);
/* By a socket of its own, which is closed before the tasks come: they may be many. */
int node_pin_module_count(struct node_pin_counts *counts);

/*
 * The rules that the module does not take: for interrupts and the unbound work. `left`
 * owns left->rule only and borrows the rest from `rules`.
 */
int node_pin_module_left(const struct node_rules *rules, struct node_rules *left);

#endif
