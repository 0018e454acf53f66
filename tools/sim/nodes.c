// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Option levels of coll sim: which ranks share a node and a domain. */
#include <stdlib.h>
#include <string.h>

#include "algo/common/levels.h"
#include "algo/common/runs.h"
#include "tools/common/arena.h"
#include "sim.h"

bool sim_nodes_wanted(const struct sim_options *options)
{
	return options->levels && strcmp(options->levels, "flat");
}

/* A cluster's end is that of a node, too. */
static u32 nodes_number(u32 *node, const u32 *area, u32 ranks)
{
	u32 before = node[0], nodes = 0, i;

	node[0] = 0;
	for (i = 1; i < ranks; i++) {
		const u32 now = node[i];

		nodes += now != before || (area && area[i] != area[i - 1]);
		node[i] = nodes;
		before = now;
	}
	return nodes + 1;
}

static void nodes_levels(struct sim_tables *tables, u32 ranks)
{
	const u32 *const of[COLL_LEVELS_MAX] = {
		[COLL_LEVEL_DOMAIN] = tables->nodes.domain,
		[COLL_LEVEL_NODE] = tables->node,
		[COLL_LEVEL_CLUSTER] = tables->area,
	};

	tables->level_memory = memory_grow(NULL, 1, coll_levels_bytes(ranks));
	coll_levels_make(of, ranks, tables->level_memory, &tables->levels);
}

void sim_nodes_add(const struct sim_options *options, u32 ranks, struct sim_tables *tables,
		   struct sim_model *model)
{
	if (!sim_nodes_wanted(options))
		return;
	tables->node = memory_grow(NULL, ranks, sizeof(*tables->node));
	tables->domain = memory_grow(NULL, ranks, sizeof(*tables->domain));
	coll_runs_read_levels(options->levels, tables->node, tables->domain, ranks);
	tables->nodes = (struct sim_nodes){
		.nodes = nodes_number(tables->node, tables->area, ranks),
		.node = tables->node,
		.domain = strchr(options->levels, '/') ? tables->domain : NULL,
	};
	memcpy(tables->nodes.inside, options->inside, sizeof(options->inside));
	model->nodes = &tables->nodes;
	nodes_levels(tables, ranks);
}

void sim_nodes_free(struct sim_tables *tables)
{
	free(tables->node);
	free(tables->domain);
	free(tables->level_memory);
}

bool sim_nodes_valid(const struct sim_options *options, u32 ranks)
{
	u32 *node, *domain;
	bool fine;

	if (!sim_nodes_wanted(options))
		return true;
	node = memory_grow(NULL, ranks, sizeof(*node));
	domain = memory_grow(NULL, ranks, sizeof(*domain));
	fine = coll_runs_read_levels(options->levels, node, domain, ranks);
	free(node);
	free(domain);
	if (!fine)
		fprintf(stderr, "coll sim: --levels '%s'; valid: flat, sizes of nodes like 4+4 or 64+, "
			"or of nodes and domains like 64+/16+, of %u ranks together\n",
			options->levels, ranks);
	return fine;
}

/* What was not given is as in the library's prediction, whose latency includes the overheads. */
void sim_nodes_settle(struct sim_options *options)
{
	const struct sim_costs *costs = &options->model.costs;
	const struct coll_machine machine = {
		.alpha = costs->alpha + costs->send + costs->recv,
		.overhead = costs->send,
		.beta = costs->beta,
	};
	u32 kind;

	for (kind = 0; kind < COLL_LEVEL_CLUSTER; kind++) {
		const struct coll_level_cost usual = coll_inside_cost(&machine, kind);
		struct coll_level_cost *inside = &options->inside[kind];

		if (inside->overhead < 0)
			inside->overhead = usual.overhead;
		if (inside->alpha < 0)
			inside->alpha = usual.alpha - 2 * usual.overhead;
		if (inside->alpha < 0)
			inside->alpha = 0;
		if (inside->beta < 0)
			inside->beta = usual.beta;
	}
	if (options->model.costs.nic < 0)
		options->model.costs.nic = sim_nodes_wanted(options) ||
						   options->model.messages == SIM_MESSAGE_GOAL ?
						   costs->beta :
						   0;
}

/* Ranks of a node share its NIC: that is what costs the sender of a message, not its CPU alone. */
void sim_nodes_machine(const struct sim_options *options, struct coll_machine *machine)
{
	const double least = 1e-12;	/* 0 would be unknown */
	const struct sim_costs *costs = &options->model.costs;
	u32 kind;

	if (!sim_nodes_wanted(options))
		return;
	machine->overhead = costs->send > costs->gap ? costs->send : costs->gap;
	machine->overhead += least;
	machine->byte_gap = costs->nic + least * 1e-3;
	for (kind = 0; kind < COLL_LEVEL_CLUSTER; kind++) {
		machine->inside[kind] = options->inside[kind];
		machine->inside[kind].alpha += 2 * options->inside[kind].overhead + least;
		machine->inside[kind].overhead += least;
		machine->inside[kind].beta += least * 1e-3;
	}
}
