// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scan.h"
#include "small_file.h"

enum {
	SLICES = 60, SLICE_MIN = 16,	/* of a round of the sweep */
	NEW_MAX = 65536,		/* numbers since the last look; more: all tasks are read */
	AGAIN = 256,			/* numbers before the first look that are new at the second */
	NUMBER_MIN = 300,		/* where the kernel goes on after the highest */
};

/* ---- numbers ---------------------------------------------------------------- */

/* The latest that the kernel has given; 0: not known, as when /proc is another namespace's. */
static u32 number_latest(void)
{
	char text[128], self[16];
	const ssize_t length = readlink("/proc/self", self, sizeof(self) - 1);
	const char *last;

	self[length > 0 ? length : 0] = 0;
	if (strtol(self, NULL, 10) != getpid() || !node_read_small("/proc/loadavg", text, sizeof(text)))
		return 0;
	last = strrchr(text, ' ');
	return last ? strtoul(last + 1, NULL, 10) : 0;
}

static u32 number_max(void)
{
	char text[32];

	return node_read_small("/proc/sys/kernel/pid_max", text, sizeof(text)) ?
		       strtoul(text, NULL, 10) : 0;
}

/* How many were given from `last` to `latest`; they begin anew after the highest. */
static u32 numbers_since(u32 last, u32 latest, u32 max)
{
	if (latest >= last)
		return latest - last;
	return max > last && latest >= NUMBER_MIN ? max - last + latest - NUMBER_MIN : NEW_MAX + 1;
}

static u32 number_after(u32 number, u32 max)
{
	return number + 1 < max || !max ? number + 1 : NUMBER_MIN;
}

/* ---- the new and the young ---------------------------------------------------- */

static int scan_note(u32 **list, u32 *count, u32 number)
{
	/* 64 more at a time. */
	u32 *more = *count % 64 ? *list : reallocarray(*list, *count + 64, sizeof(**list));

	if (!more)
		return -ENOMEM;
	*list = more;
	more[(*count)++] = number;
	return 0;
}

/* 1: it is there. */
static int look_at(struct node_tasks *tasks, u32 tid)
{
	const u32 pid = node_task_process(tid);
	struct node_task task;

	if (!pid || !node_task_read(pid, tid, &task))
		return 0;
	return node_tasks_add(tasks, &task) ? -ENOMEM : 1;
}

static int look_at_young(struct node_scan *scan, struct node_tasks *tasks)
{
	int there = 0;
	u32 i;

	scan->gones = 0;
	for (i = 0; there >= 0 && i < scan->youngs; i++) {
		there = look_at(tasks, scan->young[i]);
		if (!there)
			there = scan_note(&scan->gone, &scan->gones, scan->young[i]);
	}
	scan->youngs = 0;
	return there < 0 ? there : 0;
}

static int look_at_new(struct node_scan *scan, struct node_tasks *tasks, u32 count, u32 max)
{
	u32 number = scan->last;
	int there = 0;

	while (there >= 0 && count--) {
		number = number_after(number, max);
		there = look_at(tasks, number);
		if (there > 0)
			there = scan_note(&scan->young, &scan->youngs, number);
	}
	return there < 0 ? there : 0;
}

/* ---- the sweep ------------------------------------------------------------------ */

static bool sweep_ends(struct node_scan *scan)
{
	if (scan->sweep)
		closedir(scan->sweep);
	scan->sweep = NULL;
	scan->tasks = scan->swept;
	scan->swept = 0;
	return true;
}

static int sweep_slice(struct node_scan *scan, struct node_tasks *tasks, bool *round)
{
	const u32 part = scan->tasks / SLICES, enough = part > SLICE_MIN ? part : SLICE_MIN;
	const u32 before = tasks->count;
	const struct dirent *entry = NULL;
	int status = 0;

	*round = false;
	if (!scan->sweep)
		scan->sweep = opendir("/proc");
	while (!status && tasks->count - before < enough) {
		entry = scan->sweep ? readdir(scan->sweep) : NULL;
		if (!entry)
			break;
		if (isdigit((unsigned char)*entry->d_name))
			status = node_tasks_add_process(tasks, strtoul(entry->d_name, NULL, 10));
	}
	scan->swept += tasks->count - before;
	if (!status && !entry)
		*round = sweep_ends(scan);
	return status;
}

/* ---- processes and ancestors -------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

/* Those that the tasks name and that are not among them. */
static int find_missing(const struct node_tasks *tasks, u32 **missing, u32 *count)
{
	u32 i, k;
	int status = 0;

	for (i = 0; i < tasks->count; i++) {
		const u32 named[] = { tasks->task[i].pid, tasks->task[i].parent };

		for (k = 0; k < 2 && !status; k++)
			if (named[k] && !node_tasks_find(tasks, named[k]))
				status = scan_note(missing, count, named[k]);
	}
	if (*count)
		qsort(*missing, *count, sizeof(**missing), by_number);
	return status;
}

/* One generation more. 1: there was any. */
static int add_generation(struct node_tasks *tasks)
{
	u32 *missing = NULL, count = 0, i;
	struct node_task task;
	int status = find_missing(tasks, &missing, &count), any = 0;

	for (i = 0; !status && i < count; i++) {
		if ((i && missing[i] == missing[i - 1]) ||
		    !node_task_read(missing[i], missing[i], &task))
			continue;
		task.beside = true;
		status = node_tasks_add(tasks, &task);
		any = 1;
	}
	free(missing);
	node_tasks_sort(tasks);
	return status ? status : any;
}

static int add_beside(struct node_tasks *tasks)
{
	struct node_task self;
	int more = 0;

	if (node_task_read(getpid(), getpid(), &self)) {
		self.beside = true;
		more = node_tasks_add(tasks, &self);
	}
	node_tasks_sort(tasks);
	while (!more && (more = add_generation(tasks)) == 1)
		more = 0;
	return more < 0 ? more : 0;
}

/* ---- all ------------------------------------------------------------------------- */

static int look_at_all(struct node_scan *scan, struct node_tasks *tasks, u32 latest, bool *round)
{
	const int status = node_tasks_look(tasks);

	scan->begun = latest != 0;
	scan->last = latest > AGAIN ? latest - AGAIN : 0;
	scan->youngs = 0;
	scan->gones = 0;
	scan->swept = tasks->count;
	*round = sweep_ends(scan);
	return status;
}

int node_scan_look(struct node_scan *scan, struct node_tasks *tasks, bool *round)
{
	const u32 latest = number_latest(), max = latest < scan->last ? number_max() : 0;
	const u32 count = numbers_since(scan->last, latest, max);
	int status;

	if (!scan->begun || !latest || count > NEW_MAX)
		return look_at_all(scan, tasks, latest, round);
	*tasks = (struct node_tasks){ .count = 0 };
	status = look_at_young(scan, tasks);
	if (!status)
		status = look_at_new(scan, tasks, count, max);
	scan->last = latest;
	if (!status)
		status = sweep_slice(scan, tasks, round);
	return status ? status : add_beside(tasks);
}

void node_scan_close(struct node_scan *scan)
{
	if (scan->sweep)
		closedir(scan->sweep);
	free(scan->young);
	free(scan->gone);
	*scan = (struct node_scan){ .begun = false };
}
