// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "facts.h"
#include "files.h"
#include "node/small_file.h"

#define CPUS "/sys/devices/system/cpu/"

enum { SLEEP_STATES = 16, STATUS = 16384 };

static void read_list(struct node_cpus *cpus, const char *root, const char *path)
{
	char text[NODE_CPUS_TEXT];

	if (!doctor_file_line(root, text, sizeof(text), "%s", path) ||
	    !node_cpus_read_list(cpus, text))
		*cpus = (struct node_cpus){ { 0 } };
}

static void read_allowed(struct node_cpus *cpus, const char *root)
{
	static const char word[] = "Cpus_allowed_list:\t";
	char path[DOCTOR_PATH], text[STATUS], *line;

	*cpus = (struct node_cpus){ { 0 } };
	snprintf(path, sizeof(path), "%s/proc/self/status", root);
	if (!node_read_small(path, text, sizeof(text)) || !(line = strstr(text, word)))
		return;
	line += strlen(word);
	line[strcspn(line, "\n")] = 0;
	if (!node_cpus_read_list(cpus, line))
		*cpus = (struct node_cpus){ { 0 } };
}

/* ---- the cgroup ------------------------------------------------------------ */

/* CPUs that one cgroup may use; -1: no limit of its own. */
static double quota_of(const struct doctor_cgroup *cgroup)
{
	long long quota, period;
	char text[64];

	if (cgroup->unified)
		return doctor_cgroup_line(cgroup, "cpu.max", text, sizeof(text)) &&
		       sscanf(text, "%lld %lld", &quota, &period) == 2 && period > 0 ?
			       (double)quota / period : -1;
	quota = doctor_cgroup_number(cgroup, "cpu.cfs_quota_us");
	period = doctor_cgroup_number(cgroup, "cpu.cfs_period_us");
	return quota > 0 && period > 0 ? (double)quota / period : -1;
}

/* The tightest limit on the way up, and how often it stopped its tasks. */
static void read_quota(struct doctor_cpus_facts *facts, const char *root)
{
	struct doctor_cgroup cgroup;
	double quota;

	facts->quota = facts->throttled = facts->throttled_ns = -1;
	facts->rt_group_us = -1;
	if (!doctor_cgroup_find(&cgroup, root, "cpu"))
		return;
	facts->rt_group_us = doctor_cgroup_number(&cgroup, "cpu.rt_runtime_us");
	do {
		quota = quota_of(&cgroup);
		if (quota < 0 || (facts->quota >= 0 && facts->quota <= quota))
			continue;
		facts->quota = quota;
		facts->quota_unified = cgroup.unified;
		doctor_cgroup_name(&cgroup, cgroup.unified ? "cpu.max" : "cpu.cfs_quota_us",
				   facts->quota_file, DOCTOR_FILE);
		facts->throttled = doctor_cgroup_entry(&cgroup, "cpu.stat", "nr_throttled");
		facts->throttled_ns = cgroup.unified ?
			1000 * doctor_cgroup_entry(&cgroup, "cpu.stat", "throttled_usec") :
			doctor_cgroup_entry(&cgroup, "cpu.stat", "throttled_time");
	} while (doctor_cgroup_up(&cgroup));
}

/* ---- interrupts ------------------------------------------------------------ */

/* An interrupt that a driver handles has a folder of its name. */
static bool has_handler(const char *root, const char *interrupt)
{
	char path[DOCTOR_PATH];
	struct dirent *entry;
	bool found = false;
	DIR *list;

	snprintf(path, sizeof(path), "%s/proc/irq/%s", root, interrupt);
	list = opendir(path);
	while (!found && list && (entry = readdir(list)))
		found = entry->d_type == DT_DIR && *entry->d_name != '.';
	if (list)
		closedir(list);
	return found;
}

static bool lands_on(const struct node_cpus *cpus, const char *root, const char *interrupt)
{
	struct node_cpus may;
	char path[DOCTOR_PATH];

	snprintf(path, sizeof(path), "/proc/irq/%.32s/effective_affinity_list", interrupt);
	read_list(&may, root, path);
	if (!node_cpus_count(&may)) {
		snprintf(path, sizeof(path), "/proc/irq/%.32s/smp_affinity_list", interrupt);
		read_list(&may, root, path);
	}
	node_cpus_keep(&may, cpus);
	return node_cpus_count(&may);
}

static void read_interrupts(struct doctor_cpus_facts *facts, const char *root)
{
	char path[DOCTOR_PATH];
	struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "%s/proc/irq", root);
	list = opendir(path);
	facts->interrupts = list ? 0 : -1;
	facts->interrupts_on = 0;
	while (list && (entry = readdir(list))) {
		if (!isdigit((unsigned char)*entry->d_name) || !has_handler(root, entry->d_name))
			continue;
		facts->interrupts++;
		facts->interrupts_on += lands_on(&facts->isolated, root, entry->d_name);
	}
	if (list)
		closedir(list);
	facts->balancer = doctor_task_named(root, "irqbalance");
}

/* ---- processors ------------------------------------------------------------ */

/* The governor that all allowed CPUs have, or "mixed". */
static void read_governor(struct doctor_cpus_facts *facts, const char *root)
{
	u32 cpu = node_cpus_next(&facts->allowed, 0);
	char one[DOCTOR_WORD];

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&facts->allowed, cpu + 1)) {
		if (!doctor_file_line(root, one, sizeof(one),
				      CPUS "cpu%u/cpufreq/scaling_governor", cpu))
			continue;
		if (*facts->governor && strcmp(facts->governor, one))
			strcpy(one, "mixed");
		strcpy(facts->governor, one);
	}
}

static long long deepest_wake_up(const char *root, u32 cpu)
{
	long long most = -1, wake;
	int state;

	for (state = 0; state < SLEEP_STATES; state++) {
		if (doctor_file_number(root, CPUS "cpu%u/cpuidle/state%d/disable", cpu, state))
			continue;
		wake = doctor_file_number(root, CPUS "cpu%u/cpuidle/state%d/latency", cpu, state);
		most = wake > most ? wake : most;
	}
	return most;
}

static long long shared_cores(const struct doctor_cpus_facts *facts, const char *root)
{
	u32 cpu = node_cpus_next(&facts->allowed, 0);
	struct node_cpus threads;
	long long count = 0;
	char path[128];

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&facts->allowed, cpu + 1)) {
		snprintf(path, sizeof(path), CPUS "cpu%u/topology/thread_siblings_list", cpu);
		read_list(&threads, root, path);
		node_cpus_keep(&threads, &facts->allowed);
		count += node_cpus_count(&threads) > 1;
	}
	return count;
}

static long long ticks_a_second(void)
{
	struct timespec tick;

	return !clock_getres(CLOCK_MONOTONIC_COARSE, &tick) && tick.tv_nsec ?
		       (1000000000 + tick.tv_nsec / 2) / tick.tv_nsec : -1;
}

void doctor_read_cpus(struct doctor_cpus_facts *facts, const char *root)
{
	*facts = (struct doctor_cpus_facts){
		.rt_runtime_us = doctor_file_number(root, "/proc/sys/kernel/sched_rt_runtime_us"),
		.rt_period_us = doctor_file_number(root, "/proc/sys/kernel/sched_rt_period_us"),
		.hz = ticks_a_second(),
	};
	read_list(&facts->online, root, CPUS "online");
	read_list(&facts->isolated, root, CPUS "isolated");
	read_list(&facts->no_tick, root, CPUS "nohz_full");
	read_allowed(&facts->allowed, root);
	read_quota(facts, root);
	read_interrupts(facts, root);
	read_governor(facts, root);
	facts->sleep_us = deepest_wake_up(root, node_cpus_next(&facts->allowed, 0));
	facts->siblings = shared_cores(facts, root);
}
