// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "judge.h"
#include "node/small_file.h"

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

/* A container's: it has a number there, too. */
static bool has_own_numbers(u32 pid)
{
	static const char name[] = "\nNSpid:";
	unsigned int here, there;
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (!node_read_small(path, text, sizeof(text)) || !(at = strstr(text, name)))
		return false;
	at += sizeof(name) - 1;
	at[strcspn(at, "\n")] = 0;
	return sscanf(at, "%u %u", &here, &there) == 2;
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
	if (has_own_numbers(process->pid))
		return "it is in a container: it has a namespace of pids of its own";
	if (is_of_job(of, process))
		return "it is of a job";
	return NULL;
}
