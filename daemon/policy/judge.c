// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "family.h"
#include "judge.h"
#include "node/priority.h"

enum { MEMBERS = 256 };		/* processes of a cgroup that may be frozen */

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

static bool is_of_job(const struct colld_case *of, const struct node_task *process)
{
	u32 i;

	for (i = 0; i < of->ranks; i++)
		if (!process->kthread && is_of_rank(of, process, of->rank[i]))
			return true;
	return false;
}

bool colld_is_of_users(const struct node_task *process)
{
	return process->uid >= COLLD_SYSTEM_USERS;
}

const char *colld_judge(const struct colld_case *of, const struct node_task *process)
{
	const struct node_rule *rule = node_rules_task(of->rules, process, of->tasks);

	if (process->bound)
		return "the kernel binds it";
	if (process->pid == 1 || (process->pid == 2 && process->kthread))
		return "what it starts would be moved, too";
	if (is_of_colld(of, process))
		return "it is colld, or has started it";
	if (rule && rule->keep)
		return "a keep line of the policy names it";
	if (!node_task_shares_pids(process->pid))
		return "it is in a container: it has a namespace of pids of its own, or that cannot be read";
	if (is_of_job(of, process))
		return "it is of a job";
	return NULL;
}

/* Who has a real-time policy has it on purpose. */
const char *colld_judge_hold(const struct node_task *process, bool freeze)
{
	char policy[NODE_PRIORITY_TEXT];

	if (process->kthread)
		return "it is of the kernel, and not held back";
	if (!freeze && !node_policy_may_return())
		return "colld could not give back its policy: it has no CAP_SYS_NICE";
	if (node_policy_read(process->pid, policy))
		return "its policy cannot be read";
	if (!node_policy_yields(policy) && strcmp(policy, node_policy_idle))
		return "it has a real-time policy";
	/* What it starts would inherit that from it, and what it is held back by looks the same. */
	if (!strcmp(policy, node_policy_idle))
		return "it has SCHED_IDLE already";
	return NULL;
}

const char *colld_judge_family(const struct colld_case *of, const struct node_task *process)
{
	u32 i, count = 0;

	for (i = 0; i < of->tasks->count; i++) {
		const struct node_task *task = &of->tasks->task[i];

		if (!node_tasks_below(of->tasks, task, process->pid))
			continue;
		if (colld_family_spares(task, of->rank, of->ranks))
			return "it has started a process of a user, a container or a job";
		if (++count > COLLD_FAMILY_MOST)
			return colld_family_large;
	}
	return NULL;
}

static const char *judge_member(const struct node_tasks *members, const struct node_task *member, u32 pid,
				const u32 *rank, u32 ranks)
{
	u32 i;

	if (member->kthread || member->pid == 1 || member->uid >= COLLD_SYSTEM_USERS)
		return "a process of the kernel, init, or a user is in its cgroup";
	if (!node_tasks_below(members, member, pid))
		return "it is not alone in its cgroup";
	for (i = 0; i < ranks; i++)
		if (rank[i] == member->pid)
			return "a rank is in its cgroup";
	return NULL;
}

/* One that has ended meanwhile is none. */
static const char *read_member(struct node_tasks *members, u32 pid)
{
	struct node_task member;

	if (!pid)
		return "a process of another namespace is in its cgroup";
	if (!node_task_read(pid, pid, &member))
		return NULL;
	if (!node_task_shares_pids(pid) && node_task_is(pid, member.born))
		return "a process of a container is in its cgroup";
	return node_tasks_add(members, &member) ? "there is no memory to look at its cgroup" : NULL;
}

static const char *read_members(struct node_tasks *members, const u32 *pid, u32 count)
{
	const char *why = NULL;
	u32 i;

	for (i = 0; !why && i < count; i++)
		why = read_member(members, pid[i]);
	node_tasks_sort(members);
	return why;
}

const char *colld_judge_cgroup(const struct node_freezer *freezer, u32 pid, const u32 *rank, u32 ranks)
{
	struct node_tasks members = { .count = 0 };
	u32 all[MEMBERS], i;
	const int count = node_freezer_members(freezer, all, MEMBERS);
	const char *why;

	if (count < 0)
		return count == -EBUSY ? "its cgroup has others below it" : "its cgroup cannot be read";
	why = read_members(&members, all, count);
	if (!why && !node_tasks_find(&members, pid))
		why = "it is not in its cgroup any more";
	for (i = 0; !why && i < members.count; i++)
		why = judge_member(&members, &members.task[i], pid, rank, ranks);
	node_tasks_free(&members);
	return why;
}

static bool is_member(const struct node_freezer *freezer, u32 pid)
{
	u32 all[MEMBERS];
	int i, count = node_freezer_members(freezer, all, MEMBERS);

	for (i = 0; i < count; i++)
		if (all[i] == pid)
			return true;
	return false;
}

const char *colld_may_freeze(const struct node_rules *rules, u32 pid, struct node_freezer *freezer)
{
	u32 i;

	for (i = 0; i < rules->holds; i++)
		if (!node_freezer_find(freezer, rules->hold[i].cgroup) && is_member(freezer, pid))
			return rules->hold[i].cgroup;
	return NULL;
}
