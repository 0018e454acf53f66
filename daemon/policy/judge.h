/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What may be moved away from a job's cores, or held back, whoever asks. */
#ifndef COLL_DAEMON_JUDGE_H
#define COLL_DAEMON_JUDGE_H

#include "node/freezer.h"
#include "node/rules.h"

enum { COLLD_SYSTEM_USERS = 1000 };	/* those below are root's and the system's */

struct colld_case {
	const struct node_rules *rules;
	const struct node_tasks *tasks;
	const u32 *rank;	/* processes of its ranks, and of those of all other users' jobs */
	u32 ranks;
};

/* It is of a user who is no system user, whose job it may be: nothing is to be done or said. */
bool colld_is_of_users(const struct node_task *process);
/*
 * Of another one. NULL: it may be. Else why not: it is init, colld, bound by the kernel, in a namespace
 * of pids of its own or in one that cannot be read, a `keep` line of the policy names it, or it is of a
 * job: above a rank, below what started one, or in its session.
 */
const char *colld_judge(const struct colld_case *of, const struct node_task *process);
/* ... and whether it may be held back: by its policy, unless its cgroup is to be frozen; */
const char *colld_judge_hold(const struct node_task *process, bool freeze);
/* ... and with what it has started, which inherits its policy. */
const char *colld_judge_family(const struct colld_case *of, const struct node_task *process);
/*
 * Whether the process is alone in the cgroup, with what it has started: no rank, no other user, no other
 * cgroup below. What it has is read anew: it may have changed since the look at the tasks.
 */
const char *colld_judge_cgroup(const struct node_freezer *freezer, u32 pid, const u32 *rank, u32 ranks);
/* The cgroup of the process that the policy allows to be frozen; or NULL. */
const char *colld_may_freeze(const struct node_rules *rules, u32 pid, struct node_freezer *freezer);

#endif
