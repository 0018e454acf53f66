// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Random traffic: in each cycle each PE requests a message with probability `rate`. The
 * trials, cycle by cycle and PE by PE, are one sequence; the distance to the next success is
 * drawn, so cycles without a request cost nothing.
 */
#include <math.h>

#include "machine.h"

const char *const flit_pattern_names[] = { "uniform", "hotspot", "transpose", "complement", "fft",
					   "four", "trace", "schedule", NULL };

static u64 draw_distance(struct flit_sim *sim)
{
	double chance = ((flit_random(&sim->random) >> 11) + 0.5) * 0x1p-53;
	double distance;

	if (sim->config->rate >= 1)
		return 0;
	distance = floor(log(chance) / log1p(-sim->config->rate));
	return distance < 0x1p62 ? (u64)distance : 1ull << 62;
}

void flit_traffic_start(struct flit_sim *sim)
{
	const bool pattern = sim->config->pattern <= FLIT_COMPLEMENT && sim->config->rate > 0;

	sim->trial = pattern ? draw_distance(sim) : ~(u64)0;
}

u64 flit_traffic_next(const struct flit_sim *sim)
{
	return sim->trial == ~(u64)0 ? ~(u64)0 : sim->trial / sim->net->nodes;
}

static u32 traffic_transposed(const struct flit_net *net, u32 node)
{
	u32 bits, low;

	if (net->shape != FLIT_TESH)
		return flit_coordinate(net, node, 0) * net->size[0] + flit_coordinate(net, node, 1);
	bits = net->m * net->levels;
	low = node & ((1u << bits) - 1);
	return low << bits | node >> bits;
}

/* The target of a message, or FLIT_NONE: this PE has none. */
static u32 draw_target(struct flit_sim *sim, u32 from)
{
	const struct flit_config *config = sim->config;
	const u32 nodes = sim->net->nodes;
	u32 to;

	switch (config->pattern) {
	case FLIT_HOTSPOT:
		to = flit_below(&sim->random, config->hot) * config->hot_step;
		break;
	case FLIT_TRANSPOSE:
		to = traffic_transposed(sim->net, from);
		break;
	case FLIT_COMPLEMENT:
		to = nodes - 1 - from;
		break;
	default:
		if (sim->machine.to_self)
			return flit_below(&sim->random, nodes);
		to = flit_below(&sim->random, nodes - 1);
		return to + (to >= from);
	}
	return to == from && !sim->machine.to_self ? FLIT_NONE : to;
}

void flit_traffic(struct flit_sim *sim)
{
	const u32 nodes = sim->net->nodes, queue = sim->machine.queue;
	const u64 end = (sim->now + 1) * nodes;

	while (sim->trial < end) {
		u32 from = sim->trial % nodes, to = draw_target(sim, from);
		const struct flit_pe *pe = &sim->pe[from];

		if (to != FLIT_NONE && (!queue || pe->waiting + pe->busy < queue))
			flit_send(sim, from, to, sim->config->length, 0);
		sim->trial += 1 + draw_distance(sim);
	}
}
