// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "facts.h"
#include "files.h"

#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/"

/* The selected word of a line of choices: the one in [brackets]. */
static void memory_chosen(char *text)
{
	char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return;
	*close = 0;
	memmove(text, open + 1, close - open);
}

static long long meminfo_bytes(const char *root, const char *word)
{
	const long long number = doctor_file_entry(root, "/proc/meminfo", word);

	return number < 0 ? -1 : 1024 * number;
}

/*
 * What a cgroup holds and cannot give back: its cache of files, which counts as used, is dropped before
 * anything is killed. -1: not known.
 */
static long long memory_held(const struct doctor_cgroup *cgroup)
{
	static const char *const cache[2][2] = { { "total_inactive_file", "total_active_file" },
						 { "inactive_file", "active_file" } };
	long long held = doctor_cgroup_number(cgroup, cgroup->unified ? "memory.current" :
								       "memory.usage_in_bytes");
	int i;

	for (i = 0; i < 2 && held >= 0; i++) {
		const long long bytes = doctor_cgroup_entry(cgroup, "memory.stat", cache[cgroup->unified][i]);

		held -= bytes > 0 && bytes < held ? bytes : 0;
	}
	return held;
}

/* Of all cgroups on the way up the one with the least room. */
static void read_limits(struct doctor_memory_facts *facts, const char *root)
{
	struct doctor_cgroup cgroup;
	long long limit, used;

	if (!doctor_cgroup_find(&cgroup, root, "memory"))
		return;
	facts->killed = cgroup.unified ?
		doctor_cgroup_entry(&cgroup, "memory.events", "oom_kill") :
		doctor_cgroup_entry(&cgroup, "memory.oom_control", "oom_kill");
	do {
		limit = doctor_cgroup_number(&cgroup, cgroup.unified ? "memory.max" :
							     "memory.limit_in_bytes");
		used = memory_held(&cgroup);
		if (limit < 0 || used < 0 || limit >= facts->total)
			continue;
		if (limit - used < facts->available) {
			facts->available = limit > used ? limit - used : 0;
			facts->total = limit;
		}
	} while (doctor_cgroup_up(&cgroup));
}

void doctor_read_memory(struct doctor_memory_facts *facts, const char *root)
{
	struct node_cpus nodes = { { 0 } };
	char list[DOCTOR_WORD];

	*facts = (struct doctor_memory_facts){
		.nodes = -1,
		.balancing = doctor_file_number(root, "/proc/sys/kernel/numa_balancing"),
		.reclaim = doctor_file_number(root, "/proc/sys/vm/zone_reclaim_mode"),
		.swap_total = meminfo_bytes(root, "SwapTotal:"),
		.total = meminfo_bytes(root, "MemTotal:"),
		.available = meminfo_bytes(root, "MemAvailable:"),
		.killed = -1,
		.overcommit = doctor_file_number(root, "/proc/sys/vm/overcommit_memory"),
	};
	facts->swap_used = facts->swap_total < 0 ? -1 :
			   facts->swap_total - meminfo_bytes(root, "SwapFree:");
	doctor_file_line(root, facts->huge, DOCTOR_WORD, HUGE_PAGES "enabled");
	doctor_file_line(root, facts->defrag, DOCTOR_WORD, HUGE_PAGES "defrag");
	memory_chosen(facts->huge);
	memory_chosen(facts->defrag);
	if (doctor_file_line(root, list, sizeof(list), "/sys/devices/system/node/online") &&
	    node_cpus_read_list(&nodes, list))
		facts->nodes = node_cpus_count(&nodes);
	read_limits(facts, root);
	if (facts->killed < 0)
		facts->killed = doctor_file_entry(root, "/proc/vmstat", "oom_kill");
}
