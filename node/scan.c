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
	NUMBERS = 1 << 22,		/* the kernel's limit */
	GENERATIONS = 64,		/* of ancestors: a user can make chains of any length */
};

/* ---- numbers ---------------------------------------------------------------- */

/* What the kernel counts. 0: not known. */
struct kernel_counts {
	u32 latest;			/* number that was given */
	u32 threads;			/* on this machine */
	u32 max;			/* of numbers */
	u64 forks;			/* since boot, of threads too */
};

static u32 file_number(const char *path)
{
	char text[32];

	return node_read_small(path, text, sizeof(text)) ? strtoul(text, NULL, 10) : 0;
}

/* "0.20 0.18 0.12 1/80 11206" */
static void counts_read_load(struct kernel_counts *counts)
{
	char text[128];
	const char *total, *last;

	if (!node_read_small("/proc/loadavg", text, sizeof(text)))
		return;
	total = strchr(text, '/');
	last = strrchr(text, ' ');
	counts->threads = total ? strtoul(total + 1, NULL, 10) : 0;
	counts->latest = last ? strtoul(last + 1, NULL, 10) : 0;
}

/* Behind the interrupts, whose line may have tens of kilobytes. */
static u64 forks_since_boot(void)
{
	FILE *from = fopen("/proc/stat", "re");
	unsigned long long forks = 0;
	char *line = NULL;
	size_t room = 0;

	while (from && getline(&line, &room, from) > 0)
		if (sscanf(line, "processes %llu", &forks) == 1)
			break;
	free(line);
	if (from)
		fclose(from);
	return forks;
}

static struct kernel_counts counts_read(void)
{
	struct kernel_counts counts = { .forks = forks_since_boot(),
					.max = file_number("/proc/sys/kernel/pid_max") };
	u32 latest;

	counts_read_load(&counts);
	/* Where a container's /proc/loadavg is made by others, its number is the host's. */
	latest = file_number("/proc/sys/kernel/ns_last_pid");
	if (latest)
		counts.latest = latest;
	/* /proc is of another namespace of pids. */
	if (node_task_self() != (u32)getpid())
		counts.latest = 0;
	return counts;
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

/* Numbers that were given say nothing where they may have gone once around. */
static bool went_around(const struct node_scan *scan, const struct kernel_counts *counts)
{
	const u64 forks = counts->forks - scan->forks;

	return forks > NEW_MAX || (counts->max && forks > counts->max / 2);
}

bool node_scan_is_gone(u32 tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", tid);
	return access(path, F_OK) && (errno == ENOENT || errno == ESRCH);
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
		if (!there && node_scan_is_gone(scan->young[i]))
			there = scan_note(&scan->gone, &scan->gones, scan->young[i]);
	}
	scan->youngs = 0;
	return there < 0 ? there : 0;
}

/* 1: it is there, and young. */
static int look_at_first(struct node_scan *scan, struct node_tasks *tasks, u32 number)
{
	int there = look_at(tasks, number);

	if (there > 0 && scan_note(&scan->young, &scan->youngs, number))
		there = -ENOMEM;
	return there;
}

static int look_at_hidden(struct node_scan *scan, struct node_tasks *tasks)
{
	int there = 0;
	u32 i;

	for (i = 0; there >= 0 && i < scan->hiddens; i++)
		there = look_at_first(scan, tasks, scan->hidden[i]);
	scan->hiddens = 0;
	return there < 0 ? there : 0;
}

/* A number is given before its task can be seen: the last are looked at again. */
static int look_at_new(struct node_scan *scan, struct node_tasks *tasks, u32 count, u32 max)
{
	u32 number = scan->last;
	int there = 0;

	while (there >= 0 && count--) {
		number = number_after(number, max);
		there = look_at_first(scan, tasks, number);
		if (!there && count < AGAIN)
			there = scan_note(&scan->hidden, &scan->hiddens, number);
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

/* All in SLICES looks, also where there are more by now than in the round before. */
static u32 sweep_part(const struct node_scan *scan, u32 threads)
{
	const u32 part = (threads > scan->tasks ? threads : scan->tasks) / SLICES + 1;

	return part > SLICE_MIN ? part : SLICE_MIN;
}

/* The next of the sweep. NULL: it is at its end, or, with *failed, cannot be read. */
static const struct dirent *sweep_next(struct node_scan *scan, bool *failed)
{
	const struct dirent *entry;

	errno = 0;
	if (!scan->sweep)
		scan->sweep = opendir("/proc");
	entry = scan->sweep ? readdir(scan->sweep) : NULL;
	*failed = !entry && errno;
	return entry;
}

static int sweep_slice(struct node_scan *scan, struct node_tasks *tasks, u32 threads, bool *round)
{
	const u32 enough = sweep_part(scan, threads), before = tasks->count;
	const struct dirent *entry = NULL;
	bool failed = false;
	int status = 0;

	while (!status && tasks->count - before < enough) {
		entry = sweep_next(scan, &failed);
		if (!entry)
			break;
		if (isdigit((unsigned char)*entry->d_name))
			status = node_tasks_add_process(tasks, strtoul(entry->d_name, NULL, 10));
	}
	scan->swept += tasks->count - before;
	if (!status && !entry && !failed)
		*round = sweep_ends(scan);
	return status;
}

/* ---- processes and ancestors -------------------------------------------------------- */

/* The numbers that are among the tasks, or were asked for: a bit each. */
struct known {
	u64 *bits;
};

/* Whether it is new. */
static bool known_mark(struct known *known, u32 number)
{
	const u64 bit = 1ull << number % 64;

	if (!number || number >= NUMBERS || known->bits[number / 64] & bit)
		return false;
	known->bits[number / 64] |= bit;
	return true;
}

static int add_named(struct node_tasks *tasks, struct known *known, u32 number)
{
	struct node_task task;

	if (!known_mark(known, number) || !node_task_read(number, number, &task))
		return 0;
	task.beside = true;
	return node_tasks_add(tasks, &task);
}

/* The processes of all threads. */
static int add_processes(struct node_tasks *tasks, struct known *known)
{
	const u32 end = tasks->count;
	int status = 0;
	u32 i;

	for (i = 0; !status && i < end; i++)
		status = add_named(tasks, known, tasks->task[i].pid);
	return status;
}

/* Of those from `from` on; each generation adds the parents of the one before. */
static int add_ancestors(struct node_tasks *tasks, struct known *known, u32 from)
{
	u32 generation, end, i;
	int status = 0;

	for (generation = 0; !status && generation < GENERATIONS && from < tasks->count;
	     generation++) {
		end = tasks->count;
		for (i = from; !status && i < end; i++)
			status = add_named(tasks, known, tasks->task[i].parent);
		from = end;
	}
	return status;
}

/* This process last, even if it is there: only its ancestors may be wanted. */
static int add_self(struct node_tasks *tasks, struct known *known)
{
	struct node_task self;

	if (!node_task_read(getpid(), getpid(), &self))
		return 0;
	self.beside = true;
	known_mark(known, self.tid);
	return node_tasks_add(tasks, &self);
}

static int add_beside(struct node_tasks *tasks, bool ancestors)
{
	struct known known = { .bits = calloc(NUMBERS / 64, sizeof(u64)) };
	int status = known.bits ? 0 : -ENOMEM;
	u32 i;

	for (i = 0; known.bits && i < tasks->count; i++)
		known_mark(&known, tasks->task[i].tid);
	if (!status)
		status = add_processes(tasks, &known);
	if (!status)
		status = add_self(tasks, &known);
	if (!status && tasks->count)
		status = add_ancestors(tasks, &known, ancestors ? 0 : tasks->count - 1);
	free(known.bits);
	node_tasks_sort(tasks);
	return status;
}

/* ---- all ------------------------------------------------------------------------- */

static int look_at_all(struct node_scan *scan, struct node_tasks *tasks, u32 latest, bool *round)
{
	const int status = node_tasks_look(tasks);

	/* Without any, /proc could not be read. */
	scan->begun = !status && latest && tasks->count;
	scan->last = latest > AGAIN ? latest - AGAIN : 0;
	scan->youngs = 0;
	scan->gones = 0;
	scan->hiddens = 0;
	scan->swept = tasks->count;
	*round = sweep_ends(scan) && !status && tasks->count;
	return status;
}

static int look_at_some(struct node_scan *scan, struct node_tasks *tasks, u32 count, u32 max)
{
	int status;

	*tasks = (struct node_tasks){ .count = 0 };
	status = look_at_young(scan, tasks);
	if (!status)
		status = look_at_hidden(scan, tasks);
	return status ? status : look_at_new(scan, tasks, count, max);
}

int node_scan_look(struct node_scan *scan, struct node_tasks *tasks, bool ancestors, bool *round)
{
	const struct kernel_counts counts = counts_read();
	const u32 count = numbers_since(scan->last, counts.latest, counts.max);
	const bool all = !scan->begun || !counts.latest || count > NEW_MAX ||
			 went_around(scan, &counts);
	int status;

	*round = false;
	scan->forks = counts.forks;
	if (all)
		return look_at_all(scan, tasks, counts.latest, round);
	status = look_at_some(scan, tasks, count, counts.max);
	scan->last = counts.latest;
	if (!status)
		status = sweep_slice(scan, tasks, counts.threads, round);
	if (!status)
		status = add_beside(tasks, ancestors);
	scan->begun = !status;		/* what it has missed is seen by a look at all */
	return status;
}

void node_scan_close(struct node_scan *scan)
{
	if (scan->sweep)
		closedir(scan->sweep);
	free(scan->young);
	free(scan->gone);
	free(scan->hidden);
	*scan = (struct node_scan){ .begun = false };
}
