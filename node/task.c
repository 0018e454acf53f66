// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "small_file.h"
#include "task.h"

/* PF_KTHREAD and PF_NO_SETAFFINITY of <linux/sched.h>: field 9 of stat. */
enum { FLAG_KTHREAD = 0x00200000, FLAG_BOUND = 0x04000000 };

static bool read_stat(const char *directory, struct node_task *task)
{
	char path[160], text[1024], *open, *close;
	unsigned int flags;
	unsigned long long born;

	snprintf(path, sizeof(path), "%s/stat", directory);
	if (!node_read_small(path, text, sizeof(text)))
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open ||
	    sscanf(close + 1, " %*c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		   "%*d %*d %llu", &task->parent, &flags, &born) != 3)
		return false;
	snprintf(task->comm, sizeof(task->comm), "%.*s", (int)(close - open - 1), open + 1);
	task->born = born;
	task->kthread = flags & FLAG_KTHREAD;
	task->bound = flags & FLAG_BOUND;
	return true;
}

bool node_task_cgroup(u32 tid, char cgroup[NODE_TASK_CGROUP])
{
	char path[64], text[4096], *save, *line;

	strcpy(cgroup, "/");
	snprintf(path, sizeof(path), "/proc/%u/cgroup", tid);
	if (!node_read_small(path, text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *colon = strchr(line, ':'),
			   *group = colon ? strchr(colon + 1, ':') : NULL;

		if (!group || !strcmp(group + 1, "/"))
			continue;
		snprintf(cgroup, NODE_TASK_CGROUP, "%s", group + 1);
		break;
	}
	return true;
}

bool node_task_read(u32 pid, u32 tid, struct node_task *task)
{
	char directory[64];
	struct stat owner;

	*task = (struct node_task){ .pid = pid, .tid = tid };
	snprintf(directory, sizeof(directory), "/proc/%u/task/%u", pid, tid);
	if (stat(directory, &owner) || !read_stat(directory, task))
		return false;
	task->uid = owner.st_uid;
	node_task_cgroup(tid, task->cgroup);
	return !node_cpus_affinity(tid, &task->may);
}

int node_task_is(u32 tid, u64 born)
{
	struct node_task task;
	char directory[32];

	snprintf(directory, sizeof(directory), "/proc/%u", tid);
	errno = 0;
	if (read_stat(directory, &task))
		return task.born == born;
	return !errno || errno == ENOENT || errno == ESRCH ? 0 : -1;
}

u32 node_task_process(u32 tid)
{
	char path[64], text[512];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	if (!node_read_small(path, text, sizeof(text)))
		return 0;
	line = strstr(text, "\nTgid:");
	return line ? strtoul(line + 6, NULL, 10) : 0;
}

bool node_task_shares_pids(u32 pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

u32 node_task_self(void)
{
	char self[32];
	const ssize_t length = readlink("/proc/self", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = 0;
	return strtoul(self, NULL, 10);
}

int node_tasks_add(struct node_tasks *tasks, const struct node_task *task)
{
	if (tasks->count == tasks->room) {
		const u32 room = tasks->room ? 2 * tasks->room : 256;
		struct node_task *more = reallocarray(tasks->task, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		tasks->task = more;
		tasks->room = room;
	}
	tasks->task[tasks->count++] = *task;
	return 0;
}

int node_tasks_add_process(struct node_tasks *tasks, u32 pid)
{
	struct node_task task;
	struct dirent *entry;
	char path[64];
	DIR *list;
	int status = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	list = opendir(path);
	if (!list && errno != ENOENT && errno != ESRCH && errno != EACCES)
		return -errno;
	while (!status && list && (entry = readdir(list)))
		if (isdigit((unsigned char)*entry->d_name) &&
		    node_task_read(pid, strtoul(entry->d_name, NULL, 10), &task))
			status = node_tasks_add(tasks, &task);
	if (list)
		closedir(list);
	return status;
}

static int by_tid(const void *a, const void *b)
{
	const struct node_task *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

void node_tasks_sort(struct node_tasks *tasks)
{
	if (tasks->count)
		qsort(tasks->task, tasks->count, sizeof(*tasks->task), by_tid);
}

/* Its caller is always among the tasks: without it nothing could be read, and many may be missing. */
static int find_caller(const struct node_tasks *tasks)
{
	const u32 self = node_task_self();

	if (!self)
		return -errno;
	return node_tasks_find(tasks, self) ? 0 : -ESRCH;
}

int node_tasks_look(struct node_tasks *tasks)
{
	DIR *list = opendir("/proc");
	struct dirent *entry;
	int status = list ? 0 : -errno;

	*tasks = (struct node_tasks){ .count = 0 };
	while (!status && (entry = readdir(list)))
		if (isdigit((unsigned char)*entry->d_name))
			status = node_tasks_add_process(tasks, strtoul(entry->d_name, NULL, 10));
	if (list)
		closedir(list);
	node_tasks_sort(tasks);
	if (!status)
		status = find_caller(tasks);
	if (status)
		node_tasks_free(tasks);
	return status;
}

void node_tasks_free(struct node_tasks *tasks)
{
	free(tasks->task);
	*tasks = (struct node_tasks){ .count = 0 };
}

const struct node_task *node_tasks_find(const struct node_tasks *tasks, u32 tid)
{
	const struct node_task key = { .tid = tid };

	return tasks->count ? bsearch(&key, tasks->task, tasks->count, sizeof(key), by_tid) : NULL;
}

bool node_tasks_below(const struct node_tasks *tasks, const struct node_task *task, u32 pid)
{
	u32 steps;

	/* A chain of parents is short; one that was read while it changed may be a ring. */
	for (steps = 0; task && steps < 1000; steps++) {
		if (task->pid == pid)
			return true;
		task = task->parent ? node_tasks_find(tasks, task->parent) : NULL;
	}
	return false;
}
