/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sets of CPUs, and the two ways that the kernel writes them: lists ("0-3,8")
 * and masks ("ff,00000000").
 */
#ifndef COLL_NOISE_CPUS_H
#define COLL_NOISE_CPUS_H

#include "core/port.h"

enum { NOISE_CPUS_MAX = 8192, NOISE_CPUS_TEXT = 2 * 8192 };

struct noise_cpus {
	u64 bits[NOISE_CPUS_MAX / 64];
};

void noise_cpus_add(struct noise_cpus *cpus, u32 cpu);
void noise_cpus_remove(struct noise_cpus *cpus, const struct noise_cpus *out);
void noise_cpus_keep(struct noise_cpus *cpus, const struct noise_cpus *in);
bool noise_cpus_has(const struct noise_cpus *cpus, u32 cpu);
bool noise_cpus_same(const struct noise_cpus *a, const struct noise_cpus *b);
u32 noise_cpus_count(const struct noise_cpus *cpus);
/* The first CPU that is not below `from`, or NOISE_CPUS_MAX. */
u32 noise_cpus_next(const struct noise_cpus *cpus, u32 from);

/* A newline may follow. False: malformed, or a CPU out of range. */
bool noise_cpus_read_list(struct noise_cpus *cpus, const char *text);
bool noise_cpus_read_mask(struct noise_cpus *cpus, const char *text);
/* Cut off when `text` is too short; NOISE_CPUS_TEXT is always enough. Return `text`. */
char *noise_cpus_list(const struct noise_cpus *cpus, char *text, size_t bytes);
char *noise_cpus_mask(const struct noise_cpus *cpus, char *text, size_t bytes);

/* Of a file under /sys or /proc that holds a list; false: there is none. */
bool noise_cpus_file(struct noise_cpus *cpus, const char *path);

/*
 * The hardware threads of each core beside its first, of those online.
 * `root` is /sys/devices/system/cpu. False: no core has two.
 */
bool noise_cpus_siblings(struct noise_cpus *siblings, const char *root);

/* Gets and sets the CPUs that a task (0: the caller) may run on. 0 or -errno. */
int noise_cpus_affinity(int task, struct noise_cpus *cpus);
int noise_cpus_set_affinity(int task, const struct noise_cpus *cpus);

#endif
