/* SPDX-License-Identifier: GPL-2.0 */
/* Entries of pinned tasks, for pin_tasks.c. */
#ifndef COLL_KMOD_PIN_ENTRY_H
#define COLL_KMOD_PIN_ENTRY_H

#include <linux/mutex.h>

#include "pin.h"

/* States besides enum coll_pin_state: CPUs given back, but a fork may be in progress; shown of one that exits. */
enum { COLL_PIN_RESTORED = COLL_PIN_CHANGED + 1, COLL_PIN_GONE };

/* Held by all that change or free entries. */
extern struct mutex kcoll_pin_mutex;

/* Entries for births, which probes take: before they are attached, and often. May sleep. */
int kcoll_pin_entries_reserve(void);
/* When no probe is attached. */
void kcoll_pin_entries_end(void);
/* An entry for a task that has none; NULL: no memory. May sleep. */
struct pin_task *kcoll_pin_track(struct task_struct *task);
void kcoll_pin_entry_free(struct pin_task *pinned);
/* Valid while the mutex is held. */
struct pin_task *kcoll_pin_find(const struct task_struct *task);
/* The entry after `pinned`, or the first; entries may be added meanwhile. */
struct pin_task *kcoll_pin_next(struct pin_task *pinned);
/* Any context. */
bool kcoll_pin_is_tracked(const struct task_struct *task);
/* Tracks the child of a pinned task; false: the parent is not pinned. Any context. */
bool kcoll_pin_inherit(const struct task_struct *parent, struct task_struct *child);

/* What is to be done with a task that a rule has been assigned to. */
enum kcoll_pin_assign {
	COLL_PIN_ASSIGN_NONE,		/* nothing: somebody else has its CPUs */
	COLL_PIN_ASSIGN_CHANGED,	/* that is new */
	COLL_PIN_ASSIGN_IN_PLACE,	/* it is where the rule wants it */
	COLL_PIN_ASSIGN_MOVE,
	COLL_PIN_ASSIGN_STAY,		/* it could not be moved before, or no CPU is active */
};

/*
 * Assigns the rule of this number, with these CPUs. known: it had this rule. At once, since the
 * birth of the task may be told meanwhile, by which it inherits from its parent.
 */
enum kcoll_pin_assign kcoll_pin_assign(struct pin_task *pinned, int rule,
				       const struct cpumask *cpus, bool *known);
void kcoll_pin_set_state(struct pin_task *pinned, u8 state, int error);
/* Notes the CPUs the task has now as those it belongs on; stranded: until some of its rule's are online. */
void kcoll_pin_set_where(struct pin_task *pinned, bool stranded);
/*
 * No CPU noted is active, or none was: it is the scheduler that has given it others. That goes by active CPUs, which a CPU
 * is not any more before it is offline, and not yet when it is online.
 */
bool kcoll_pin_is_stranded(const struct pin_task *pinned);
/* Whether the task has the CPUs noted; else another program has changed them. */
bool kcoll_pin_in_place(const struct pin_task *pinned);

/* pin_move.c, with the mutex held */
/*
 * false: put off, for the task does not leave its CPU; what it had it has. Takes a tenth of a second
 * at most, unless the task moves and disables migration again just as it is given up: then as long as
 * that lasts.
 */
bool kcoll_pin_move(struct pin_task *pinned, struct pin_rule *rule);
/* Gives the task the CPUs it had, unless another program has changed them. As long at most. */
void kcoll_pin_restore(struct pin_task *pinned);

#endif
