/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Moves tasks, interrupts and the kernel's unbound work away from the application's
 * CPUs, from user space. A file keeps the former state. It is written before any
 * change, and undoing needs nothing else. What others have changed since is left alone.
 */
#ifndef COLL_NODE_PINNING_H
#define COLL_NODE_PINNING_H

#include "pin.h"
#include "rules.h"

struct node_pinning {
	struct node_pin *pin;
	u32 count, room;
};

/* Adds a copy, with copies of the two texts. NULL: no memory. */
struct node_pin *node_pinning_add(struct node_pinning *pinning, const struct node_pin *pin,
				    const char *before, const char *after);

/* All that a rule matches, and what would become of it. Changes nothing. */
int node_pinning_plan(struct node_pinning *pinning, const struct node_rules *rules);
/* Moves what is WANTED. Never fails as a whole: see the states. */
void node_pinning_apply(struct node_pinning *pinning);
/* Moves everything back, and the tasks that moved tasks have started since. */
void node_pinning_undo(struct node_pinning *pinning);
/*
 * Adds new tasks and interrupts as WANTED, drops those that are gone, and marks those that
 * others have changed. Returns how many were added (save, then apply), or -ENOMEM.
 */
int node_pinning_renew(struct node_pinning *pinning, const struct node_rules *rules);
void node_pinning_free(struct node_pinning *pinning);
u32 node_pinning_count(const struct node_pinning *pinning, enum node_pin_state state);

/*
 * The file of what is WANTED or MOVED, for undoing. Save before apply, and again after it.
 * Without `anew`, -EEXIST if there is a file: load and undo that first. Load: -ENOENT,
 * there is none; -EINVAL, it is damaged.
 */
int node_pinning_save(const struct node_pinning *pinning, const char *directory, bool anew);
int node_pinning_load(struct node_pinning *pinning, const char *directory);
int node_pinning_forget(const char *directory);

#endif
