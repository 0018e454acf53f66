// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks are of one node if they have the same boot and the same network namespace, as for memory
 * links: what goes between them passes no NIC. A domain is an L3 cache, if a rank's CPUs have one
 * in common, which /sys says.
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

enum { NO_DOMAIN = 0xffff };	/* the CPUs have no L3 in common, or it is not known */

/* What a rank tells of itself. */
struct told {
	char node[96];
	uint32_t domain;
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

/* The L3 that all CPUs of this rank share. */
static uint32_t own_domain(void)
{
	uint32_t domain = NO_DOMAIN;
	bool first = true;
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return NO_DOMAIN;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		uint32_t id;

		if (!CPU_ISSET(cpu, &set))
			continue;
		id = l3_of(cpu);
		if (!first && id != domain)
			return NO_DOMAIN;
		domain = id;
		first = false;
	}
	return domain;
}

int coll_levels_announce(struct coll_context *context)
{
	struct told told = { .domain = own_domain() };
	char key[32];

	if (context->boot->local_ranks == context->boot->ranks)
		return 0;
	snprintf(told.node, sizeof(told.node), "%s", context->node);
	snprintf(key, sizeof(key), "level/%d", context->boot->rank);
	return coll_boot_put(context->boot, key, &told, sizeof(told));
}

/* ---- all ranks -------------------------------------------------------------- */

static int levels_allocate(struct coll_context *context)
{
	const uint32_t ranks = context->boot->ranks;

	context->node_of = calloc(ranks, sizeof(*context->node_of));
	context->domain_of = calloc(ranks, sizeof(*context->domain_of));
	return context->node_of && context->domain_of ? 0 : -ENOMEM;
}

/* The number of this name: that of an earlier rank, mostly of the last one, or the next. */
static uint32_t name_number(char (*names)[96], uint32_t *known, const char *name)
{
	uint32_t i = *known;

	while (i--)
		if (!strcmp(names[i], name))
			return i;
	strcpy(names[*known], name);
	return (*known)++;
}

/* Rank 0 numbers the nodes by what all ranks have told. */
static int number_nodes(struct coll_context *context, uint64_t deadline)
{
	const uint32_t ranks = context->boot->ranks;
	char (*names)[96] = calloc(ranks, sizeof(*names));
	uint32_t known = 0, rank;
	int error = names ? 0 : -ENOMEM;

	for (rank = 0; rank < ranks && !error; rank++) {
		struct told told = { .domain = NO_DOMAIN };
		size_t bytes = sizeof(told);
		char key[32];

		snprintf(key, sizeof(key), "level/%u", rank);
		error = coll_boot_get(context->boot, key, &told, &bytes, deadline);
		if (!error && bytes != sizeof(told))
			error = -EPROTO;
		told.node[sizeof(told.node) - 1] = 0;
		context->node_of[rank] = error ? 0 : name_number(names, &known, told.node);
		context->domain_of[rank] = told.domain;
	}
	free(names);
	return error;
}

static int learn_from_ranks(struct coll_context *context)
{
	const uint64_t deadline = coll_now() + context->options.deadline_ns;
	const struct coll_numbers numbers[] = { { "nodes", context->node_of },
						{ "domains", context->domain_of } };
	const int error = context->boot->rank ? 0 : number_nodes(context, deadline);

	return coll_numbers_share(context, numbers, 2, error, deadline);
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
	return automatic ? learn_from_ranks(context) : learn_runs(context, how, why, why_bytes);
}
