// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Messages at the PEs: requested, injected into the network, and received. */
#include <errno.h>
#include <stdlib.h>

#include "channel.h"

/* ---- timers --------------------------------------------------------------- */

static bool is_earlier(const struct flit_timer *a, const struct flit_timer *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void add_timer(struct flit_sim *sim, u64 at, u64 tag, bool interface)
{
	struct flit_timer timer = { at, sim->timer_number++, tag, interface };
	u32 i;

	if (sim->timers == sim->timers_size) {
		u32 size = sim->timers_size ? sim->timers_size * 2 : 256;
		struct flit_timer *grown = reallocarray(sim->timer, size, sizeof(*grown));

		if (!grown) {
			sim->error = -ENOMEM;
			return;
		}
		sim->timer = grown;
		sim->timers_size = size;
	}
	for (i = sim->timers++; i && is_earlier(&timer, &sim->timer[(i - 1) / 2]); i = (i - 1) / 2)
		sim->timer[i] = sim->timer[(i - 1) / 2];
	sim->timer[i] = timer;
}

static struct flit_timer take_timer(struct flit_sim *sim)
{
	struct flit_timer first = sim->timer[0], last = sim->timer[--sim->timers];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < sim->timers) {
		if (child + 1 < sim->timers &&
		    is_earlier(&sim->timer[child + 1], &sim->timer[child]))
			child++;
		if (!is_earlier(&sim->timer[child], &last))
			break;
		sim->timer[i] = sim->timer[child];
		i = child;
	}
	sim->timer[i] = last;
	return first;
}

void flit_alarm(struct flit_sim *sim, u64 at, u64 tag)
{
	add_timer(sim, at > sim->now ? at : sim->now, tag, false);
}

/* ---- messages ------------------------------------------------------------- */

static u32 new_packet(struct flit_sim *sim)
{
	u32 packet = sim->packet_free, size, i;
	struct flit_packet *grown;

	if (packet != FLIT_NONE) {
		sim->packet_free = sim->packet[packet].next;
		return packet;
	}
	size = sim->packets_size ? sim->packets_size * 2 : 1024;
	grown = reallocarray(sim->packet, size, sizeof(*grown));
	if (!grown) {
		sim->error = -ENOMEM;
		return FLIT_NONE;
	}
	for (i = sim->packets_size; i < size; i++)
		grown[i].next = i + 1 < size ? i + 1 : FLIT_NONE;
	sim->packet = grown;
	packet = sim->packets_size;
	sim->packet_free = grown[packet].next;
	sim->packets_size = size;
	return packet;
}

/* The network interface has prepared the message: it enters the network. */
static void begin_message(struct flit_sim *sim, u32 node)
{
	struct flit_pe *pe = &sim->pe[node];
	u32 x = sim->vcs + node, packet = pe->first;

	pe->first = sim->packet[packet].next;
	if (pe->first == FLIT_NONE)
		pe->last = FLIT_NONE;
	pe->waiting--;
	sim->travelling++;
	sim->vc[x].packet = packet;
	sim->vc[x].stored = sim->packet[packet].flits;
	sim->vc[x].born = sim->packet[packet].born;
	sim->sent += sim->packet[packet].flits;
	flit_head_arrives(sim, x);
}

void flit_message_next(struct flit_sim *sim, u32 node)
{
	struct flit_pe *pe = &sim->pe[node];

	pe->busy = pe->first != FLIT_NONE;
	if (!pe->busy)
		return;
	if (sim->machine.setup)
		add_timer(sim, sim->now + sim->machine.setup, node, true);
	else
		begin_message(sim, node);
}

void flit_send(struct flit_sim *sim, u32 from, u32 to, u32 flits, u32 tag)
{
	const bool counted = sim->now >= sim->config->warmup && sim->now < sim->config->cycles;
	struct flit_pe *pe = &sim->pe[from];
	u32 packet = new_packet(sim);

	if (packet == FLIT_NONE)
		return;
	sim->packet[packet] = (struct flit_packet){
		.born = sim->now, .from = from, .to = to, .tag = tag, .next = FLIT_NONE,
		.flits = flits + sim->machine.header,
		.state = flit_route_state(&sim->config->route, from),
		.between = flit_module(sim->net, from) != flit_module(sim->net, to),
		.counted = counted };
	sim->offered += flits + sim->machine.header;
	sim->outstanding += counted;
	sim->held++;
	if (pe->last == FLIT_NONE)
		pe->first = packet;
	else
		sim->packet[pe->last].next = packet;
	pe->last = packet;
	pe->waiting++;
	if (!pe->busy)
		flit_message_next(sim, from);
}

static void count_message(struct flit_sim *sim, const struct flit_packet *packet)
{
	const struct flit_config *config = sim->config;
	const u64 latency = sim->now - packet->born;

	sim->outstanding -= packet->counted;
	if (config->drain ? !packet->counted :
			    sim->now < config->warmup || sim->now >= config->cycles)
		return;
	if (!flit_count(&sim->counts, latency) ||
	    !flit_count(packet->between ? &sim->modules : &sim->local, latency))
		sim->error = -ENOMEM;
}

void flit_sink(struct flit_sim *sim, u32 y)
{
	u32 index = sim->vc[y].packet;
	struct flit_packet *packet = &sim->packet[index];

	sim->arrived++;
	flit_credit_return(sim, y);
	if (++packet->arrived < packet->flits)
		return;
	sim->travelling--;
	count_message(sim, packet);
	if (sim->on_arrived)
		sim->on_arrived(sim, packet);
	sim->packet[index].next = sim->packet_free;
	sim->packet_free = index;
}

void flit_fire_timers(struct flit_sim *sim)
{
	while (sim->timers && sim->timer[0].at <= sim->now) {
		struct flit_timer timer = take_timer(sim);

		if (timer.interface)
			begin_message(sim, timer.tag);
		else
			sim->on_timer(sim, timer.tag);
	}
}
