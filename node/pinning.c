// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pinning.h"

enum { ROUNDS = 5 };

void node_pinning_apply(struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		node_pin_apply(&pinning->pin[i]);
}

/* Numbers are used again: of the task that was born then. */
static const struct node_pin *pinning_find_task(const struct node_pinning *pinning,
						enum node_pin_kind kind, u32 tid, u64 born)
{
	const struct node_pin like = { .kind = kind, .number = tid, .born = born };

	return node_pinning_find(pinning, &like);
}

/* The moved task that started this one or one of its ancestors. */
static const struct node_pin *pinning_moved_ancestor(const struct node_pinning *pinning,
						     enum node_pin_kind kind,
						     const struct node_task *task,
						     const struct node_tasks *tasks)
{
	u32 steps;

	for (steps = 0; task && steps < 1000; steps++) {
		const struct node_task *process = node_tasks_find(tasks, task->pid);
		const struct node_pin *pin =
			process ? pinning_find_task(pinning, kind, process->tid, process->born) : NULL;

		if (pin)
			return pin;
		task = task->parent ? node_tasks_find(tasks, task->parent) : NULL;
	}
	return NULL;
}

static bool pinning_has(const struct node_pinning *pinning, enum node_pin_kind kind)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (pinning->pin[i].kind == kind)
			return true;
	return false;
}

/* 1: it has inherited what `from` was given, and is added. */
static int pinning_find_heir(struct node_pinning *pinning, enum node_pin_kind kind,
			     const struct node_task *task, const struct node_tasks *tasks)
{
	struct node_pin heir = { .kind = kind, .state = NODE_PIN_MOVED, .number = task->tid,
				 .born = task->born };
	const struct node_pin *from;
	char now[NODE_CPUS_TEXT];

	if (pinning_find_task(pinning, kind, task->tid, task->born))
		return 0;
	from = pinning_moved_ancestor(pinning, kind, task, tasks);
	if (!from || !strcmp(from->before, from->after) || node_pin_read(&heir, now) ||
	    strcmp(now, from->after))
		return 0;
	snprintf(heir.name, sizeof(heir.name), "%s", task->comm);
	return node_pinning_add(pinning, &heir, from->before, from->after) ? 1 : -ENOMEM;
}

/* Threads and processes started meanwhile have inherited the CPUs, or the policy, of a moved task. */
int node_pinning_find_heirs(struct node_pinning *pinning, const struct node_tasks *tasks)
{
	static const enum node_pin_kind inherited[] = { NODE_PIN_TASK, NODE_PIN_POLICY };
	int found = 0, status = 0;
	u32 i, k;

	for (k = 0; k < 2; k++) {
		if (!pinning_has(pinning, inherited[k]))
			continue;
		for (i = 0; status >= 0 && i < tasks->count; i++) {
			status = pinning_find_heir(pinning, inherited[k], &tasks->task[i], tasks);
			found += status > 0;
		}
	}
	return status < 0 ? status : found;
}

/* What is no task's needs no look at them, and goes first: a cgroup that stands still goes on. */
static void undo_others(struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (!node_pin_is_of_task(pinning->pin[i].kind))
			node_pin_undo(&pinning->pin[i]);
}

/* Those that are new since the round before. Returns how many. */
static u32 undo_new(struct node_pinning *pinning, const struct node_tasks *tasks)
{
	const u32 from = pinning->undone;

	node_pinning_find_heirs(pinning, tasks);
	for (; pinning->undone < pinning->count; pinning->undone++)
		if (node_pin_is_of_task(pinning->pin[pinning->undone].kind))
			node_pin_undo(&pinning->pin[pinning->undone]);
	return pinning->undone - from;
}

void node_pinnings_undo(struct node_pinning *const *pinning, u32 count)
{
	struct node_tasks tasks;
	u32 i, round, new = count;

	for (i = 0; i < count; i++) {
		undo_others(pinning[i]);
		pinning[i]->undone = 0;
	}
	/* Again while tasks that are not moved back yet start others. */
	for (round = 0; round < ROUNDS && new; round++) {
		if (node_tasks_look(&tasks))
			break;
		for (i = new = 0; i < count; i++)
			new += undo_new(pinning[i], &tasks);
		node_tasks_free(&tasks);
	}
}

void node_pinning_undo(struct node_pinning *pinning)
{
	node_pinnings_undo(&pinning, 1);
}

bool node_pinning_is_undone(const struct node_pinning *pinning)
{
	return !node_pinning_count(pinning, NODE_PIN_MOVED) &&
	       !node_pinning_count(pinning, NODE_PIN_WANTED) &&
	       !node_pinning_count(pinning, NODE_PIN_REFUSED);
}

static bool is_not_moved(const struct node_pin *pin, const void *data)
{
	(void)data;
	return pin->state != NODE_PIN_MOVED && pin->state != NODE_PIN_REFUSED;
}

u32 node_pinning_keep_moved(struct node_pinning *pinning)
{
	u32 i;

	node_pinning_drop(pinning, is_not_moved, NULL);
	for (i = 0; i < pinning->count; i++)
		pinning->pin[i].state = NODE_PIN_MOVED;
	return pinning->count;
}

/* Also where others have done before what this would do. */
static void pin_lift(struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT];

	if (!node_pin_read(pin, now) && !node_pin_text_equal(pin, now, pin->after)) {
		pin->state = NODE_PIN_CHANGED;
		return;
	}
	node_pin_undo(pin);
	if (pin->state == NODE_PIN_RESTORED)
		pin->state = NODE_PIN_WANTED;
	else if (pin->state == NODE_PIN_REFUSED)	/* it is as it was made: the file is to say so */
		pin->state = NODE_PIN_MOVED;
}

bool node_pinning_lift(struct node_pinning *pinning)
{
	bool lifted = true;
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct node_pin *pin = &pinning->pin[i];

		if (pin->state != NODE_PIN_MOVED || !strcmp(pin->before, pin->after))
			continue;
		pin_lift(pin);
		lifted &= pin->state != NODE_PIN_MOVED;
	}
	return lifted;
}

/* ---- time and again ---------------------------------------------------------- */

enum { INTERRUPTS_EVERY = 12 };

/* `now`: where it may run. Others have changed it if that is not what it was moved to. */
static void pin_notice(struct node_pin *pin, const char *now)
{
	if (pin->state == NODE_PIN_MOVED && !node_pin_text_equal(pin, now, pin->after))
		pin->state = NODE_PIN_CHANGED;
}

/* One that the scan has found. 1: it is to be moved. */
static int renew_task(struct node_pinning *pinning, const struct node_rules *rules,
		      const struct node_task *task, const struct node_tasks *tasks)
{
	const struct node_pin like = { .kind = NODE_PIN_TASK, .number = task->tid,
				       .born = task->born };
	struct node_pin *pin = node_pinning_find(pinning, &like);
	char now[NODE_CPUS_TEXT];

	if (!pin)
		return node_pinning_plan_move(pinning, rules, task, tasks);
	pin->seen = pinning->round;
	pin_notice(pin, node_cpus_list(&task->may, now, sizeof(now)));
	return 0;
}

/* The sweep may miss a thread while others of its process end; what cannot be read is there. */
static bool task_is_gone(const struct node_pin *pin)
{
	const u32 pid = node_task_process(pin->number);
	struct node_task task;

	if (pid && node_task_read(pid, pin->number, &task))
		return task.born != pin->born;
	return node_scan_is_gone(pin->number);
}

static bool is_missing(const struct node_pin *pin, const void *data)
{
	const u32 *round = data;

	return pin->kind == NODE_PIN_TASK && pin->seen != *round && task_is_gone(pin);
}

static bool is_young_and_gone(const struct node_pin *pin, const void *data)
{
	const struct node_scan *scan = data;
	u32 low = 0, high = scan->gones;

	/* In the order of their numbers, but for those that began anew. */
	while (pin->kind == NODE_PIN_TASK && low < high) {
		const u32 middle = (low + high) / 2;

		if (scan->gone[middle] == pin->number)
			return true;
		if (scan->gone[middle] < pin->number)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static int renew_tasks(struct node_pinning *pinning, const struct node_rules *rules)
{
	struct node_tasks tasks;
	bool round = false;
	int status = node_scan_look(&pinning->scan, &tasks, node_rules_any_parent(rules), &round);
	u32 i, dropped = 0;
	int wanted = 0;

	if (!status && pinning->scan.gones)
		dropped = node_pinning_drop(pinning, is_young_and_gone, &pinning->scan);
	for (i = 0; status >= 0 && i < tasks.count; i++) {
		status = tasks.task[i].beside ? 0 : renew_task(pinning, rules, &tasks.task[i],
								&tasks);
		wanted += status > 0;
	}
	node_tasks_free(&tasks);
	if (status >= 0 && round) {
		dropped += node_pinning_drop(pinning, is_missing, &pinning->round);
		pinning->round++;
	}
	pinning->dropped |= dropped > 0;
	return status < 0 ? status : wanted;
}

/* There is a folder for each interrupt. */
static u32 count_interrupts(void)
{
	struct stat folder;

	return stat("/proc/irq", &folder) ? 0 : folder.st_nlink;
}

static bool interrupts_are_due(struct node_pinning *pinning)
{
	const u32 interrupts = count_interrupts();
	const bool changed = interrupts != pinning->interrupts;

	pinning->interrupts = interrupts;
	return pinning->looks++ % INTERRUPTS_EVERY == 0 || changed;
}

/* As where a driver was unloaded: what gets its number afterwards is another one, which nobody has moved. */
static bool interrupt_is_gone(const struct node_pin *pin, const void *data)
{
	char path[32];

	(void)data;
	snprintf(path, sizeof(path), "/proc/irq/%u", pin->number);
	return pin->kind == NODE_PIN_IRQ && access(path, F_OK) && errno == ENOENT;
}

/* Interrupts, and the files of masks. */
static int renew_masks(struct node_pinning *pinning, const struct node_rules *rules)
{
	struct node_pinning now = { .count = 0 };
	int status = node_pinning_plan_masks(&now, rules), wanted = 0;
	u32 i;

	pinning->dropped |= node_pinning_drop(pinning, interrupt_is_gone, NULL) > 0;
	for (i = 0; !status && i < now.count; i++) {
		const struct node_pin *new = &now.pin[i];
		struct node_pin *pin = node_pinning_find(pinning, new);

		if (pin)
			pin_notice(pin, new->before);
		if (new->state != NODE_PIN_WANTED || pin)
			continue;
		wanted++;
		if (!node_pinning_add(pinning, new, new->before, new->after))
			status = -ENOMEM;
	}
	node_pinning_free(&now);
	return status ? status : wanted;
}

int node_pinning_renew(struct node_pinning *pinning, const struct node_rules *rules)
{
	int tasks = 0, masks = 0;

	pinning->dropped = false;
	if (interrupts_are_due(pinning))
		masks = renew_masks(pinning, rules);
	if (masks >= 0 && node_rules_any_task(rules))
		tasks = renew_tasks(pinning, rules);
	return masks < 0 ? masks : tasks < 0 ? tasks : tasks + masks;
}
