// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <unistd.h>

#include "judge.h"

/* Above colld, or below. */
static bool is_of_colld(const struct colld_case *of, const struct node_task *process)
{
	const u32 self = getpid();
	const struct node_task *colld = node_tasks_find(of->tasks, self);

	return node_tasks_below(of->tasks, process, self) ||
	       (colld && node_tasks_below(of->tasks, colld, process->pid));
}

static bool is_of_rank(const struct colld_case *of, const struct node_task *process, u32 pid)
{
	const struct node_task *rank = node_tasks_find(of->tasks, pid);

	if (!rank)
		return false;
	return getsid(process->pid) == getsid(pid) ||
	       node_tasks_below(of->tasks, rank, process->pid) ||
	       node_tasks_below(of->tasks, process, rank->parent > 1 ? rank->parent : pid);
}

/*
 * All of an ordinary user is; of a job of root or of the system what is above a rank, below what
 * started it, or in its session.
 */
static bool is_of_job(const struct colld_case *of, const struct node_task *process)
{
	u32 i;

	if (of->user >= COLLD_SYSTEM_USERS && process->uid == of->user)
		return true;
	for (i = 0; i < of->ranks; i++)
		if (!process->kthread && is_of_rank(of, process, of->rank[i]))
			return true;
	return false;
}

const char *colld_judge(const struct colld_case *of, const struct node_task *process)
{
	const struct node_rule *rule = node_rules_task(of->rules, process, of->tasks);

	if (process->bound)
		return "the kernel binds it";
	if (process->pid == 1)
		return "what it starts would be moved, too";
	if (is_of_colld(of, process))
		return "it is colld, or has started it";
	if (is_of_job(of, process))
		return "it is of the job";
	if (process->uid >= COLLD_SYSTEM_USERS)
		return "it is of a user; valid: users below 1000";
	if (rule && rule->keep)
		return "a keep line of the policy names it";
	return NULL;
}
