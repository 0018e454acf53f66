// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "freezer.h"
#include "move.h"
#include "pin.h"
#include "priority.h"
#include "small_file.h"

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

static const char *const kinds[NODE_PIN_KINDS] = {
	[NODE_PIN_TASK] = "task",     [NODE_PIN_IRQ] = "irq",	      [NODE_PIN_FILE] = "file",
	[NODE_PIN_POLICY] = "policy", [NODE_PIN_SESSION] = "session", [NODE_PIN_FREEZER] = "freezer",
};

const char *node_pin_kind_name(enum node_pin_kind kind)
{
	return kinds[kind];
}

enum node_pin_kind node_pin_kind_read(const char *name)
{
	enum node_pin_kind kind = 0;

	while (kind < NODE_PIN_KINDS && strcmp(kinds[kind], name))
		kind++;
	return kind;
}

bool node_pin_is_of_task(enum node_pin_kind kind)
{
	return kind == NODE_PIN_TASK || kind == NODE_PIN_POLICY || kind == NODE_PIN_SESSION;
}

/* What gives a task its part of a CPU. It is let go and held back again and again. */
static bool pin_holds(const struct node_pin *pin)
{
	return pin->kind >= NODE_PIN_POLICY;
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

static void pin_path(const struct node_pin *pin, char path[160])
{
	if (pin->kind == NODE_PIN_IRQ)
		snprintf(path, 160, "/proc/irq/%u/smp_affinity", pin->number);
	else
		snprintf(path, 160, "%s", pin->name);
}

/* ---- freezers -------------------------------------------------------------- */

static int pin_read_freezer(const struct node_pin *pin, char text[NODE_CPUS_TEXT])
{
	struct node_freezer freezer;
	bool frozen;
	int status = node_freezer_find(&freezer, pin->name);

	if (!status)
		status = node_freezer_get(&freezer, &frozen);
	if (!status)
		strcpy(text, frozen ? "1" : "0");
	return status;
}

static int pin_write_freezer(const struct node_pin *pin, const char *text)
{
	struct node_freezer freezer;
	const int status = node_freezer_find(&freezer, pin->name);

	return status ? status : node_freezer_set(&freezer, *text == '1');
}

/* ---- tasks' CPUs ----------------------------------------------------------- */

static int pin_read_cpus(const struct node_pin *pin, char text[NODE_CPUS_TEXT])
{
	struct node_cpus cpus;
	const int status = node_cpus_affinity(pin->number, &cpus);

	if (!status)
		node_cpus_list(&cpus, text, NODE_CPUS_TEXT);
	return status;
}

static int pin_write_cpus(const struct node_pin *pin, const char *text)
{
	struct node_cpus cpus;

	return node_cpus_read_list(&cpus, text) ? node_move_task(pin->number, &cpus) : -EINVAL;
}

/* ---- one pin -------------------------------------------------------------- */

int node_pin_read(const struct node_pin *pin, char text[NODE_CPUS_TEXT])
{
	char path[160];

	switch (pin->kind) {
	case NODE_PIN_TASK:
		return pin_read_cpus(pin, text);
	case NODE_PIN_POLICY:
		return node_policy_read(pin->number, text);
	case NODE_PIN_SESSION:
		return node_session_read(pin->number, text);
	case NODE_PIN_FREEZER:
		return pin_read_freezer(pin, text);
	default:
		pin_path(pin, path);
		return pin_read_file(path, text);
	}
}

static int pin_write_any(const struct node_pin *pin, const char *text)
{
	char path[160];

	switch (pin->kind) {
	case NODE_PIN_TASK:
		return pin_write_cpus(pin, text);
	case NODE_PIN_POLICY:
		return node_policy_write(pin->number, text);
	case NODE_PIN_SESSION:
		return node_session_write(pin->number, text);
	case NODE_PIN_FREEZER:
		return pin_write_freezer(pin, text);
	default:
		pin_path(pin, path);
		return node_write_small(path, text);
	}
}

/* 0; -ESRCH: the number is another task's, or nobody's; -EAGAIN: it cannot be said now. */
static int pin_is_gone(const struct node_pin *pin)
{
	const int is = node_pin_is_of_task(pin->kind) ? node_task_is(pin->number, pin->born) : 1;

	return is > 0 ? 0 : is < 0 ? -EAGAIN : -ESRCH;
}

/*
 * The kernel takes numbers of tasks, and a number may have become another's since the look: it is asked
 * before and after. That one gets back what was there before.
 */
static int pin_write(const struct node_pin *pin, const char *text)
{
	char now[NODE_CPUS_TEXT];
	int status;

	if (!node_pin_is_of_task(pin->kind))
		return pin_write_any(pin, text);
	status = pin_is_gone(pin);
	if (!status)
		status = node_pin_read(pin, now);
	if (!status)
		status = pin_write_any(pin, text);
	if (!status && pin_is_gone(pin) == -ESRCH && !pin_write_any(pin, now))
		return -ESRCH;
	return status;
}

bool node_pin_text_equal(const struct node_pin *pin, const char *a, const char *b)
{
	struct node_cpus x, y;

	if (!strcmp(a, b))
		return true;
	return (pin->kind == NODE_PIN_IRQ || pin->kind == NODE_PIN_FILE) && node_cpus_read_mask(&x, a) &&
	       node_cpus_read_mask(&y, b) && node_cpus_same(&x, &y);
}

/* The state that follows from the kernel's error. */
static void pin_refused(struct node_pin *pin, int error)
{
	pin->error = -error;
	if (error == -ESRCH || error == -ENOENT || error == -ENODEV)
		pin->state = NODE_PIN_GONE;
	else if (pin->kind == NODE_PIN_IRQ && error == -EIO)
		pin->state = NODE_PIN_MANAGED;
	else if (error != -EAGAIN)	/* else it stays as it is, and is tried again */
		pin->state = NODE_PIN_REFUSED;
}

/* A cpuset may have cut it: undoing compares with what is there now. */
static void pin_note_cut(struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT], *cut;

	if (pin_holds(pin) || node_pin_read(pin, now) || !strcmp(now, pin->after))
		return;
	cut = strdup(now);
	if (!cut)
		return;
	free(pin->after);
	pin->after = cut;
	pin->cut = true;
}

void node_pin_apply(struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT];
	int status = 0;

	if (pin->state != NODE_PIN_WANTED)
		return;
	if (pin_holds(pin))
		status = node_pin_read(pin, now);
	if (!status && pin_holds(pin) && strcmp(now, pin->before)) {
		pin->state = NODE_PIN_CHANGED;
		return;
	}
	if (!status)
		status = pin_write(pin, pin->after);
	if (status) {
		pin_refused(pin, status);
		return;
	}
	pin->state = NODE_PIN_MOVED;
	pin_note_cut(pin);
}

/* ---- back ----------------------------------------------------------------- */

/* `text` without the CPUs that are offline, which the kernel does not say. false: none is left. */
static bool pin_cut_text(const char *text, const struct node_cpus *online, char cut[NODE_CPUS_TEXT])
{
	struct node_cpus cpus;

	if (!node_cpus_read_list(&cpus, text))
		return false;
	node_cpus_keep(&cpus, online);
	node_cpus_list(&cpus, cut, NODE_CPUS_TEXT);
	return node_cpus_count(&cpus) > 0;
}

enum node_pin_place node_pin_place(const struct node_pin *pin, const char *now,
				   const struct node_cpus *online)
{
	char cut[NODE_CPUS_TEXT];

	if (!strcmp(now, pin->before))
		return NODE_PIN_IS_BEFORE;
	if (node_pin_text_equal(pin, now, pin->after))
		return NODE_PIN_IS_AFTER;
	if (pin->kind != NODE_PIN_TASK)
		return NODE_PIN_IS_ELSEWHERE;
	/* All that it was moved to is offline: the kernel has let it go elsewhere. */
	if (!pin_cut_text(pin->after, online, cut) || !strcmp(now, cut))
		return NODE_PIN_IS_AFTER;
	return pin_cut_text(pin->before, online, cut) && !strcmp(now, cut) ? NODE_PIN_IS_BEFORE :
									     NODE_PIN_IS_ELSEWHERE;
}

static enum node_pin_place pin_place(const struct node_pin *pin, const char *now)
{
	struct node_cpus online;

	if (!node_cpus_file(&online, "/sys/devices/system/cpu/online"))
		node_cpus_read_list(&online, "0-8191");
	return node_pin_place(pin, now, &online);
}

/* To all CPUs that it is allowed now, where none of the former ones is. */
static int pin_write_back(struct node_pin *pin)
{
	int status = pin_write(pin, pin->before);

	if (status != -EINVAL || pin->kind != NODE_PIN_TASK)
		return status;
	pin->cut = true;
	return pin_write(pin, "0-8191");
}

/* For want of descriptors or memory nothing is known of it. */
static int pin_unread(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM ? -EAGAIN : error;
}

void node_pin_undo(struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT];
	int status = pin_is_gone(pin);
	enum node_pin_place place;

	/* It was told before, or put back: what it has become since is what others chose. */
	if (pin_holds(pin) && (pin->state == NODE_PIN_CHANGED || pin->state == NODE_PIN_RESTORED))
		return;
	/* It is let go, or was not held back yet: nothing of what it is now was done here. */
	if (!status && pin_holds(pin) && pin->state == NODE_PIN_WANTED) {
		pin->state = NODE_PIN_RESTORED;
		return;
	}
	if (!status)
		status = pin_unread(node_pin_read(pin, now));
	if (status) {
		pin_refused(pin, status == -EAGAIN ? status : -ESRCH);
		return;
	}
	place = pin_place(pin, now);
	pin->cut = false;
	if (place == NODE_PIN_IS_AFTER && strcmp(now, pin->before)) {
		status = pin_write_back(pin);
		if (status) {
			pin_refused(pin, status);
			return;
		}
		pin->cut |= node_pin_read(pin, now) || !node_pin_text_equal(pin, now, pin->before);
	}
	pin->state = place == NODE_PIN_IS_ELSEWHERE ? NODE_PIN_CHANGED : NODE_PIN_RESTORED;
}
