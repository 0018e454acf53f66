/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One task, interrupt or file of the kernel with a CPU mask: where it is, was and goes. */
#ifndef COLL_NOISE_PIN_H
#define COLL_NOISE_PIN_H

#include "task.h"

enum noise_pin_kind { NOISE_PIN_TASK, NOISE_PIN_IRQ, NOISE_PIN_FILE };

enum noise_pin_state {
	NOISE_PIN_WANTED,	/* to be moved */
	NOISE_PIN_MOVED,
	NOISE_PIN_AWAY,		/* it was elsewhere already */
	NOISE_PIN_KEPT,		/* by a rule, or the caller and its parents */
	NOISE_PIN_PER_CPU,	/* a kernel thread of one CPU, or one that the kernel binds */
	NOISE_PIN_BOUND,	/* bound there by itself, or by somebody on purpose */
	NOISE_PIN_MANAGED,	/* an interrupt that its driver binds */
	NOISE_PIN_REFUSED,	/* see error */
	NOISE_PIN_GONE,
	NOISE_PIN_CHANGED,	/* by somebody else since: left alone */
	NOISE_PIN_RESTORED,
	NOISE_PIN_STATES,
};

struct noise_pin {
	enum noise_pin_kind kind;
	enum noise_pin_state state;
	u32 number;		/* tid or irq */
	u64 born;		/* of a task */
	char name[64];		/* comm, interrupt, or path */
	char *before, *after;	/* as the kernel says it: a list, or what the file holds */
	int error;
};

/* The masks of the unbound work and of new interrupts: the only FILEs. */
extern const char noise_pin_workqueues[], noise_pin_default_irq[];

const char *noise_pin_state_name(enum noise_pin_state state);

/* Where it may run now, as the kernel writes it. 0 or a negative errno. */
int noise_pin_read(const struct noise_pin *pin, char text[NOISE_CPUS_TEXT]);
/* Whether the number is still the same task's. */
bool noise_pin_is_same(const struct noise_pin *pin, const struct noise_tasks *tasks);
/* Masks are equal with other zeros and commas too. */
bool noise_pin_text_equal(const struct noise_pin *pin, const char *a, const char *b);
/* WANTED: moves it. The state says what became of it. */
void noise_pin_apply(struct noise_pin *pin);
/* Moves it back, unless others have moved it since. */
void noise_pin_undo(struct noise_pin *pin, const struct noise_tasks *tasks);

#endif
