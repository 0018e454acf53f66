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
static bool plan_is_bound(const struct noise_task *task, const struct noise_rules *rules)
{
	struct noise_cpus elsewhere = task->may;

	noise_cpus_remove(&elsewhere, &rules->application);
	return !noise_cpus_count(&elsewhere);
}

static bool plan_touches(const struct noise_cpus *may, const struct noise_cpus *cpus)
{
	struct noise_cpus both = *may;

	noise_cpus_keep(&both, cpus);
	return noise_cpus_count(&both) > 0;
}

static enum noise_pin_state plan_judge_task(const struct noise_task *task,
					    const struct noise_rules *rules,
					    const struct noise_rule *rule,
					    const struct noise_task *self,
					    const struct noise_tasks *tasks)
{
	if (!plan_touches(&task->may, &rules->application))
		return NOISE_PIN_AWAY;
	if (rule->keep || (self && noise_tasks_below(tasks, self, task->pid)))
		return NOISE_PIN_KEPT;
	if (task->bound)
		return NOISE_PIN_PER_CPU;
	if (plan_is_bound(task, rules))
		return NOISE_PIN_BOUND;
	return NOISE_PIN_WANTED;
}

static int plan_task(struct noise_pinning *pinning, const struct noise_rules *rules,
		     const struct noise_task *task, const struct noise_task *self,
		     const struct noise_tasks *tasks)
{
	const struct noise_rule *rule = noise_rules_task(rules, task, tasks);
	struct noise_pin pin = { .kind = NOISE_PIN_TASK, .number = task->tid, .born = task->born };
	char before[NOISE_CPUS_TEXT], after[NOISE_CPUS_TEXT];

	if (!rule)
		return 0;
	pin.state = plan_judge_task(task, rules, rule, self, tasks);
	snprintf(pin.name, sizeof(pin.name), "%s", task->comm);
	noise_cpus_list(&task->may, before, sizeof(before));
	noise_cpus_list(rule->to ? rule->to : &rules->housekeeping, after, sizeof(after));
	return noise_pinning_add(pinning, &pin, before, after) ? 0 : -ENOMEM;
}

static int plan_tasks(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	struct noise_tasks tasks;
	const struct noise_task *self;
	int status = noise_tasks_look(&tasks);
	u32 i;

	self = noise_tasks_find(&tasks, getpid());
	for (i = 0; !status && i < tasks.count; i++)
		status = plan_task(pinning, rules, &tasks.task[i], self, &tasks);
	noise_tasks_free(&tasks);
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
static int plan_mask(struct noise_pinning *pinning, struct noise_pin *pin,
		     const struct noise_rules *rules, const struct noise_cpus *to)
{
	char before[NOISE_CPUS_TEXT], after[NOISE_CPUS_TEXT];
	struct noise_cpus may;

	if (noise_pin_read(pin, before) || !noise_cpus_read_mask(&may, before))
		return 0;	/* gone, or nothing to be moved */
	noise_cpus_mask(to, after, sizeof(after));
	if (!plan_touches(&may, &rules->application))
		pin->state = NOISE_PIN_AWAY;
	return noise_pinning_add(pinning, pin, before, after) ? 0 : -ENOMEM;
}

static int plan_interrupt(struct noise_pinning *pinning, const struct noise_rules *rules,
			  u32 number)
{
	struct noise_pin pin = { .kind = NOISE_PIN_IRQ, .number = number };
	const struct noise_rule *rule;

	plan_interrupt_name(number, pin.name, sizeof(pin.name));
	rule = noise_rules_irq(rules, number, pin.name);
	if (!rule)
		return 0;
	pin.state = rule->keep ? NOISE_PIN_KEPT : NOISE_PIN_WANTED;
	return plan_mask(pinning, &pin, rules, rule->to ? rule->to : &rules->housekeeping);
}

static int plan_interrupts(struct noise_pinning *pinning, const struct noise_rules *rules)
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

static int plan_file(struct noise_pinning *pinning, const struct noise_rules *rules,
		     const char *path)
{
	struct noise_pin pin = { .kind = NOISE_PIN_FILE };

	snprintf(pin.name, sizeof(pin.name), "%s", path);
	return plan_mask(pinning, &pin, rules, &rules->housekeeping);
}

int noise_pinning_plan(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	const struct noise_rule *all = noise_rules_irq(rules, UINT32_MAX, "");
	int status;

	*pinning = (struct noise_pinning){ .count = 0 };
	/* A rule for all interrupts holds for new ones too. */
	status = all && !all->keep ? plan_file(pinning, rules, noise_pin_default_irq) : 0;
	if (!status)
		status = plan_interrupts(pinning, rules);
	if (!status && rules->workqueues)
		status = plan_file(pinning, rules, noise_pin_workqueues);
	if (!status)
		status = plan_tasks(pinning, rules);
	return status;
}
