// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the rules say something about, and what would become of it. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pinning.h"

/* ---- tasks ---------------------------------------------------------------- */

/* Bound on purpose: it may run on the application's CPUs only. */
static bool plan_is_bound(const struct node_task *task, const struct node_rules *rules)
{
	struct node_cpus elsewhere = task->may;

	node_cpus_remove(&elsewhere, &rules->application);
	return !node_cpus_count(&elsewhere);
}

static bool plan_touches(const struct node_cpus *may, const struct node_cpus *cpus)
{
	struct node_cpus both = *may;

	node_cpus_keep(&both, cpus);
	return node_cpus_count(&both) > 0;
}

static enum node_pin_state plan_judge_task(const struct node_task *task,
					   const struct node_rules *rules,
					   const struct node_rule *rule,
					   const struct node_task *self,
					   const struct node_tasks *tasks)
{
	if (!plan_touches(&task->may, &rules->application))
		return NODE_PIN_AWAY;
	if (rule->keep || (self && node_tasks_below(tasks, self, task->pid)))
		return NODE_PIN_KEPT;
	if (task->bound)
		return NODE_PIN_PER_CPU;
	if (plan_is_bound(task, rules))
		return NODE_PIN_BOUND;
	return NODE_PIN_WANTED;
}

static int plan_add_task(struct node_pinning *pinning, const struct node_rules *rules,
			 const struct node_rule *rule, const struct node_task *task,
			 enum node_pin_state state)
{
	struct node_pin pin = { .kind = NODE_PIN_TASK, .state = state, .number = task->tid,
				.born = task->born };
	char before[NODE_CPUS_TEXT], after[NODE_CPUS_TEXT];

	snprintf(pin.name, sizeof(pin.name), "%s", task->comm);
	node_cpus_list(&task->may, before, sizeof(before));
	node_cpus_list(rule->to ? rule->to : &rules->housekeeping, after, sizeof(after));
	return node_pinning_add(pinning, &pin, before, after) ? 0 : -ENOMEM;
}

static int plan_task(struct node_pinning *pinning, const struct node_rules *rules,
		     const struct node_task *task, const struct node_task *self,
		     const struct node_tasks *tasks)
{
	const struct node_rule *rule = node_rules_task(rules, task, tasks);

	return rule ? plan_add_task(pinning, rules, rule, task,
				    plan_judge_task(task, rules, rule, self, tasks)) : 0;
}

int node_pinning_plan_move(struct node_pinning *pinning, const struct node_rules *rules,
			   const struct node_task *task, const struct node_tasks *tasks)
{
	const struct node_rule *rule = plan_touches(&task->may, &rules->application) ?
					       node_rules_task(rules, task, tasks) : NULL;
	int status;

	if (!rule || plan_judge_task(task, rules, rule, node_tasks_find(tasks, getpid()), tasks) !=
			     NODE_PIN_WANTED)
		return 0;
	status = plan_add_task(pinning, rules, rule, task, NODE_PIN_WANTED);
	return status ? status : 1;
}

static int plan_tasks(struct node_pinning *pinning, const struct node_rules *rules)
{
	struct node_tasks tasks;
	const struct node_task *self;
	int status = node_tasks_look(&tasks);
	u32 i;

	self = node_tasks_find(&tasks, getpid());
	for (i = 0; !status && i < tasks.count; i++)
		status = plan_task(pinning, rules, &tasks.task[i], self, &tasks);
	node_tasks_free(&tasks);
	return status;
}

/* ---- interrupts and work -------------------------------------------------- */

/* The name of its handler: a folder beside its affinity. */
static void plan_interrupt_name(u32 number, char *name, size_t room)
{
	struct dirent *entry;
	char path[64];
	DIR *list;

	*name = 0;
	snprintf(path, sizeof(path), "/proc/irq/%u", number);
	list = opendir(path);
	while (list && (entry = readdir(list)))
		if (entry->d_type == DT_DIR && *entry->d_name != '.')
			snprintf(name, room, "%.60s", entry->d_name);
	if (list)
		closedir(list);
}

/* A file with a mask that has to leave the application's CPUs out. */
static int plan_mask(struct node_pinning *pinning, struct node_pin *pin,
		     const struct node_rules *rules, const struct node_cpus *to)
{
	char before[NODE_CPUS_TEXT], after[NODE_CPUS_TEXT];
	struct node_cpus may;

	if (node_pin_read(pin, before) || !node_cpus_read_mask(&may, before))
		return 0;	/* gone, or nothing to be moved */
	node_cpus_mask(to, after, sizeof(after));
	if (!plan_touches(&may, &rules->application))
		pin->state = NODE_PIN_AWAY;
	return node_pinning_add(pinning, pin, before, after) ? 0 : -ENOMEM;
}

static int plan_interrupt(struct node_pinning *pinning, const struct node_rules *rules,
			  u32 number)
{
	struct node_pin pin = { .kind = NODE_PIN_IRQ, .number = number };
	const struct node_rule *rule;

	plan_interrupt_name(number, pin.name, sizeof(pin.name));
	rule = node_rules_irq(rules, number, pin.name);
	if (!rule)
		return 0;
	pin.state = rule->keep ? NODE_PIN_KEPT : NODE_PIN_WANTED;
	return plan_mask(pinning, &pin, rules, rule->to ? rule->to : &rules->housekeeping);
}

static int plan_interrupts(struct node_pinning *pinning, const struct node_rules *rules)
{
	DIR *list = opendir("/proc/irq");
	struct dirent *entry;
	int status = 0;

	while (!status && list && (entry = readdir(list)))
		if (isdigit((unsigned char)*entry->d_name))
			status = plan_interrupt(pinning, rules, strtoul(entry->d_name, NULL, 10));
	if (list)
		closedir(list);
	return status;
}

static int plan_file(struct node_pinning *pinning, const struct node_rules *rules,
		     const char *path)
{
	struct node_pin pin = { .kind = NODE_PIN_FILE };

	snprintf(pin.name, sizeof(pin.name), "%s", path);
	return plan_mask(pinning, &pin, rules, &rules->housekeeping);
}

int node_pinning_plan_masks(struct node_pinning *pinning, const struct node_rules *rules)
{
	const struct node_rule *all = node_rules_irq(rules, UINT32_MAX, "");
	int status;

	/* A rule for all interrupts holds for new ones too. */
	status = all && !all->keep ? plan_file(pinning, rules, node_pin_default_irq) : 0;
	if (!status)
		status = plan_interrupts(pinning, rules);
	if (!status && rules->workqueues)
		status = plan_file(pinning, rules, node_pin_workqueues);
	return status;
}

int node_pinning_plan(struct node_pinning *pinning, const struct node_rules *rules)
{
	int status;

	*pinning = (struct node_pinning){ .count = 0 };
	status = node_pinning_plan_masks(pinning, rules);
	return status ? status : plan_tasks(pinning, rules);
}
