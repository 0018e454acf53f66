// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cpus.h"

/* "0-3,8" */
static int parse_list(const char *text, cpu_set_t *cpus)
{
	char *end;
	long first, last;

	CPU_ZERO(cpus);
	do {
		first = last = strtol(text, &end, 10);
		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text)
				return -EINVAL;
		}
		if (first < 0 || last < first || last >= CPU_SETSIZE)
			return -EINVAL;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
		text = end + 1;
	} while (*end == ',');
	return *end && *end != '\n' ? -EINVAL : 0;
}

static int cpus_online(cpu_set_t *cpus)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	char line[1024];
	int error = -ENODEV;

	if (file && fgets(line, sizeof(line), file))
		error = parse_list(line, cpus);
	if (file)
		fclose(file);
	return error;
}

/* The binding of the process is that of its main thread. */
static int cpus_others(cpu_set_t *cpus)
{
	cpu_set_t ours;
	int error = cpus_online(cpus);

	if (error)
		return error;
	if (sched_getaffinity(getpid(), sizeof(ours), &ours))
		return -errno;
	CPU_AND(&ours, &ours, cpus);
	CPU_XOR(cpus, cpus, &ours);
	return CPU_COUNT(cpus) ? 0 : -ENODEV;
}

int coll_cpus_parse(const char *text, cpu_set_t *cpus)
{
	return strcmp(text, "others") ? parse_list(text, cpus) : cpus_others(cpus);
}

uint64_t coll_cpus_idle_ns(const char *text)
{
	const uint64_t tick = 1000000000ull / sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long idle, sum = 0;
	char line[512];
	cpu_set_t ours;
	int cpu;

	if (!file)
		return 0;
	if (*text ? coll_cpus_parse(text, &ours) : sched_getaffinity(0, sizeof(ours), &ours))
		CPU_ZERO(&ours);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu%d %*u %*u %*u %llu", &cpu, &idle) == 2 && cpu >= 0 &&
		    cpu < CPU_SETSIZE && CPU_ISSET(cpu, &ours))
			sum += idle;
	fclose(file);
	return sum * tick;
}

int coll_cpus_bind(const char *text)
{
	cpu_set_t cpus;
	int error = coll_cpus_parse(text, &cpus);

	if (error)
		return error;
	return sched_setaffinity(0, sizeof(cpus), &cpus) ? -errno : 0;
}

int coll_priority_parse(const char *text, struct coll_priority *priority)
{
	const char *number = strchr(text, ':');
	char *end;
	long value;

	if (!number)
		return -EINVAL;
	priority->fifo = !strncmp(text, "fifo:", 5);
	if (!priority->fifo && strncmp(text, "nice:", 5))
		return -EINVAL;
	value = strtol(++number, &end, 10);
	if (end == number || *end || value < (priority->fifo ? 1 : -20) ||
	    value > (priority->fifo ? 99 : 19))
		return -EINVAL;
	priority->value = value;
	return 0;
}

int coll_priority_take(const char *text)
{
	struct coll_priority priority;
	struct sched_param fifo = { 0 };
	int error = coll_priority_parse(text, &priority);

	if (error)
		return error;
	if (!priority.fifo)	/* Linux sets it for this thread alone. */
		return setpriority(PRIO_PROCESS, 0, priority.value) ? -errno : 0;
	fifo.sched_priority = priority.value;
	return sched_setscheduler(0, SCHED_FIFO, &fifo) ? -errno : 0;
}
