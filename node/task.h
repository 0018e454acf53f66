/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The threads of this machine, from /proc. */
#ifndef COLL_NODE_TASK_H
#define COLL_NODE_TASK_H

#include "cpus.h"

enum { NODE_TASK_COMM = 32, NODE_TASK_CGROUP = 128 };

struct node_task {
	u32 tid, pid, parent;	/* pid: of the process; parent: of that process */
	u64 born;		/* ticks since boot: tells a number used again apart */
	u32 uid;
	bool kthread, bound;	/* bound: the kernel refuses to move it */
	bool beside;		/* read for what it says of others: nothing is to be done with it */
	char comm[NODE_TASK_COMM];
	char cgroup[NODE_TASK_CGROUP];	/* cut off when longer */
	struct node_cpus may;
};

/* In order of tid. */
struct node_tasks {
	struct node_task *task;
	u32 count, room;
};

/*
 * 0; -ENOMEM; -errno: no /proc, or no descriptors for it (-EMFILE); -ESRCH: the caller is not there. Then
 * there are none. Threads that start or end meanwhile may be missing.
 */
int node_tasks_look(struct node_tasks *tasks);
void node_tasks_free(struct node_tasks *tasks);

/* One thread. false: it has ended. */
bool node_task_read(u32 pid, u32 tid, struct node_task *task);

/* Whether the number is still the task's that was born then. -1: it cannot be said, for want of descriptors. */
int node_task_is(u32 tid, u64 born);

/* The process that a thread belongs to. 0: it has ended. */
u32 node_task_process(u32 tid);

/*
 * Whether the process is in the namespace of pids that the caller is in: not in a container. false, too, where
 * that cannot be read: it has ended, or there is no descriptor or right to it.
 */
bool node_task_shares_pids(u32 pid);

/* This process, as /proc has it. 0: not at all, and errno says why. */
u32 node_task_self(void);

/* Adds one, or all threads of a process; to be sorted afterwards. 0, -ENOMEM; -errno: no descriptor. */
int node_tasks_add(struct node_tasks *tasks, const struct node_task *task);
int node_tasks_add_process(struct node_tasks *tasks, u32 pid);
void node_tasks_sort(struct node_tasks *tasks);

/* The thread's cgroup: of the first hierarchy listed where it is not the root's, or "/". false: it
   cannot be read, and "/" is there. */
bool node_task_cgroup(u32 tid, char cgroup[NODE_TASK_CGROUP]);

/* NULL: there is none. */
const struct node_task *node_tasks_find(const struct node_tasks *tasks, u32 tid);
/* Whether the task is this process's, or a descendant's. */
bool node_tasks_below(const struct node_tasks *tasks, const struct node_task *task, u32 pid);

#endif
