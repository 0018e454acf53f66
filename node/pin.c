// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pin.h"

const char node_pin_workqueues[] = "/sys/devices/virtual/workqueue/cpumask";
const char node_pin_default_irq[] = "/proc/irq/default_smp_affinity";

const char *node_pin_state_name(enum node_pin_state state)
{
	static const char *const names[NODE_PIN_STATES] = {
		[NODE_PIN_WANTED] = "to be moved", [NODE_PIN_MOVED] = "moved",
		[NODE_PIN_AWAY] = "away already",  [NODE_PIN_KEPT] = "kept",
		[NODE_PIN_PER_CPU] = "per CPU",    [NODE_PIN_BOUND] = "bound on purpose",
		[NODE_PIN_MANAGED] = "managed",    [NODE_PIN_REFUSED] = "refused",
		[NODE_PIN_GONE] = "gone",	    [NODE_PIN_CHANGED] = "changed by others",
		[NODE_PIN_RESTORED] = "restored",
	};

	return names[state];
}

/* ---- files of the kernel -------------------------------------------------- */

/* Without the newline at its end. */
static int pin_read_file(const char *path, char text[NODE_CPUS_TEXT])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, NODE_CPUS_TEXT - 1);
	const int error = errno;

	if (fd >= 0)
		close(fd);
	if (length < 0)
		return -error;
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = 0;
	return 0;
}

static int pin_write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t length = fd < 0 ? -1 : write(fd, text, strlen(text));
	const int error = errno;

	if (fd >= 0)
		close(fd);
	return length < 0 ? -error : 0;
}

static void pin_path(const struct node_pin *pin, char path[128])
{
	if (pin->kind == NODE_PIN_IRQ)
		snprintf(path, 128, "/proc/irq/%u/smp_affinity", pin->number);
	else
		snprintf(path, 128, "%s", pin->name);
}

/* ---- one pin -------------------------------------------------------------- */

int node_pin_read(const struct node_pin *pin, char text[NODE_CPUS_TEXT])
{
	struct node_cpus cpus;
	char path[128];
	int status;

	if (pin->kind != NODE_PIN_TASK) {
		pin_path(pin, path);
		return pin_read_file(path, text);
	}
	status = node_cpus_affinity(pin->number, &cpus);
	if (!status)
		node_cpus_list(&cpus, text, NODE_CPUS_TEXT);
	return status;
}

static int pin_write(const struct node_pin *pin, const char *text)
{
	struct node_cpus cpus;
	char path[128];

	if (pin->kind != NODE_PIN_TASK) {
		pin_path(pin, path);
		return pin_write_file(path, text);
	}
	return node_cpus_read_list(&cpus, text) ? node_cpus_set_affinity(pin->number, &cpus) :
						   -EINVAL;
}

bool node_pin_is_same(const struct node_pin *pin, const struct node_tasks *tasks)
{
	const struct node_task *task = node_tasks_find(tasks, pin->number);

	return pin->kind != NODE_PIN_TASK || (task && task->born == pin->born);
}

bool node_pin_text_equal(const struct node_pin *pin, const char *a, const char *b)
{
	struct node_cpus x, y;

	if (!strcmp(a, b))
		return true;
	return pin->kind != NODE_PIN_TASK && node_cpus_read_mask(&x, a) &&
	       node_cpus_read_mask(&y, b) && node_cpus_same(&x, &y);
}

/* The state that follows from the kernel's error. */
static void pin_refused(struct node_pin *pin, int error)
{
	pin->error = -error;
	if (error == -ESRCH || error == -ENOENT)
		pin->state = NODE_PIN_GONE;
	else if (pin->kind == NODE_PIN_IRQ && error == -EIO)
		pin->state = NODE_PIN_MANAGED;
	else
		pin->state = NODE_PIN_REFUSED;
}

void node_pin_apply(struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT];
	int status;

	if (pin->state != NODE_PIN_WANTED)
		return;
	status = pin_write(pin, pin->after);
	if (status)
		pin_refused(pin, status);
	else
		pin->state = NODE_PIN_MOVED;
	/* A cpuset may have cut it: undoing compares with what is there now. */
	if (!status && !node_pin_read(pin, now) && strcmp(now, pin->after)) {
		char *cut = strdup(now);

		if (cut) {
			free(pin->after);
			pin->after = cut;
			pin->cut = true;
		}
	}
}

void node_pin_undo(struct node_pin *pin, const struct node_tasks *tasks)
{
	char now[NODE_CPUS_TEXT];
	int status;

	if (!node_pin_is_same(pin, tasks) || node_pin_read(pin, now)) {
		pin->state = NODE_PIN_GONE;
		return;
	}
	if (!strcmp(now, pin->before)) {
		pin->state = NODE_PIN_RESTORED;
		return;
	}
	if (!node_pin_text_equal(pin, now, pin->after)) {
		pin->state = NODE_PIN_CHANGED;
		return;
	}
	status = pin_write(pin, pin->before);
	if (status)
		pin_refused(pin, status);
	else
		pin->state = !node_pin_read(pin, now) && !strcmp(now, pin->before) ?
				     NODE_PIN_RESTORED : NODE_PIN_CHANGED;
}
