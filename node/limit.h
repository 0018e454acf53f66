/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* How long a task's cgroups have been throttled: cpu.max (v1: cpu.cfs_quota_us) was used up. */
#ifndef COLL_NODE_LIMIT_H
#define COLL_NODE_LIMIT_H

#include "task.h"

enum { NODE_LIMIT_LEVELS = 16 };

/* One cgroup that has such an account. */
struct node_limit_level {
	u64 throttled;			/* ns, added up over the CPUs that it had tasks on */
	u64 key;			/* of its whole path: tells cgroups apart */
	char cgroup[NODE_TASK_CGROUP];	/* the end of a longer one */
};

/* From the task's own one up; of more levels the lowest ones. */
struct node_limit {
	struct node_limit_level level[NODE_LIMIT_LEVELS];
	u32 levels;
};

/*
 * Of both versions of cgroups, up to the root, which has an account where it is the root of a
 * namespace of cgroups: a container's. Reads one file each.
 */
void node_limit_read(u32 pid, struct node_limit *limit);

/*
 * The level that was throttled most between two readings, and for how long. NULL: none was; one that
 * the task has come into since the first of them does not count.
 */
const struct node_limit_level *node_limit_most(const struct node_limit *before,
					       const struct node_limit *now, u64 *ns);
/* Whether the cgroup is among these. */
bool node_limit_has(const struct node_limit *limit, const struct node_limit_level *level);

#endif
