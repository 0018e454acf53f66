/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Rules of tasks in the module's hands: it moves who is there and who comes later. */
#ifndef COLL_NOISE_PIN_MODULE_H
#define COLL_NOISE_PIN_MODULE_H

#include "rules.h"

struct netlink;

/* Of all rules together. */
struct noise_pin_counts {
	u64 matched, moved, refused, changed;
};

/*
 * Gives it the rules that are not of interrupts, to hold for `linger` ms after this
 * socket is closed. Descendants of `kept` stay where they are (0: nobody's). A rule
 * of a cgroup that there is not rests: `rests` is told. 0, -errno with
 * netlink_reason(), or -ENOMEM.
 */
int noise_pin_module_set(struct netlink *netlink, const struct noise_rules *rules, u32 linger,
			 u32 kept, void (*rests)(const struct noise_rule *rule));
/* Everybody has what he had before. */
int noise_pin_module_clear(struct netlink *netlink);
int noise_pin_module_count(struct netlink *netlink, struct noise_pin_counts *counts);

/*
 * What the module cannot do: the rules of interrupts and of the unbound work. `left`
 * owns left->rule only, and has the rest from `rules`.
 */
int noise_pin_module_left(const struct noise_rules *rules, struct noise_rules *left);

#endif
