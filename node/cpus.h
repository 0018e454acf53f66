/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sets of CPUs, and the two ways that the kernel writes them: lists ("0-3,8")
 * and masks ("ff,00000000").
 */
#ifndef COLL_NODE_CPUS_H
#define COLL_NODE_CPUS_H

#include "core/port.h"

enum { NODE_CPUS_MAX = 8192, NODE_CPUS_TEXT = 2 * 8192 };

struct node_cpus {
	u64 bits[NODE_CPUS_MAX / 64];
};

void node_cpus_add(struct node_cpus *cpus, u32 cpu);
void node_cpus_remove(struct node_cpus *cpus, const struct node_cpus *out);
void node_cpus_keep(struct node_cpus *cpus, const struct node_cpus *in);
bool node_cpus_has(const struct node_cpus *cpus, u32 cpu);
bool node_cpus_same(const struct node_cpus *a, const struct node_cpus *b);
u32 node_cpus_count(const struct node_cpus *cpus);
/* The first CPU that is not below `from`, or NODE_CPUS_MAX. */
u32 node_cpus_next(const struct node_cpus *cpus, u32 from);

/* A newline may follow. False: malformed, or a CPU out of range. */
bool node_cpus_read_list(struct node_cpus *cpus, const char *text);
bool node_cpus_read_mask(struct node_cpus *cpus, const char *text);
/* Cut off when `text` is too short; NODE_CPUS_TEXT is always enough. Return `text`. */
char *node_cpus_list(const struct node_cpus *cpus, char *text, size_t bytes);
char *node_cpus_mask(const struct node_cpus *cpus, char *text, size_t bytes);

/* Of a file under /sys or /proc that holds a list; false: there is none. */
bool node_cpus_file(struct node_cpus *cpus, const char *path);

/*
 * The hardware threads of each core beside its first, of those online.
 * `root` is /sys/devices/system/cpu. False: no core has two.
 */
bool node_cpus_siblings(struct node_cpus *siblings, const char *root);

/* Gets and sets the CPUs that a task (0: the caller) may run on. 0 or -errno. */
int node_cpus_affinity(int task, struct node_cpus *cpus);
int node_cpus_set_affinity(int task, const struct node_cpus *cpus);

#endif
