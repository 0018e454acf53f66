// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"

const char *const flit_policy_names[] = { "rr", "occupancy", "occupancy-hier", "age",
					  "occupancy-age", "hold", NULL };

const char *const flit_heads_names[] = { "policy", "turn", "first", "oldest", NULL };

const struct flit_machine flit_thesis = {
	.vcs = 4, .inject_vcs = 1, .eject_vcs = 1, .buffer = 1, .out_buffer = 1, .link = 1,
	.inject = 1, .credit = 2, .setup = 16, .header = 6,
};

const struct flit_machine flit_booksim = {
	.vcs = 4, .inject_vcs = 4, .eject_vcs = 4, .buffer = 8, .out_buffer = 0, .link = 3,
	.inject = 1, .credit = 3, .setup = 0, .header = 0, .one_port = true, .to_self = true,
};

u64 flit_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

u32 flit_below(u64 *state, u32 limit)
{
	return ((flit_random(state) >> 32) * limit) >> 32;
}

/* ---- a cycle -------------------------------------------------------------- */

/* A flit has arrived in the buffer of channel y. */
static inline void machine_arrive(struct flit_sim *sim, u32 y)
{
	struct flit_vc *vc = &sim->vc[y];

	if (sim->kind[flit_link_of(sim, y)] == FLIT_KIND_EJECT) {
		flit_sink(sim, y);
		return;
	}
	vc->stored++;
	if (vc->next != FLIT_NONE)
		flit_offer(sim, y, vc->next);
	else if (vc->stored == 1 && !sim->machine.route)
		flit_head_arrives(sim, y);
	else if (vc->stored == 1)
		flit_schedule(sim, sim->heads, sim->machine.route, y);
}

static void take_events(struct flit_sim *sim)
{
	struct flit_events *credits = &sim->credits[sim->now & (sim->ring_size - 1)];
	struct flit_events *arrivals = &sim->arrivals[sim->now & (sim->ring_size - 1)];
	struct flit_events *heads = &sim->heads[sim->now & (sim->ring_size - 1)];
	u32 i;

	for (i = 0; i < credits->count; i++)
		flit_credit_arrives(sim, credits->vc[i]);
	sim->pending -= credits->count;
	credits->count = 0;
	for (i = 0; i < arrivals->count; i++)
		machine_arrive(sim, arrivals->vc[i]);
	arrivals->count = 0;
	for (i = 0; i < heads->count; i++)
		flit_head_arrives(sim, heads->vc[i]);
	heads->count = 0;
}

/* Counts the reasons of idle links before they serve: the rest is blocked or served. */
static void count_idle(struct flit_sim *sim)
{
	const u16 *owned = sim->owned, *has = sim->has, *between = sim->between;
	const u32 links = sim->net->first[sim->net->nodes];
	u32 none = 0, gap = 0, i;

	for (i = 0; i < links; i++) {
		none += between[i] && !owned[i];
		gap += between[i] && owned[i] && !has[i];
	}
	sim->idle_none += none;
	sim->idle_gap += gap;
	for (i = 0; i < sim->net->outer; i++) {
		sim->outer_none += !owned[sim->outer[i]];
		sim->outer_gap += owned[sim->outer[i]] && !has[sim->outer[i]];
	}
}

/* The first cycle from now on, up to `to`, at which the run takes a sample: see run_watch(). */
static u64 next_sample(const struct flit_sim *sim, u64 to)
{
	const struct flit_config *config = sim->config;
	const u64 interval = config->interval;
	const u64 point = interval ? (sim->now + interval - 1) / interval * interval : to;

	if (point < to)
		to = point;
	if (sim->now <= config->warmup && config->warmup < to)
		to = config->warmup;
	if (sim->now <= config->cycles && config->cycles < to)
		to = config->cycles;
	return to;
}

/* Nothing moves before the next message or timer: skips to it, or to a sample. */
static void machine_leap(struct flit_sim *sim)
{
	u64 to = flit_traffic_next(sim);

	if (sim->travelling || sim->pending || sim->done)
		return;
	if (sim->timers && sim->timer[0].at < to)
		to = sim->timer[0].at;
	if (to > sim->end)
		to = sim->end;
	to = next_sample(sim, to);
	if (to > sim->now && sim->config->interval) {
		u64 cycles = to - sim->now;

		sim->idle_none += cycles * sim->net->between;
		sim->outer_none += cycles * sim->net->outer;
	}
	if (to > sim->now)
		sim->now = to;
}

void flit_cycle(struct flit_sim *sim)
{
	flit_traffic(sim);
	flit_fire_timers(sim);
	take_events(sim);
	if (sim->machine.out_buffer)
		flit_allocate(sim);
	if (sim->config->interval)
		count_idle(sim);
	if (sim->machine.one_port)
		flit_serve_routers(sim);
	else if (sim->machine.credit)
		flit_serve_links(sim);
	else
		flit_serve_links_at_once(sim);
	if (sim->machine.out_buffer)
		flit_cross_switch(sim);
	else
		flit_allocate(sim);
	sim->now++;
	machine_leap(sim);
}

/* ---- making a machine ----------------------------------------------------- */

static enum flit_kind kind_of(const struct flit_link *link)
{
	return link->direction == FLIT_OUTER ? FLIT_KIND_OUTER :
	       link->direction == FLIT_EJECT ? FLIT_KIND_EJECT :
	       link->direction == FLIT_INJECT ? FLIT_KIND_INJECT : FLIT_KIND_MESH;
}

static void reset_link(struct flit_sim *sim, u32 link)
{
	const struct flit_machine *m = &sim->machine;
	u32 vcs, v;

	sim->kind[link] = kind_of(&sim->net->link[link]);
	sim->between[link] = sim->kind[link] <= FLIT_KIND_OUTER ? 0xffff : 0;
	if (sim->kind[link] == FLIT_KIND_OUTER)
		sim->outer[sim->net->outer - sim->outer_left--] = link;
	vcs = sim->kind[link] == FLIT_KIND_EJECT ? m->eject_vcs :
	      sim->kind[link] == FLIT_KIND_INJECT ? m->inject_vcs : m->vcs;
	sim->spare[link] = sim->credited[link] = (1u << vcs) - 1;
	sim->lane[link].last = FLIT_NO_VC;
	for (v = 0; v < sim->stride; v++)
		sim->vc[link << sim->shift | v].credit = m->buffer;
}

static struct flit_events *make_ring(u32 size, u32 capacity)
{
	struct flit_events *ring = calloc(size, sizeof(*ring));
	u32 i;

	for (i = 0; ring && i < size; i++) {
		ring[i].vc = calloc(capacity, sizeof(u32));
		if (!ring[i].vc)
			return NULL;
	}
	return ring;
}

static void free_ring(struct flit_events *ring, u32 size)
{
	u32 i;

	for (i = 0; ring && i < size; i++)
		free(ring[i].vc);
	free(ring);
}

static bool allocate_rings(struct flit_sim *sim)
{
	const struct flit_machine *m = &sim->machine;
	const u32 delay[] = { m->link, m->inject, m->credit, m->route };
	u32 i;

	sim->ring_size = 2;
	for (i = 0; i < 4; i++)
		while (sim->ring_size <= delay[i])
			sim->ring_size *= 2;
	sim->arrivals = make_ring(sim->ring_size, sim->net->links);
	sim->credits = make_ring(sim->ring_size, sim->vcs);
	sim->heads = make_ring(sim->ring_size, sim->vcs);
	return sim->arrivals && sim->credits && sim->heads;
}

static bool allocate_arrays(struct flit_sim *sim)
{
	const u32 links = sim->net->links, buffers = sim->vcs + sim->net->nodes;

	sim->vc = calloc(buffers, sizeof(*sim->vc));
	sim->wish = calloc(buffers, sizeof(*sim->wish));
	sim->lane = calloc(links, sizeof(*sim->lane));
	sim->has = calloc(links, sizeof(u16));
	sim->credited = calloc(links, sizeof(u16));
	sim->owned = calloc(links, sizeof(u16));
	sim->spare = calloc(links, sizeof(u16));
	sim->between = calloc(links, sizeof(u16));
	sim->kind = calloc(links, 1);
	sim->outer = calloc(sim->net->outer + 1, sizeof(u32));
	sim->active = calloc(sim->link_words, sizeof(u64));
	sim->allocate = calloc(sim->link_words, sizeof(u64));
	sim->cross = calloc(sim->vc_words, sizeof(u64));
	sim->chosen = calloc(links, sizeof(u32));
	sim->pe = calloc(sim->net->nodes, sizeof(*sim->pe));
	return sim->vc && sim->wish && sim->lane && sim->has && sim->credited && sim->owned &&
	       sim->spare && sim->between && sim->kind && sim->outer && sim->active &&
	       sim->allocate && sim->cross && sim->chosen && sim->pe && allocate_rings(sim);
}

int flit_machine_make(struct flit_sim *sim, const struct flit_config *config)
{
	u32 i;

	memset(sim, 0, sizeof(*sim));
	sim->config = config;
	sim->net = config->net;
	sim->machine = config->machine;
	sim->policy = config->policy;
	sim->heads_order = flit_heads_order(sim);
	sim->random = config->seed;
	sim->end = config->cycles;
	while (1u << sim->shift < config->machine.vcs)
		sim->shift++;
	sim->stride = 1u << sim->shift;
	sim->vcs = sim->net->links << sim->shift;
	sim->link_words = sim->net->links / 64 + 1;
	sim->vc_words = sim->vcs / 64 + 1;
	sim->packet_free = FLIT_NONE;
	sim->outer_left = sim->net->outer;
	if (!allocate_arrays(sim))
		return -ENOMEM;
	for (i = 0; i < sim->vcs + sim->net->nodes; i++)
		sim->vc[i].packet = sim->vc[i].owner = sim->vc[i].next = FLIT_NONE;
	for (i = 0; i < sim->net->links; i++)
		reset_link(sim, i);
	for (i = 0; i < sim->net->nodes; i++)
		sim->pe[i].first = sim->pe[i].last = FLIT_NONE;
	for (i = 0; i < 64; i++) {
		sim->port_of[i] = i / sim->machine.vcs;
		sim->vc_of[i] = i % sim->machine.vcs;
	}
	return 0;
}

void flit_machine_free(struct flit_sim *sim)
{
	free_ring(sim->arrivals, sim->ring_size);
	free_ring(sim->credits, sim->ring_size);
	free_ring(sim->heads, sim->ring_size);
	free(sim->vc);
	free(sim->wish);
	free(sim->lane);
	free(sim->has);
	free(sim->credited);
	free(sim->owned);
	free(sim->spare);
	free(sim->between);
	free(sim->kind);
	free(sim->outer);
	free(sim->active);
	free(sim->allocate);
	free(sim->cross);
	free(sim->chosen);
	free(sim->pe);
	free(sim->packet);
	free(sim->timer);
	free(sim->counts.count);
	free(sim->local.count);
	free(sim->modules.count);
}
