/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * One task, interrupt or file of the kernel with a CPU mask: where it is, was and goes. Or what gives a
 * task its part of a CPU: its policy, its session's weight, the freezer of its cgroup.
 */
#ifndef COLL_NODE_PIN_H
#define COLL_NODE_PIN_H

#include "task.h"

enum node_pin_kind {
	NODE_PIN_TASK,		/* its CPUs */
	NODE_PIN_IRQ,
	NODE_PIN_FILE,
	NODE_PIN_POLICY,	/* of a task: priority.h */
	NODE_PIN_SESSION,	/* ... of its session: priority.h */
	NODE_PIN_FREEZER,	/* a cgroup: 0 or 1 */
	NODE_PIN_KINDS,
};

enum node_pin_state {
	NODE_PIN_WANTED,	/* to be moved */
	NODE_PIN_MOVED,
	NODE_PIN_AWAY,		/* it was elsewhere already */
	NODE_PIN_KEPT,		/* by a rule, or the caller and its parents */
	NODE_PIN_PER_CPU,	/* a kernel thread of one CPU, or one that the kernel binds */
	NODE_PIN_BOUND,	/* bound there by itself, or by somebody on purpose */
	NODE_PIN_MANAGED,	/* an interrupt that its driver binds */
	NODE_PIN_REFUSED,	/* see error */
	NODE_PIN_GONE,
	NODE_PIN_CHANGED,	/* by somebody else since: left alone */
	NODE_PIN_RESTORED,
	NODE_PIN_STATES,
};

struct node_pin {
	enum node_pin_kind kind;
	enum node_pin_state state;
	u32 number;		/* tid or irq */
	u64 born;		/* of a task */
	char name[NODE_TASK_CGROUP];	/* comm, interrupt, cgroup, or path */
	char *before, *after;	/* as the kernel says it: a list, or what the file holds */
	int error;
	bool cut;		/* a cpuset, or CPUs that are offline, have left some of it out: of
				   one that is MOVED `after` is what is there */
	u32 seen;		/* the round of the sweep that has found it (pinning.h) */
};

/* The masks of the unbound work and of new interrupts: the only FILEs. */
extern const char node_pin_workqueues[], node_pin_default_irq[];

const char *node_pin_state_name(enum node_pin_state state);
const char *node_pin_kind_name(enum node_pin_kind kind);
/* NODE_PIN_KINDS: there is none. */
enum node_pin_kind node_pin_kind_read(const char *name);
/* Whether its number is a task's. */
bool node_pin_is_of_task(enum node_pin_kind kind);

/* Where it may run now, as the kernel writes it. 0 or a negative errno. */
int node_pin_read(const struct node_pin *pin, char text[NODE_CPUS_TEXT]);
/* Masks are equal with other zeros and commas too. */
bool node_pin_text_equal(const struct node_pin *pin, const char *a, const char *b);
/* Where it is, by what is there now. Of a task's CPUs those that are not online do not count. */
enum node_pin_place { NODE_PIN_IS_BEFORE, NODE_PIN_IS_AFTER, NODE_PIN_IS_ELSEWHERE };
enum node_pin_place node_pin_place(const struct node_pin *pin, const char *now,
				   const struct node_cpus *online);
/*
 * WANTED: moves it. The state says what became of it. What holds a task back is not touched where it is
 * not as it was before any more: CHANGED.
 */
void node_pin_apply(struct node_pin *pin);
/*
 * Moves it back, unless others have moved it since; where its CPUs are not there any more, to all that are.
 * What holds a task back, and is WANTED, is let go: that is RESTORED as it is.
 * The state stays where it cannot be read whether it is the same task.
 */
void node_pin_undo(struct node_pin *pin);

#endif
