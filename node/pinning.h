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
#include "scan.h"

struct node_pinning {
	struct node_pin *pin;
	u32 count, room;
	u32 *slot, slots;	/* a hash table: which pin and one, or 0 */
	struct node_scan scan;	/* of node_pinning_renew() ... */
	u32 round;		/* ... whose sweep goes through all tasks for this time */
	u32 looks, interrupts;	/* ... so often; the folders in /proc/irq at the last of them */
	bool dropped;		/* ... some are gone: to be saved */
	u32 undone;		/* by node_pinnings_undo(): those up to here */
};

/* Adds a copy, with copies of the two texts. NULL: no memory. */
struct node_pin *node_pinning_add(struct node_pinning *pinning, const struct node_pin *pin,
				  const char *before, const char *after);
/* One of the same kind, number, time of birth (0: any) and, of a file, name; or NULL. */
struct node_pin *node_pinning_find(const struct node_pinning *pinning, const struct node_pin *like);
/* Those of which gone() says so; returns how many. */
u32 node_pinning_drop(struct node_pinning *pinning,
		      bool (*gone)(const struct node_pin *pin, const void *data), const void *data);

/* All that a rule matches, and what would become of it. Changes nothing. */
int node_pinning_plan(struct node_pinning *pinning, const struct node_rules *rules);
/* Of these, without tasks; and one task, if it is to be moved: 1 if it was added. */
int node_pinning_plan_masks(struct node_pinning *pinning, const struct node_rules *rules);
int node_pinning_plan_move(struct node_pinning *pinning, const struct node_rules *rules,
			   const struct node_task *task, const struct node_tasks *tasks);
/* Moves what is WANTED. Never fails as a whole: see the states. */
void node_pinning_apply(struct node_pinning *pinning);
/*
 * Moves everything back, and the tasks that moved tasks have started since. What could not be read stays
 * WANTED or MOVED: to be called again. Without a look at the tasks that is all of theirs, and nothing else.
 */
void node_pinning_undo(struct node_pinning *pinning);
/*
 * Of each it is known what became of it: not where the tasks could not be read. What was refused when it was
 * done is RESTORED by now: REFUSED is what could not be undone.
 */
bool node_pinning_is_undone(const struct node_pinning *pinning);
/* Of what is not undone only that stays which is still moved, as MOVED: to be saved. Returns how many. */
u32 node_pinning_keep_moved(struct node_pinning *pinning);
/* Many, by one look at all tasks, or by as few as it takes. */
void node_pinnings_undo(struct node_pinning *const *pinning, u32 count);
/*
 * Moves all back that is MOVED and as it was made: that is WANTED again, and node_pinning_apply() goes on.
 * What others have changed meanwhile is CHANGED. false: some of it is to be tried again.
 */
bool node_pinning_lift(struct node_pinning *pinning);
/* Adds what threads and processes of these tasks have inherited, as MOVED. Returns how many, or -ENOMEM. */
int node_pinning_find_heirs(struct node_pinning *pinning, const struct node_tasks *tasks);
/*
 * Adds new tasks and interrupts as WANTED, at the end, drops those that are gone, and marks those
 * that others have changed. Returns how many were added (save, then apply), or -ENOMEM. To be
 * called time and again. New tasks are seen at once (scan.h); what has become of old ones within
 * two rounds of sixty calls. Interrupts are looked at when there are more or fewer, and with each twelfth
 * call. Without rules for tasks it costs a stat().
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
/* Only those from `from` on, behind the others: before they are applied. A torn line counts not. */
int node_pinning_append(const struct node_pinning *pinning, u32 from, const char *directory);
int node_pinning_load(struct node_pinning *pinning, const char *directory);
/* Removes the file, and what is left of one that was not finished. */
int node_pinning_forget(const char *directory);

#endif
