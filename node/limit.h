/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* How long a task's cgroups have been throttled: cpu.max (v1: cpu.cfs_quota_us) was used up. */
#ifndef COLL_NODE_LIMIT_H
#define COLL_NODE_LIMIT_H

#include "task.h"

struct node_limit {
	u64 throttled;			/* ns, added up over its cgroups and their CPUs */
	char cgroup[NODE_TASK_CGROUP];	/* the one that was throttled longest; "": none was */
};

/* Of both versions of cgroups, from its own group up to the root. Reads one file each. */
void node_limit_read(u32 pid, struct node_limit *limit);

#endif
