// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The costs of a machine, checked, and with its noise made ready for a run. */
#include <math.h>

#include "machine.h"

const char *const sim_message_semantics_names[SIM_MESSAGE_SEMANTICS] = {
	[SIM_MESSAGE_NIC] = "nic",
	[SIM_MESSAGE_GOAL] = "goal",
};

enum { STREAM_OS, STREAM_LINK, STREAM_MESSAGE, STREAM_CIRCUIT };

u64 sim_seed(u64 seed, u64 run)
{
	return random_at(random_mix(seed + 0x9e3779b97f4a7c15ull), run);
}

/* Not a valid number of seconds; also NaN. */
static bool model_bad(double seconds)
{
	return !(seconds >= 0 && seconds <= 1e4);
}

static const char *network_refuses(const struct sim_network *network)
{
	u32 i;

	if (!network->areas || network->areas > 1 << 12)
		return "a network with no area, or more than 4096";
	for (i = 0; i < network->areas * network->areas; i++) {
		const struct sim_link *link = &network->link[i];

		if (model_bad(link->alpha) || model_bad(link->beta) || model_bad(link->trunk) ||
		    model_bad(link->loss))
			return "a link's cost; valid: 0 to 10000 seconds";
		if (link->trunk > 0 && link->beta <= 0)
			return "a trunk without a byte time of its flows";
	}
	return NULL;
}

static const char *nodes_refuse(const struct sim_model *model)
{
	const struct sim_nodes *nodes = model->nodes;
	u32 i;

	if (!nodes->nodes)
		return "no node";
	for (i = 0; i < COLL_LEVEL_CLUSTER; i++)
		if (model_bad(nodes->inside[i].alpha) || model_bad(nodes->inside[i].beta) ||
		    model_bad(nodes->inside[i].overhead))
			return "a cost inside a node; valid: 0 to 10000 seconds";
	if (model->circuits)
		return "nodes whose ranks share a NIC, and circuits of each rank; valid: one of them";
	return NULL;
}

static const char *coll_circuits_refuse(const struct sim_circuits *circuits)
{
	if (!(circuits->setup > 0) || model_bad(circuits->setup))
		return "a reconfiguration delay; valid: above 0, up to 10000 seconds";
	if (!circuits->ports || circuits->ports > COLL_PORTS_MAX)
		return "ports; valid: 1 to 64";
	if (!(circuits->failures >= 0 && circuits->failures < 1))
		return "the share of set-ups that fail; valid: from 0 to below 1";
	return NULL;
}

static const char *messages_refuse(const struct sim_model *model)
{
	if (model->messages >= SIM_MESSAGE_SEMANTICS)
		return "messages of unknown semantics";
	if (model->messages == SIM_MESSAGE_GOAL)
		return model->network || model->nodes || model->circuits ?
			       "message semantics goal with clusters, levels or circuits; valid: "
			       "one kind of link for all messages" :
			       NULL;
	return model->costs.byte_overhead > 0 ?
		       "a byte overhead; valid: 0, or message semantics goal" :
		       NULL;
}

/* Each source leaves 5 % of the time; a rank that pauses in all of them needs some that all leave. */
static const char *os_refuses(const struct sim_model *model)
{
	const char *refusal = NULL;
	double share = 0;
	u32 i;

	for (i = 0; i < SIM_SOURCES_MAX && !refusal; i++) {
		refusal = noise_refuses(&model->os[i]);
		share += refusal ? 0 : noise_share(&model->os[i]);
	}
	return !refusal && model->semantics == SIM_OCCUPANCY && 100 * share > COLL_NOISE_SHARE_MAX ?
		       "sources of noise that together fill more than 95 % of the time" : refusal;
}

const char *sim_model_refuses(const struct sim_model *model)
{
	const struct sim_costs *c = &model->costs;
	const char *refusal;

	if (model_bad(c->alpha) || model_bad(c->beta) || model_bad(c->gamma) ||
	    model_bad(c->copy) || model_bad(c->user) || model_bad(c->send) || model_bad(c->recv) ||
	    model_bad(c->redundant) || model_bad(c->gap) || model_bad(c->nic) ||
	    model_bad(c->byte_overhead))
		return "a cost; valid: 0 to 10000 seconds";
	if (model->semantics >= SIM_SEMANTICS)
		return "noise of unknown semantics";
	refusal = messages_refuse(model);
	if (!refusal)
		refusal = os_refuses(model);
	if (!refusal && model->network)
		refusal = network_refuses(model->network);
	if (!refusal && model->nodes)
		refusal = nodes_refuse(model);
	if (!refusal && model->circuits)
		refusal = coll_circuits_refuse(model->circuits);
	return refusal ? refusal : noise_refuses(&model->link);
}

static double longer_of(double a, double b)
{
	return a > b ? a : b;
}

/* Of a message of so many bytes, on the slowest of all links. */
static double longest_way(const struct sim_model *model, u64 bytes)
{
	const struct sim_network *network = model->network;
	double way = model->costs.alpha + bytes * model->costs.beta;
	u32 i;

	for (i = 0; network && i < network->areas * network->areas; i++)
		way = longer_of(way, network->link[i].alpha + bytes * network->link[i].beta);
	for (i = 0; model->nodes && i < COLL_LEVEL_CLUSTER; i++)
		way = longer_of(way, model->nodes->inside[i].alpha + bytes * model->nodes->inside[i].beta);
	return way;
}

double machine_longest(const struct sim_model *model, u32 ranks, u64 sent, u64 worked)
{
	const struct sim_costs *c = &model->costs;
	double end = longer_of(longer_of(c->send, c->recv), c->redundant), slowest = 1;
	u32 i;

	for (i = 0; model->nodes && i < COLL_LEVEL_CLUSTER; i++)
		end = longer_of(end, model->nodes->inside[i].overhead);
	for (i = 0; model->slowness && i < ranks; i++)
		slowest = longer_of(slowest, model->slowness[i]);
	return longer_of(longer_of(longest_way(model, sent), c->gap + sent * c->nic),
			 slowest * longer_of(end + sent * c->byte_overhead,
					     worked * longer_of(longer_of(c->gamma, c->copy), c->user)));
}

static void init_nodes(struct sim_machine *machine, const struct sim_nodes *nodes)
{
	u32 i;

	machine->nodes = nodes;
	for (i = 0; nodes && i < COLL_LEVEL_CLUSTER; i++) {
		machine->inside[i] = (struct sim_link){ .alpha = nodes->inside[i].alpha,
							.beta = nodes->inside[i].beta };
		machine->inside_work[i] = to_time(nodes->inside[i].overhead * SIM_SECOND);
	}
}

void machine_init(struct sim_machine *machine, const struct sim_model *model, u64 seed)
{
	const struct sim_costs *c = &model->costs;

	*machine = (struct sim_machine){
		.alpha = c->alpha * SIM_SECOND,
		.beta = c->beta * SIM_SECOND,
		.gamma = c->gamma * SIM_SECOND,
		.copy = c->copy * SIM_SECOND,
		.user = (c->user > 0 ? c->user : c->gamma) * SIM_SECOND,
		.gap = c->gap * SIM_SECOND,
		.nic = c->nic * SIM_SECOND,
		.byte_overhead = c->byte_overhead * SIM_SECOND,
		.send = to_time(c->send * SIM_SECOND),
		.recv = to_time(c->recv * SIM_SECOND),
		.redundant = to_time(c->redundant * SIM_SECOND),
		.eager = c->eager,
		.messages = model->messages,
		.semantics = model->semantics,
		.bad_links = model->bad_links,
		.message_key = random_at(seed, STREAM_MESSAGE),
		.slowness = model->slowness,
		.start = model->start,
		.network = model->network,
		.circuits = model->circuits,
		.circuit_key = random_at(seed, STREAM_CIRCUIT),
	};
	init_nodes(machine, model->nodes);
	noise_init(&machine->os, model->os, SIM_SOURCES_MAX, model->semantics,
		   random_at(seed, STREAM_OS));
	machine->os.noisy = model->noisy;
	noise_init(&machine->link, &model->link, 1, model->semantics,
		   random_at(seed, STREAM_LINK));
}
