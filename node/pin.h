/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One task, interrupt or file of the kernel with a CPU mask: where it is, was and goes. */
#ifndef COLL_NODE_PIN_H
#define COLL_NODE_PIN_H

#include "task.h"

enum node_pin_kind { NODE_PIN_TASK, NODE_PIN_IRQ, NODE_PIN_FILE };

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
	char name[64];		/* comm, interrupt, or path */
	char *before, *after;	/* as the kernel says it: a list, or what the file holds */
	int error;
	bool cut;		/* a cpuset has left some CPUs of it out: `after` is what is there */
	u32 seen;		/* the round of the sweep that has found it (pinning.h) */
};

/* The masks of the unbound work and of new interrupts: the only FILEs. */
extern const char node_pin_workqueues[], node_pin_default_irq[];

const char *node_pin_state_name(enum node_pin_state state);

/* Where it may run now, as the kernel writes it. 0 or a negative errno. */
int node_pin_read(const struct node_pin *pin, char text[NODE_CPUS_TEXT]);
/* Whether the number is still the same task's. */
bool node_pin_is_same(const struct node_pin *pin, const struct node_tasks *tasks);
/* Masks are equal with other zeros and commas too. */
bool node_pin_text_equal(const struct node_pin *pin, const char *a, const char *b);
/* WANTED: moves it. The state says what became of it. */
void node_pin_apply(struct node_pin *pin);
/* Moves it back, unless others have moved it since. */
void node_pin_undo(struct node_pin *pin, const struct node_tasks *tasks);

#endif
