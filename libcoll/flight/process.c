// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the kernel says of a rank's process. Nothing here needs the lock of the process' memory,
 * which a rank in trouble may hold.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "find.h"

enum { STAT_PRIORITY = 18, STAT_CPU = 39, TASKS_MOST = 1024 };	/* some 40 ms */

static bool process_read(const char *path, char *text, size_t bytes)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = 0;
	return length > 0;
}

/* ---- threads ------------------------------------------------------------------------ */

/* The name of a program may hold anything; the last ) ends it. */
static void read_stat(uint32_t pid, uint32_t tid, uint8_t *state, __u64 *ticks)
{
	unsigned long long user = 0, system = 0;
	char path[64], text[1024], *rest;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	if (!process_read(path, text, sizeof(text)))
		return;
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			    (char *)state, &user, &system) != 3)
		return;
	*ticks = user + system;
}

static void read_wchan(uint32_t pid, uint32_t tid, char *wchan, size_t bytes)
{
	char path[64], *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/wchan", pid, tid);
	if (!process_read(path, wchan, bytes) || !strcmp(wchan, "0"))
		*wchan = 0;
	for (at = wchan; *at; at++)
		if (!isprint((unsigned char)*at))
			*at = '?';
}

static uint32_t status_number(uint32_t pid, uint32_t tid, const char *field, bool last)
{
	char path[64], text[4096], *line, *end;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	if (!process_read(path, text, sizeof(text)) || !(line = strstr(text, field)))
		return 0;
	line += strlen(field);
	end = strchrnul(line, '\n');
	*end = 0;
	while (last && end > line && !isspace((unsigned char)end[-1]))
		end--;
	return strtoul(last ? end : line, NULL, 10);
}

uint32_t coll_flight_owner(const struct coll_flight_seen *seen)
{
	char path[64];
	struct dirent *entry;
	uint32_t tid = 0, left = TASKS_MOST;
	DIR *tasks;

	if (seen->pid == seen->page.pid)
		return seen->page.owner;
	if (seen->page.owner == seen->page.pid)
		return seen->pid;
	snprintf(path, sizeof(path), "/proc/%u/task", seen->pid);
	tasks = opendir(path);
	while (tasks && !tid && left-- && (entry = readdir(tasks))) {
		const uint32_t task = strtoul(entry->d_name, NULL, 10);

		if (task && status_number(seen->pid, task, "\nNSpid:", true) == seen->page.owner)
			tid = task;
	}
	if (tasks)
		closedir(tasks);
	return tid;
}

static void look_at_threads(struct coll_flight_seen *seen)
{
	const uint32_t pid = seen->pid, owner = coll_flight_owner(seen);
	char path[64], *end;

	read_stat(pid, pid, &seen->state, &seen->ticks);
	read_wchan(pid, pid, seen->wchan, sizeof(seen->wchan));
	if (owner) {
		read_stat(pid, owner, &seen->owner_state, &seen->owner_ticks);
		read_wchan(pid, owner, seen->owner_wchan, sizeof(seen->owner_wchan));
	}
	seen->tracer = status_number(pid, owner ? owner : pid, "\nTracerPid:", false);
	if (!seen->tracer)
		return;
	snprintf(path, sizeof(path), "/proc/%u/comm", seen->tracer);
	process_read(path, seen->tracer_name, sizeof(seen->tracer_name));
	end = strchr(seen->tracer_name, '\n');
	if (end)
		*end = 0;
}

/* ---- a thread of coll.ko ----------------------------------------------------------------- */

static bool has_run_in_kernel(const struct coll_flight_seen *seen)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_RUNS; i++)
		if (seen->page.run[i].where == COLL_FLIGHT_KERNEL)
			return true;
	return false;
}

/* 0: the thread is of another namespace of pids, or has ended. */
static uint32_t kernel_thread_of(uint32_t pid, int device)
{
	static const char name[] = "\ncoll-thread:\t";
	char path[64], text[2048], *at;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", pid, device);
	if (!process_read(path, text, sizeof(text)) || !(at = strstr(text, name)))
		return 0;
	return strtoul(at + sizeof(name) - 1, NULL, 10);
}

/* A field of stat behind the name: proc(5) numbers them, from 3 on. */
static long stat_field(const char *stat, int number)
{
	const char *at = strrchr(stat, ')');
	int field;

	for (field = 2; field < number && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtol(at, NULL, 10) : -1;
}

static bool read_task(uint32_t pid, uint32_t tid, char *stat, size_t bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	return process_read(path, stat, bytes) && strrchr(stat, ')');
}

static void read_cpu(uint32_t tid, char *cpu, size_t bytes)
{
	char stat[1024];

	*cpu = 0;
	if (read_task(tid, tid, stat, sizeof(stat)))
		snprintf(cpu, bytes, "CPU %ld", stat_field(stat, STAT_CPU));
}

/* It is the thread that makes progress. Clock ticks are too coarse for one that sleeps much. */
static void look_at_kernel_thread(struct coll_flight_seen *seen, int device)
{
	const uint32_t tid = kernel_thread_of(seen->pid, device);
	unsigned long long ran;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%u/schedstat", tid);
	if (!tid || !process_read(path, text, sizeof(text)) || sscanf(text, "%llu", &ran) != 1)
		return;
	read_stat(tid, tid, &seen->owner_state, &seen->owner_ticks);
	seen->owner_ticks = ran;
	seen->flags |= COLL_FLIGHT_KERNEL_THREAD;
	if (seen->owner_state == 'R')
		read_cpu(tid, seen->owner_wchan, sizeof(seen->owner_wchan));
	else
		read_wchan(tid, tid, seen->owner_wchan, sizeof(seen->owner_wchan));
}

/* What is ready on a CPU, with the highest priority: the lowest number. */
struct ready_task {
	long cpu, priority;
	uint32_t tid;
	char name[16];
};

static void look_at_task(struct ready_task *most, uint32_t pid, uint32_t tid)
{
	char stat[1024], *name, *end;

	if (!read_task(pid, tid, stat, sizeof(stat)))
		return;
	name = strchr(stat, '(');
	end = strrchr(stat, ')');
	if (!name || strncmp(end, ") R", 3) || stat_field(stat, STAT_CPU) != most->cpu ||
	    stat_field(stat, STAT_PRIORITY) >= most->priority)
		return;
	most->priority = stat_field(stat, STAT_PRIORITY);
	most->tid = tid;
	*end = 0;
	snprintf(most->name, sizeof(most->name), "%.15s", name + 1);
}

static void each_number_in(const char *path, void (*each)(uint32_t number, void *argument),
			   void *argument)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			each(strtoul(entry->d_name, NULL, 10), argument);
	if (folder)
		closedir(folder);
}

struct task_search {
	struct ready_task most;
	uint32_t pid;
};

static void search_task(uint32_t tid, void *argument)
{
	struct task_search *search = argument;

	look_at_task(&search->most, search->pid, tid);
}

static void search_process(uint32_t pid, void *argument)
{
	struct task_search *search = argument;
	char path[64];

	search->pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	each_number_in(path, search_task, search);
}

void coll_flight_who_has_cpu(struct coll_flight_seen *seen)
{
	struct task_search search = { .most.priority = 0 };	/* real time is below */

	if (sscanf(seen->owner_wchan, "CPU %ld", &search.most.cpu) != 1)
		return;
	each_number_in("/proc", search_process, &search);
	seen->tracer = search.most.tid;
	snprintf(seen->tracer_name, sizeof(seen->tracer_name), "%.15s", search.most.name);
}

/* ---- all of it ------------------------------------------------------------------------ */

void coll_flight_look(struct coll_flight_seen *seen, const struct coll_flight_found *found)
{
	look_at_threads(seen);
	if (found->device >= 0 && has_run_in_kernel(seen))
		look_at_kernel_thread(seen, found->device);
}

uint8_t coll_flight_state(const struct coll_flight_seen *seen)
{
	uint8_t state = 0;
	__u64 ticks;

	read_stat(seen->pid, seen->pid, &state, &ticks);
	return state;
}
