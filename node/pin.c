// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pin.h"

const char noise_pin_workqueues[] = "/sys/devices/virtual/workqueue/cpumask";
const char noise_pin_default_irq[] = "/proc/irq/default_smp_affinity";

const char *noise_pin_state_name(enum noise_pin_state state)
{
	static const char *const names[NOISE_PIN_STATES] = {
		[NOISE_PIN_WANTED] = "to be moved", [NOISE_PIN_MOVED] = "moved",
		[NOISE_PIN_AWAY] = "away already",  [NOISE_PIN_KEPT] = "kept",
		[NOISE_PIN_PER_CPU] = "per CPU",    [NOISE_PIN_BOUND] = "bound on purpose",
		[NOISE_PIN_MANAGED] = "managed",    [NOISE_PIN_REFUSED] = "refused",
		[NOISE_PIN_GONE] = "gone",	    [NOISE_PIN_CHANGED] = "changed by others",
		[NOISE_PIN_RESTORED] = "restored",
	};

	return names[state];
}

/* ---- files of the kernel -------------------------------------------------- */

/* Without the newline at its end. */
static int pin_read_file(const char *path, char text[NOISE_CPUS_TEXT])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, NOISE_CPUS_TEXT - 1);
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

static void pin_path(const struct noise_pin *pin, char path[128])
{
	if (pin->kind == NOISE_PIN_IRQ)
		snprintf(path, 128, "/proc/irq/%u/smp_affinity", pin->number);
	else
		snprintf(path, 128, "%s", pin->name);
}

/* ---- one pin -------------------------------------------------------------- */

int noise_pin_read(const struct noise_pin *pin, char text[NOISE_CPUS_TEXT])
{
	struct noise_cpus cpus;
	char path[128];
	int status;

	if (pin->kind != NOISE_PIN_TASK) {
		pin_path(pin, path);
		return pin_read_file(path, text);
	}
	status = noise_cpus_affinity(pin->number, &cpus);
	if (!status)
		noise_cpus_list(&cpus, text, NOISE_CPUS_TEXT);
	return status;
}

static int pin_write(const struct noise_pin *pin, const char *text)
{
	struct noise_cpus cpus;
	char path[128];

	if (pin->kind != NOISE_PIN_TASK) {
		pin_path(pin, path);
		return pin_write_file(path, text);
	}
	return noise_cpus_read_list(&cpus, text) ? noise_cpus_set_affinity(pin->number, &cpus) :
						   -EINVAL;
}

bool noise_pin_is_same(const struct noise_pin *pin, const struct noise_tasks *tasks)
{
	const struct noise_task *task = noise_tasks_find(tasks, pin->number);

	return pin->kind != NOISE_PIN_TASK || (task && task->born == pin->born);
}

bool noise_pin_text_equal(const struct noise_pin *pin, const char *a, const char *b)
{
	struct noise_cpus x, y;

	if (!strcmp(a, b))
		return true;
	return pin->kind != NOISE_PIN_TASK && noise_cpus_read_mask(&x, a) &&
	       noise_cpus_read_mask(&y, b) && noise_cpus_same(&x, &y);
}

/* The state that follows from the kernel's error. */
static void pin_refused(struct noise_pin *pin, int error)
{
	pin->error = -error;
	if (error == -ESRCH || error == -ENOENT)
		pin->state = NOISE_PIN_GONE;
	else if (pin->kind == NOISE_PIN_IRQ && error == -EIO)
		pin->state = NOISE_PIN_MANAGED;
	else
		pin->state = NOISE_PIN_REFUSED;
}

void noise_pin_apply(struct noise_pin *pin)
{
	char now[NOISE_CPUS_TEXT];
	int status;

	if (pin->state != NOISE_PIN_WANTED)
		return;
	status = pin_write(pin, pin->after);
	if (status)
		pin_refused(pin, status);
	else
		pin->state = NOISE_PIN_MOVED;
	/* A cpuset may have cut it: undoing compares with what is there now. */
	if (!status && !noise_pin_read(pin, now) && strcmp(now, pin->after)) {
		char *cut = strdup(now);

		if (cut) {
			free(pin->after);
			pin->after = cut;
		}
	}
}

void noise_pin_undo(struct noise_pin *pin, const struct noise_tasks *tasks)
{
	char now[NOISE_CPUS_TEXT];
	int status;

	if (!noise_pin_is_same(pin, tasks) || noise_pin_read(pin, now)) {
		pin->state = NOISE_PIN_GONE;
		return;
	}
	if (!strcmp(now, pin->before)) {
		pin->state = NOISE_PIN_RESTORED;
		return;
	}
	if (!noise_pin_text_equal(pin, now, pin->after)) {
		pin->state = NOISE_PIN_CHANGED;
		return;
	}
	status = pin_write(pin, pin->before);
	if (status)
		pin_refused(pin, status);
	else
		pin->state = !noise_pin_read(pin, now) && !strcmp(now, pin->before) ?
				     NOISE_PIN_RESTORED : NOISE_PIN_CHANGED;
}
