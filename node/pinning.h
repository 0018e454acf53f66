/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Moving tasks, interrupts and the kernel's unbound work away from the
 * application's CPUs, from user space. What was is kept in a file, written
 * before anything is changed: undoing needs nothing else, whatever happened
 * since. What somebody else has changed meanwhile is left alone.
 */
#ifndef COLL_NOISE_PINNING_H
#define COLL_NOISE_PINNING_H

#include "rules.h"

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

struct noise_pinning {
	struct noise_pin *pin;
	u32 count, room;
};

const char *noise_pin_state_name(enum noise_pin_state state);

/* Everything that the rules say something about, and what would become of it. */
int noise_pinning_plan(struct noise_pinning *pinning, const struct noise_rules *rules);
/* Does what is wanted. Never fails as a whole: see the states. */
void noise_pinning_apply(struct noise_pinning *pinning);
/*
 * Undoes what was done, and moves back too what tasks that were moved have
 * started since.
 */
void noise_pinning_undo(struct noise_pinning *pinning);
/*
 * Adds what has come since and is to be moved, and notices what others have changed
 * (which is left alone) and who has gone. How many were added: save, then apply.
 * Negative: -ENOMEM.
 */
int noise_pinning_renew(struct noise_pinning *pinning, const struct noise_rules *rules);
void noise_pinning_free(struct noise_pinning *pinning);
u32 noise_pinning_count(const struct noise_pinning *pinning, enum noise_pin_state state);

/*
 * The file of what is wanted or was moved. Save it before it is applied, and anew
 * after that; the first time fails with -EEXIST when there is one: undo that. Load:
 * -ENOENT, there is none; -EINVAL, it is damaged.
 */
int noise_pinning_save(const struct noise_pinning *pinning, const char *directory, bool anew);
int noise_pinning_load(struct noise_pinning *pinning, const char *directory);
int noise_pinning_forget(const char *directory);

#endif
