// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks are of one node if they have the same boot and the same network namespace, as for memory
 * links: what goes between them passes no NIC. A domain is an L3 cache, if a rank's CPUs have one
 * in common, which /sys says. Ranks of one boot share the cores that they may run on, whichever
 * network namespaces (containers) they are in.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/runs.h"
#include "core/port.h"
#include "libcoll/exec/exec.h"
#include "levels.h"
#include "numbers.h"
#include "uapi/coll_schedule.h"

enum {
	NO_DOMAIN = 0xffff,	/* the CPUs have no L3 in common, or it is not known */
	NAME_BYTES = 96,
};

/* What a rank tells of itself. */
struct told {
	char node[NAME_BYTES];
	char leaf[NAME_BYTES];	/* the switch that its node is at; "": not known */
	uint32_t domain;
	uint32_t cores;		/* by its launcher; 0: it says nothing */
	cpu_set_t cpus;		/* none: not known */
};

/* What rank 0 has found, besides numbers. */
struct summary {
	uint32_t crowding;	/* ranks per core, in thousandths; 0: not known */
	uint32_t several_switches;	/* 0 or 1: their numbers are shared */
};

/* The ranks of one boot, the CPUs of all of them, and what launchers say. */
struct shared_cores {
	char boot[NAME_BYTES];
	uint32_t ranks, cores;
	cpu_set_t cpus;
};

/* ---- this rank -------------------------------------------------------------- */

static uint32_t l3_of(int cpu)
{
	char path[80];
	uint32_t id = NO_DOMAIN;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index3/id", cpu);
	file = fopen(path, "re");
	if (!file)
		return NO_DOMAIN;
	if (fscanf(file, "%u", &id) != 1)
		id = NO_DOMAIN;
	fclose(file);
	return id;
}

/* The L3 that all these CPUs share. */
static uint32_t domain_of(const cpu_set_t *cpus)
{
	uint32_t domain = NO_DOMAIN;
	bool first = true;
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		uint32_t id;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		id = l3_of(cpu);
		if (!first && id != domain)
			return NO_DOMAIN;
		domain = id;
		first = false;
	}
	return domain;
}

/*
 * Slurm names the switches of a node from the top one down, and the node last: "core.leaf3.n17", whose pattern is
 * "switch.switch.node". A node's name may have dots.
 */
static void leaf_of_slurm(char leaf[NAME_BYTES])
{
	const char *name = getenv("SLURM_TOPOLOGY_ADDR"), *pattern = getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
	const char *dot = pattern ? strchr(pattern, '.') : NULL;

	while (name && dot && (dot = strchr(dot + 1, '.')))
		name = (name = strchr(name, '.')) ? name + 1 : NULL;
	if (name && pattern && strchr(pattern, '.') && strchr(name, '.'))
		snprintf(leaf, NAME_BYTES, "%.*s", (int)strcspn(name, "."), name);
}

int coll_levels_announce(struct coll_context *context)
{
	struct told told = { .domain = NO_DOMAIN, .cores = context->cores_told };
	char key[32];

	if (context->boot->local_ranks == context->boot->ranks)
		return 0;
	if (sched_getaffinity(0, sizeof(told.cpus), &told.cpus))
		CPU_ZERO(&told.cpus);
	told.domain = domain_of(&told.cpus);
	snprintf(told.node, sizeof(told.node), "%s", context->node);
	leaf_of_slurm(told.leaf);
	if (context->options.leaf[0])
		snprintf(told.leaf, sizeof(told.leaf), "%s", context->options.leaf);
	snprintf(key, sizeof(key), "level/%d", context->boot->rank);
	return coll_boot_put(context->boot, key, &told, sizeof(told));
}

/* ---- all ranks -------------------------------------------------------------- */

static int levels_allocate(struct coll_context *context)
{
	const uint32_t ranks = context->boot->ranks;

	context->node_of = calloc(ranks, sizeof(*context->node_of));
	context->domain_of = calloc(ranks, sizeof(*context->domain_of));
	context->switch_of = calloc(ranks, sizeof(*context->switch_of));
	return context->node_of && context->domain_of && context->switch_of ? 0 : -ENOMEM;
}

static void forget_switches(struct coll_context *context)
{
	free(context->switch_of);
	context->switch_of = NULL;
}

/* Whether there are several switches, of all ranks, each node at one. first[]: room for a rank of each node. */
static bool are_several_switches(const struct coll_context *context, uint32_t *first)
{
	const uint32_t ranks = context->boot->ranks;
	bool several = false;
	uint32_t i;

	memset(first, 0xff, ranks * sizeof(*first));
	for (i = 0; i < ranks; i++) {
		const uint32_t at = context->switch_of[i];
		uint32_t *other = &first[context->node_of[i]];

		if (*other == COLL_NONE)
			*other = i;
		if (at == COLL_NONE || at != context->switch_of[*other])
			return false;
		several |= at != context->switch_of[0];
	}
	return several;
}

/* The number of this name: that of an earlier rank, mostly of the last one, or the next. */
static uint32_t name_number(char (*names)[NAME_BYTES], uint32_t *known, const char *name)
{
	uint32_t i = *known;

	while (i--)
		if (!strcmp(names[i], name))
			return i;
	strcpy(names[*known], name);
	return (*known)++;
}

/* Adds a rank to those of its boot, mostly that of the last one; where none is known, to those of its node. */
static void share_cores(struct shared_cores *shared, uint32_t *boots, const struct told *told)
{
	char boot[NAME_BYTES];
	uint32_t i;

	strcpy(boot, told->node);
	if (strncmp(boot, "unknown:", 8))
		boot[strcspn(boot, ":")] = 0;
	for (i = *boots; i && strcmp(shared[i - 1].boot, boot); i--)
		;
	if (!i) {
		i = ++*boots;
		strcpy(shared[i - 1].boot, boot);
	}
	shared[i - 1].ranks++;
	if (told->cores > shared[i - 1].cores)
		shared[i - 1].cores = told->cores;
	CPU_OR(&shared[i - 1].cpus, &shared[i - 1].cpus, &told->cpus);
}

/* Ranks per core, in thousandths, of the boot that has most; 0: not known. */
static uint32_t most_crowded(const struct shared_cores *shared, uint32_t boots)
{
	uint32_t most = 0, i;

	for (i = 0; i < boots; i++) {
		const uint32_t seen = CPU_COUNT(&shared[i].cpus), cores = shared[i].cores ? shared[i].cores : seen;
		const uint32_t crowding = cores ? shared[i].ranks * 1000ULL / cores : 0;

		most = crowding > most ? crowding : most;
	}
	return most;
}

/* Rank 0 numbers the nodes by what all ranks have told, and sees how these share cores. */
static int number_nodes(struct coll_context *context, uint64_t deadline)
{
	const uint32_t ranks = context->boot->ranks;
	char (*names)[NAME_BYTES] = calloc(ranks, sizeof(*names));
	char (*leaves)[NAME_BYTES] = calloc(ranks, sizeof(*leaves));
	struct shared_cores *shared = calloc(ranks, sizeof(*shared));
	uint32_t *first = calloc(ranks, sizeof(*first));
	uint32_t known = 0, switches = 0, boots = 0, rank;
	struct summary summary = { .crowding = 0 };
	int error = names && leaves && shared && first ? 0 : -ENOMEM;

	for (rank = 0; rank < ranks && !error; rank++) {
		struct told told = { .domain = NO_DOMAIN };
		size_t bytes = sizeof(told);
		char key[32];

		snprintf(key, sizeof(key), "level/%u", rank);
		error = coll_boot_get(context->boot, key, &told, &bytes, deadline);
		if (!error && bytes != sizeof(told))
			error = -EPROTO;
		told.node[sizeof(told.node) - 1] = told.leaf[sizeof(told.leaf) - 1] = 0;
		context->node_of[rank] = error ? 0 : name_number(names, &known, told.node);
		context->domain_of[rank] = told.domain;
		context->switch_of[rank] = error || !*told.leaf ? COLL_NONE : name_number(leaves, &switches, told.leaf);
		if (!error)
			share_cores(shared, &boots, &told);
	}
	if (!error) {
		summary.crowding = most_crowded(shared, boots);
		summary.several_switches = are_several_switches(context, first);
		error = coll_boot_put(context->boot, "summary", &summary, sizeof(summary));
	}
	free(first);
	free(names);
	free(leaves);
	free(shared);
	return error;
}

static int learn_from_ranks(struct coll_context *context)
{
	const uint64_t deadline = coll_now() + context->options.deadline_ns;
	const struct coll_numbers numbers[] = { { "nodes", context->node_of },
						{ "domains", context->domain_of } };
	const struct coll_numbers switches = { "switches", context->switch_of };
	int error = context->boot->rank ? 0 : number_nodes(context, deadline);
	struct summary summary = { .crowding = 0 };
	size_t bytes = sizeof(summary);

	error = coll_numbers_share(context, numbers, 2, error, deadline);
	if (!error)
		error = coll_boot_get(context->boot, "summary", &summary, &bytes, deadline);
	if (!error && bytes != sizeof(summary))
		error = -EPROTO;
	if (error)
		return error;
	if (summary.crowding)
		context->options.machine.crowding = summary.crowding * 1e-3;
	if (summary.several_switches)
		return coll_numbers_share(context, &switches, 1, 0, deadline);
	forget_switches(context);
	return 0;
}

static int learn_runs(struct coll_context *context, const char *how, char *why, size_t why_bytes)
{
	const uint32_t ranks = context->boot->ranks;

	if (coll_runs_read_levels(how, context->node_of, context->domain_of, ranks))
		return 0;
	snprintf(why, why_bytes, "option levels: '%s' is not the sizes of nodes, like 4+4, or of "
		 "nodes and domains, like 4+4/2+2+2+2, of %u ranks together", how, ranks);
	return -EINVAL;
}

bool coll_levels_are_sizes(const char *how)
{
	return *how && strcmp(how, "auto") && strcmp(how, "flat");
}

int coll_levels_learn(struct coll_context *context, const char *how, bool one_node, char *why,
		      size_t why_bytes)
{
	const bool automatic = !*how || !strcmp(how, "auto");
	int error;

	if (context->boot->ranks == 1 || !strcmp(how, "flat") || (automatic && one_node))
		return 0;
	error = levels_allocate(context);
	if (error)
		return error;
	if (automatic)
		return learn_from_ranks(context);
	forget_switches(context);
	return learn_runs(context, how, why, why_bytes);
}
