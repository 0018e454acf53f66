/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The threads of this machine, from /proc. */
#ifndef COLL_NOISE_TASK_H
#define COLL_NOISE_TASK_H

#include "cpus.h"

enum { NOISE_TASK_COMM = 32, NOISE_TASK_CGROUP = 128 };

struct noise_task {
	u32 tid, pid, parent;	/* pid: of the process; parent: of that process */
	u64 born;		/* ticks since boot: tells a number used again apart */
	u32 uid;
	bool kthread, bound;	/* bound: the kernel refuses to move it */
	char comm[NOISE_TASK_COMM];
	char cgroup[NOISE_TASK_CGROUP];	/* cut off when longer */
	struct noise_cpus may;
};

/* In order of tid. */
struct noise_tasks {
	struct noise_task *task;
	u32 count, room;
};

/* 0 or -ENOMEM. Threads that start or end meanwhile may be missing. */
int noise_tasks_look(struct noise_tasks *tasks);
void noise_tasks_free(struct noise_tasks *tasks);

/* NULL: there is none. */
const struct noise_task *noise_tasks_find(const struct noise_tasks *tasks, u32 tid);
/* Whether the task is this process's, or a descendant's. */
bool noise_tasks_below(const struct noise_tasks *tasks, const struct noise_task *task, u32 pid);

#endif
