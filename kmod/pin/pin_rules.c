// SPDX-License-Identifier: GPL-2.0
/* Which rule a task matches: by name, cgroup, ancestor, user. */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/glob.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/stringhash.h>

#include "pin.h"

static u32 name_hash(const char *name)
{
	return full_name_hash(NULL, name, strlen(name)) % PIN_CHAINS;
}

void kcoll_pin_rules_chain(struct pin_rules *rules)
{
	u32 i;

	for (i = rules->count; i > 0; i--) {
		struct pin_rule *rule = &rules->rule[i - 1];
		u16 *chain = !rule->comm[0] || strpbrk(rule->comm, "*?[\\") ? &rules->any :
			     &rules->named[name_hash(rule->comm)];

		rule->next = *chain;
		*chain = i;
	}
}

/* The name of a thread's process. false: it is the task itself, or has ended and may be freed. */
static bool name_of_process(struct task_struct *task, char name[TASK_COMM_LEN])
{
	if (thread_group_leader(task) || !pid_alive(task))
		return false;
	strscpy(name, READ_ONCE(task->group_leader)->comm, TASK_COMM_LEN);
	return true;
}

static bool rule_comm_matches(const struct pin_rule *rule, struct task_struct *task,
			      const char *comm)
{
	char of_process[TASK_COMM_LEN];

	if (!rule->comm[0] || glob_match(rule->comm, comm))
		return true;
	return name_of_process(task, of_process) && glob_match(rule->comm, of_process);
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

/* The lower one of `best` and the chain's first that matches; both one above the index, 0: none. */
static u32 chain_match(const struct pin_rules *rules, u32 chain, struct task_struct *task,
		       const char *comm, int was, u32 best)
{
	u32 at;

	for (at = chain; at && (!best || at < best); at = rules->rule[at - 1].next)
		if (rule_matches(&rules->rule[at - 1], task, comm, was == at - 1))
			return at;
	return best;
}

int kcoll_pin_rules_match(const struct pin_rules *rules, struct task_struct *task, const char *comm,
			  int was)
{
	char name[TASK_COMM_LEN];
	u32 best = chain_match(rules, rules->any, task, comm, was, 0);

	best = chain_match(rules, rules->named[name_hash(comm)], task, comm, was, best);
	if (name_of_process(task, name))
		best = chain_match(rules, rules->named[name_hash(name)], task, comm, was, best);
	return (int)best - 1;
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
