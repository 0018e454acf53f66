// SPDX-License-Identifier: GPL-2.0
/* Which rule a task matches: by name, cgroup, ancestor, user. */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/glob.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pin.h"

static bool rule_comm_matches(const struct pin_rule *rule, struct task_struct *task,
			      const char *comm)
{
	char of_process[TASK_COMM_LEN];

	if (!rule->comm[0] || glob_match(rule->comm, comm))
		return true;
	if (thread_group_leader(task))
		return false;
	strscpy(of_process, READ_ONCE(task->group_leader)->comm, sizeof(of_process));
	return glob_match(rule->comm, of_process);
}

/*
 * No daemon's processes nest deeper than that, and a user who nests thousands must not cost
 * thousands of steps for each of them.
 */
enum { ANCESTORS_MAX = 256 };

static bool task_descends_from(struct task_struct *task, const struct pid *parent)
{
	struct task_struct *above = task;
	u32 i;

	for (i = 0; above != &init_task && i < ANCESTORS_MAX; i++) {
		if (!pid_alive(above))	/* exited and released: its parent may be freed */
			return false;
		above = rcu_dereference(above->real_parent);
		if (task_tgid(above) == parent)
			return true;
	}
	return false;
}

static bool rule_matches(const struct pin_rule *rule, struct task_struct *task, const char *comm,
			 bool was)
{
	if (rule->kthread != !!(READ_ONCE(task->flags) & PF_KTHREAD))
		return false;
	if (uid_valid(rule->uid) && !uid_eq(rule->uid, task_uid(task)))
		return false;
	if (rule->cgroup && !cgroup_is_descendant(task_dfl_cgroup(task), rule->cgroup))
		return false;
	if (!rule_comm_matches(rule, task, comm))
		return false;
	return !rule->parent || was || task_descends_from(task, rule->parent);
}

int kcoll_pin_rules_match(const struct pin_rules *rules, struct task_struct *task, const char *comm,
			  int was)
{
	u32 i;

	for (i = 0; i < rules->count; i++)
		if (rule_matches(&rules->rule[i], task, comm, was == i))
			return i;
	return -1;
}

void kcoll_pin_rules_free(struct pin_rules *rules)
{
	u32 i;

	if (!rules)
		return;
	for (i = 0; i < rules->count; i++) {
		if (rules->rule[i].cgroup)
			cgroup_put(rules->rule[i].cgroup);
		put_pid(rules->rule[i].parent);
		free_cpumask_var(rules->rule[i].cpus);
	}
	free_cpumask_var(rules->housekeeping);
	kvfree(rules);
}
