/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Moves tasks, interrupts and the kernel's unbound work away from the application's
 * CPUs, from user space. A file keeps the former state. It is written before any
 * change, and undoing needs nothing else. What others have changed since is left alone.
 */
#ifndef COLL_NOISE_PINNING_H
#define COLL_NOISE_PINNING_H

#include "pin.h"
#include "rules.h"

struct noise_pinning {
	struct noise_pin *pin;
	u32 count, room;
};

/* Adds a copy, with copies of the two texts. NULL: no memory. */
struct noise_pin *noise_pinning_add(struct noise_pinning *pinning, const struct noise_pin *pin,
				    const char *before, const char *after);

/* All that a rule matches, and what would become of it. Changes nothing. */
int noise_pinning_plan(struct noise_pinning *pinning, const struct noise_rules *rules);
/* Moves what is WANTED. Never fails as a whole: see the states. */
void noise_pinning_apply(struct noise_pinning *pinning);
/* Moves everything back, and the tasks that moved tasks have started since. */
void noise_pinning_undo(struct noise_pinning *pinning);
/*
 * Adds new tasks and interrupts as WANTED, drops those that are gone, and marks those that
 * others have changed. Returns how many were added (save, then apply), or -ENOMEM.
 */
int noise_pinning_renew(struct noise_pinning *pinning, const struct noise_rules *rules);
void noise_pinning_free(struct noise_pinning *pinning);
u32 noise_pinning_count(const struct noise_pinning *pinning, enum noise_pin_state state);

/*
 * The file of what is WANTED or MOVED, for undoing. Save before apply, and again after it.
 * Without `anew`, -EEXIST if there is a file: load and undo that first. Load: -ENOENT,
 * there is none; -EINVAL, it is damaged.
 */
int noise_pinning_save(const struct noise_pinning *pinning, const char *directory, bool anew);
int noise_pinning_load(struct noise_pinning *pinning, const char *directory);
int noise_pinning_forget(const char *directory);

#endif
