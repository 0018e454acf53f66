// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on memory. */
#include <string.h>

#include "check.h"

#define SCARCE 0.05	/* of the memory */

static void judge_huge_pages(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_memory_facts *m = &facts->memory;
	const bool stalls = !strcmp(m->defrag, "always");

	if (!*m->huge)
		doctor_find(finding, DOCTOR_UNKNOWN, "no transparent huge pages in this kernel");
	else
		doctor_find(finding, stalls && strcmp(m->huge, "never") ? DOCTOR_SLOW :
			    !strcmp(m->huge, "always") ? DOCTOR_NOTE : DOCTOR_OK,
			    "%s, defrag %s", m->huge, m->defrag);
	if (stalls)
		doctor_cost(finding, "a page fault may compact memory meanwhile; not measured");
}

static void judge_numa(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_memory_facts *m = &facts->memory;

	if (m->nodes < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "the kernel lists no NUMA nodes");
	else if (m->nodes < 2)
		doctor_find(finding, DOCTOR_OK, "one NUMA node");
	else
		doctor_find(finding, m->balancing > 0 || m->reclaim > 0 ? DOCTOR_NOTE : DOCTOR_OK,
			    "%lld nodes, numa_balancing %lld, zone_reclaim_mode %lld", m->nodes,
			    m->balancing, m->reclaim);
}

static void judge_swap(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_memory_facts *m = &facts->memory;

	if (m->swap_total < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "/proc/meminfo cannot be read");
	else if (m->swap_used > 0)
		doctor_find(finding, DOCTOR_NOTE, "%lld MB are swapped out", m->swap_used >> 20);
	else
		doctor_find(finding, DOCTOR_OK, m->swap_total ? "nothing is swapped out" : "none");
}

static void judge_room(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_memory_facts *m = &facts->memory;

	if (m->total <= 0 || m->available < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "/proc/meminfo cannot be read");
	else if (m->available < SCARCE * m->total)
		doctor_find(finding, DOCTOR_FAIL, "%lld of %lld MB are free", m->available >> 20,
			    m->total >> 20);
	else
		doctor_find(finding, m->killed > 0 ? DOCTOR_NOTE : DOCTOR_OK,
			    "%lld GB free; %lld processes killed for lack of memory so far",
			    m->available >> 30, m->killed > 0 ? m->killed : 0);
	if (m->overcommit == 2)
		doctor_advise(finding, "sysctl -w vm.overcommit_memory=0: strict accounting refuses "
				       "memory that is free");
}

const struct doctor_check doctor_memory_checks[] = {
	{ "huge-pages", "transparent_hugepage/enabled and defrag", judge_huge_pages,
	  "khugepaged and compaction are rare, long events on application CPUs; not measured",
	  "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, and the same to defrag",
	  "always is fast for large arrays, and makes khugepaged scan and move pages; madvise leaves "
	  "it to programs that ask. What it costs here, collnoise measure shows as khugepaged "
	  "and kcompactd.", false },
	{ "numa", "kernel.numa_balancing, vm.zone_reclaim_mode, on more than one node", judge_numa,
	  "balancing takes page faults on memory that is where it should be; not measured",
	  "sysctl -w kernel.numa_balancing=0 vm.zone_reclaim_mode=0, and bind ranks to cores",
	  "Ranks that are bound to cores touch their memory first, so it is on their node already.",
	  false },
	{ "swap", "SwapTotal and SwapFree", judge_swap,
	  "a page that comes back from a disk takes milliseconds; not measured",
	  "swapoff -a, when what is swapped out fits into memory; sysctl -w vm.swappiness=1",
	  "A rank whose pages are swapped out makes all others wait.", true },
	{ "memory", "free memory of the node and its cgroup; processes killed for lack of it",
	  judge_room, "the kernel kills processes; a killed rank fails its job",
	  "find out which job or cgroup takes it: systemd-cgtop -m; raise memory.max",
	  "The least of what the node has and what the cgroup may still take, where its cache of "
	  "files does not count. A rank needs 0.2 to 0.6 MB besides its own data "
	  "(docs/results/performance.md), and the memory that it shares with peers.", true },
	{ NULL },
};
