// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pinning.h"

enum { ROUNDS = 5 };

void node_pinning_apply(struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		node_pin_apply(&pinning->pin[i]);
}

static const struct node_pin *pinning_find_task(const struct node_pinning *pinning, u32 tid)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (pinning->pin[i].kind == NODE_PIN_TASK && pinning->pin[i].number == tid)
			return &pinning->pin[i];
	return NULL;
}

/* The moved task that started this one or one of its ancestors. */
static const struct node_pin *pinning_moved_ancestor(const struct node_pinning *pinning,
						      const struct node_task *task,
						      const struct node_tasks *tasks)
{
	u32 steps;

	for (steps = 0; task && steps < 1000; steps++) {
		const struct node_pin *pin = pinning_find_task(pinning, task->pid);

		if (pin)
			return pin;
		task = task->parent ? node_tasks_find(tasks, task->parent) : NULL;
	}
	return NULL;
}

/* Threads and processes started meanwhile have inherited the CPUs of a moved task. */
static int pinning_find_heirs(struct node_pinning *pinning, const struct node_tasks *tasks)
{
	const u32 known = pinning->count;
	struct node_pinning old = { .pin = pinning->pin, .count = known };
	u32 i;

	for (i = 0; i < tasks->count; i++) {
		const struct node_task *task = &tasks->task[i];
		struct node_pin heir = { .kind = NODE_PIN_TASK, .number = task->tid,
					  .born = task->born };
		const struct node_pin *from;
		char now[NODE_CPUS_TEXT];

		old.pin = pinning->pin;
		if (pinning_find_task(&old, task->tid))
			continue;
		from = pinning_moved_ancestor(&old, task, tasks);
		node_cpus_list(&task->may, now, sizeof(now));
		if (!from || strcmp(now, from->after))
			continue;
		snprintf(heir.name, sizeof(heir.name), "%s", task->comm);
		if (!node_pinning_add(pinning, &heir, from->before, from->after))
			return -ENOMEM;
	}
	return 0;
}

void node_pinning_undo(struct node_pinning *pinning)
{
	struct node_tasks tasks;
	u32 i, round, last;

	/* Again while tasks that are not moved back yet start others. */
	for (round = 0, last = 0; round < ROUNDS; round++) {
		if (node_tasks_look(&tasks))
			break;
		pinning_find_heirs(pinning, &tasks);
		for (i = last; i < pinning->count; i++)
			node_pin_undo(&pinning->pin[i], &tasks);
		node_tasks_free(&tasks);
		if (last == pinning->count)
			break;
		last = pinning->count;
	}
}

/* Marks what others have changed. */
static void pinning_notice_changes(struct node_pinning *pinning)
{
	char now[NODE_CPUS_TEXT];
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct node_pin *pin = &pinning->pin[i];

		if (pin->state == NODE_PIN_MOVED && !node_pin_read(pin, now) &&
		    !node_pin_text_equal(pin, now, pin->after))
			pin->state = NODE_PIN_CHANGED;
	}
}

static struct node_pin *pinning_find_same(struct node_pinning *pinning,
					   const struct node_pin *like)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct node_pin *pin = &pinning->pin[i];

		if (pin->kind == like->kind && pin->number == like->number &&
		    pin->born == like->born &&
		    (pin->kind != NODE_PIN_FILE || !strcmp(pin->name, like->name)))
			return pin;
	}
	return NULL;
}

static void pinning_forget_gone(struct node_pinning *pinning, const struct node_tasks *tasks)
{
	u32 i, kept = 0;

	for (i = 0; i < pinning->count; i++) {
		if (node_pin_is_same(&pinning->pin[i], tasks)) {
			pinning->pin[kept++] = pinning->pin[i];
			continue;
		}
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	pinning->count = kept;
}

int node_pinning_renew(struct node_pinning *pinning, const struct node_rules *rules)
{
	struct node_pinning now;
	struct node_tasks tasks;
	int status = node_tasks_look(&tasks), wanted = 0;
	u32 i;

	if (status)
		return status;
	pinning_forget_gone(pinning, &tasks);
	node_tasks_free(&tasks);
	pinning_notice_changes(pinning);
	status = node_pinning_plan(&now, rules);
	for (i = 0; !status && i < now.count; i++) {
		if (now.pin[i].state != NODE_PIN_WANTED || pinning_find_same(pinning, &now.pin[i]))
			continue;
		wanted++;
		if (!node_pinning_add(pinning, &now.pin[i], now.pin[i].before, now.pin[i].after))
			status = -ENOMEM;
	}
	node_pinning_free(&now);
	return status ? status : wanted;
}
