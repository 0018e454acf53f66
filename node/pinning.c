// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pinning.h"

enum { ROUNDS = 5 };

void noise_pinning_apply(struct noise_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		noise_pin_apply(&pinning->pin[i]);
}

static const struct noise_pin *pinning_find_task(const struct noise_pinning *pinning, u32 tid)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (pinning->pin[i].kind == NOISE_PIN_TASK && pinning->pin[i].number == tid)
			return &pinning->pin[i];
	return NULL;
}

/* The moved task that started this one or one of its ancestors. */
static const struct noise_pin *pinning_moved_ancestor(const struct noise_pinning *pinning,
						      const struct noise_task *task,
						      const struct noise_tasks *tasks)
{
	u32 steps;

	for (steps = 0; task && steps < 1000; steps++) {
		const struct noise_pin *pin = pinning_find_task(pinning, task->pid);

		if (pin)
			return pin;
		task = task->parent ? noise_tasks_find(tasks, task->parent) : NULL;
	}
	return NULL;
}

/* Threads and processes started meanwhile have inherited the CPUs of a moved task. */
static int pinning_find_heirs(struct noise_pinning *pinning, const struct noise_tasks *tasks)
{
	const u32 known = pinning->count;
	struct noise_pinning old = { .pin = pinning->pin, .count = known };
	u32 i;

	for (i = 0; i < tasks->count; i++) {
		const struct noise_task *task = &tasks->task[i];
		struct noise_pin heir = { .kind = NOISE_PIN_TASK, .number = task->tid,
					  .born = task->born };
		const struct noise_pin *from;
		char now[NOISE_CPUS_TEXT];

		old.pin = pinning->pin;
		if (pinning_find_task(&old, task->tid))
			continue;
		from = pinning_moved_ancestor(&old, task, tasks);
		noise_cpus_list(&task->may, now, sizeof(now));
		if (!from || strcmp(now, from->after))
			continue;
		snprintf(heir.name, sizeof(heir.name), "%s", task->comm);
		if (!noise_pinning_add(pinning, &heir, from->before, from->after))
			return -ENOMEM;
	}
	return 0;
}

void noise_pinning_undo(struct noise_pinning *pinning)
{
	struct noise_tasks tasks;
	u32 i, round, last;

	/* Again while tasks that are not moved back yet start others. */
	for (round = 0, last = 0; round < ROUNDS; round++) {
		if (noise_tasks_look(&tasks))
			break;
		pinning_find_heirs(pinning, &tasks);
		for (i = last; i < pinning->count; i++)
			noise_pin_undo(&pinning->pin[i], &tasks);
		noise_tasks_free(&tasks);
		if (last == pinning->count)
			break;
		last = pinning->count;
	}
}

/* Marks what others have changed. */
static void pinning_notice_changes(struct noise_pinning *pinning)
{
	char now[NOISE_CPUS_TEXT];
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct noise_pin *pin = &pinning->pin[i];

		if (pin->state == NOISE_PIN_MOVED && !noise_pin_read(pin, now) &&
		    !noise_pin_text_equal(pin, now, pin->after))
			pin->state = NOISE_PIN_CHANGED;
	}
}

static struct noise_pin *pinning_find_same(struct noise_pinning *pinning,
					   const struct noise_pin *like)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct noise_pin *pin = &pinning->pin[i];

		if (pin->kind == like->kind && pin->number == like->number &&
		    pin->born == like->born &&
		    (pin->kind != NOISE_PIN_FILE || !strcmp(pin->name, like->name)))
			return pin;
	}
	return NULL;
}

static void pinning_forget_gone(struct noise_pinning *pinning, const struct noise_tasks *tasks)
{
	u32 i, kept = 0;

	for (i = 0; i < pinning->count; i++) {
		if (noise_pin_is_same(&pinning->pin[i], tasks)) {
			pinning->pin[kept++] = pinning->pin[i];
			continue;
		}
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	pinning->count = kept;
}

int noise_pinning_renew(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	struct noise_pinning now;
	struct noise_tasks tasks;
	int status = noise_tasks_look(&tasks), wanted = 0;
	u32 i;

	if (status)
		return status;
	pinning_forget_gone(pinning, &tasks);
	noise_tasks_free(&tasks);
	pinning_notice_changes(pinning);
	status = noise_pinning_plan(&now, rules);
	for (i = 0; !status && i < now.count; i++) {
		if (now.pin[i].state != NOISE_PIN_WANTED || pinning_find_same(pinning, &now.pin[i]))
			continue;
		wanted++;
		if (!noise_pinning_add(pinning, &now.pin[i], now.pin[i].before, now.pin[i].after))
			status = -ENOMEM;
	}
	noise_pinning_free(&now);
	return status ? status : wanted;
}
