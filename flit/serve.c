// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Flits move: over links, and from input buffers to out_buffers. */
#include "channel.h"
#include "policy.h"

/* ---- flits ---------------------------------------------------------------- */

void flit_credit_arrives(struct flit_sim *sim, u32 y)
{
	u32 link = flit_link_of(sim, y);
	u16 bit = flit_bit_of(sim, y);

	if (++sim->vc[y].credit > 0)
		sim->credited[link] |= bit;
	if (sim->vc[y].credit == (s16)sim->machine.buffer && !(sim->owned[link] & bit)) {
		sim->vc[y].packet = FLIT_NONE;
		sim->spare[link] |= bit;
		if (sim->lane[link].want)
			flit_set_bit(sim->allocate, link);
	}
	flit_wake_link(sim, link);
}

void flit_credit_return(struct flit_sim *sim, u32 y)
{
	if (!sim->machine.credit) {
		flit_credit_arrives(sim, y);
		return;
	}
	sim->pending++;
	flit_schedule(sim, sim->credits, sim->machine.credit, y);
}

/* A flit has left x's buffer. */
static inline void buffer_leave(struct flit_sim *sim, u32 x)
{
	sim->vc[x].stored--;
	if (!flit_is_interface(sim, x))
		flit_credit_return(sim, x);
}

/* The last flit has left x for the next buffer. */
static void buffer_detach(struct flit_sim *sim, u32 x)
{
	struct flit_vc *vc = &sim->vc[x];
	u32 packet = vc->packet;

	vc->next = FLIT_NONE;
	vc->packet = FLIT_NONE;
	if (!flit_is_interface(sim, x))
		return;
	sim->held--;
	if (sim->on_sent)
		sim->on_sent(sim, &sim->packet[packet]);
	flit_message_next(sim, x - sim->vcs);
}

/* A flit of channel y = (link, v) goes over the link. */
static inline void serve_channel(struct flit_sim *sim, u32 link, u32 v)
{
	u32 y = link << sim->shift | v, x;
	struct flit_vc *vc = &sim->vc[y];
	struct flit_lane *lane = &sim->lane[link];
	const bool inject = sim->kind[link] == FLIT_KIND_INJECT;
	const u16 bit = 1u << v;
	bool tail;

	lane->turn = v + 1;
	lane->last = v;
	sim->served[sim->kind[link]]++;
	if (--vc->credit <= 0)
		sim->credited[link] &= ~bit;
	if (sim->machine.out_buffer && !inject) {
		if (!--vc->ready)
			sim->has[link] &= ~bit;
		tail = !vc->left && !vc->ready;
		if (vc->left && sim->vc[vc->owner].stored)
			flit_set_bit(sim->cross, vc->owner);
	} else {
		x = vc->owner;
		buffer_leave(sim, x);
		tail = !--vc->left;
		if (tail || !sim->vc[x].stored)
			sim->has[link] &= ~bit;
		if (tail)
			buffer_detach(sim, x);
	}
	flit_schedule(sim, sim->arrivals, inject ? sim->machine.inject : sim->machine.link, y);
	if (!(sim->has[link] & (sim->machine.credit ? sim->credited[link] : 0xffff)))
		flit_clear_bit(sim->active, link);
	if (!tail)
		return;
	sim->owned[link] &= ~bit;
	lane->last = FLIT_NO_VC;
	flit_order_remove(lane, v);
}

/* ---- links, each independently -------------------------------------------- */

/* Serves one of the link's channels that can advance. */
static inline void serve_link(struct flit_sim *sim, u32 link)
{
	u32 can = sim->has[link] & sim->credited[link];

	serve_channel(
		sim, link,
		flit_choose(sim->policy, &sim->lane[link], &sim->vc[link << sim->shift], can));
}

void flit_serve_links(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->active[w]; word; word &= word - 1)
			serve_link(sim, w * 64 + __builtin_ctzll(word));
	}
}

/* ---- credit 0: a full buffer accepts a flit in the cycle in which it sends one ---- */

static u32 serve_at_once(struct flit_sim *sim, u32 link);

/* Whether the buffer of channel y, which is full, sends a flit in this cycle. */
static bool sends_this_cycle(struct flit_sim *sim, u32 y)
{
	const struct flit_vc *vc = &sim->vc[y];
	u32 z = vc->next;

	if (!vc->stored || z == FLIT_NONE)
		return false;
	if (sim->vc[z].ready < sim->machine.out_buffer)
		return true;
	return serve_at_once(sim, flit_link_of(sim, z)) == (z & (sim->stride - 1));
}

/*
 * Serves the link after those ahead of it, unless that is done; returns the channel that it
 * served, or FLIT_NO_VC. A ring of links that wait for each other within a cycle is cut where it
 * closes.
 */
static u32 serve_at_once(struct flit_sim *sim, u32 link)
{
	const u32 stamp = (u32)(sim->now + 1) << 8;
	u32 can, full, v = FLIT_NO_VC;

	if ((sim->chosen[link] & ~255u) == stamp)
		return sim->chosen[link] & 255;
	sim->chosen[link] = stamp | FLIT_NO_VC;
	can = sim->has[link] & sim->credited[link];
	for (full = sim->has[link] & ~sim->credited[link]; full; full &= full - 1) {
		u32 f = __builtin_ctz(full);

		if (sends_this_cycle(sim, link << sim->shift | f))
			can |= 1u << f;
	}
	if (can) {
		v = flit_choose(sim->policy, &sim->lane[link], &sim->vc[link << sim->shift], can);
		serve_channel(sim, link, v);
	}
	sim->chosen[link] = stamp | v;
	return v;
}

void flit_serve_links_at_once(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->active[w]; word; word &= word - 1) {
			serve_at_once(sim, w * 64 + __builtin_ctzll(word));
		}
	}
}

/* ---- one port: a router's input passes one flit per cycle ----------------- */

struct serve_match {
	u8 vc[FLIT_PORTS_MAX + 1];	/* per output: the channel that it would serve */
	u8 offers[FLIT_PORTS_MAX];	/* per input: outputs that chose it */
	u8 busy;			/* inputs that are taken */
};

static struct flit_lane *input_lane(struct flit_sim *sim, u32 node, u32 port)
{
	return &sim->lane[sim->net->into[node * FLIT_PORTS_MAX + port]];
}

/* An input's channels by round robin, then the inputs (iSLIP's grant). */
static u32 choose_in_turn(struct flit_sim *sim, u32 node, u32 link, u32 can)
{
	const struct flit_vc *vc = &sim->vc[link << sim->shift];
	u8 best[FLIT_PORTS_MAX], distance[FLIT_PORTS_MAX];
	u32 inputs = 0;

	if (!(can & (can - 1)))
		return __builtin_ctz(can);
	for (; can; can &= can - 1) {
		u32 v = __builtin_ctz(can), in = vc[v].in_port;
		u32 far = (vc[v].in_vc - input_lane(sim, node, in)->offset) & (sim->stride - 1);

		if (inputs >> in & 1 && distance[in] <= far)
			continue;
		inputs |= 1u << in;
		best[in] = v;
		distance[in] = far;
	}
	return best[flit_in_turn(inputs, sim->lane[link].turn)];
}

/* Those of `can` whose inputs are free. */
static u32 free_inputs(const struct flit_sim *sim, u32 link, u32 can, u32 busy)
{
	u32 left = can, still = can;

	for (; busy && left; left &= left - 1)
		if (busy >> sim->vc[link << sim->shift | __builtin_ctz(left)].in_port & 1)
			still &= ~(left & -left);
	return still;
}

/* Serves, and advances the round robin past what was served. */
static void serve_matched(struct flit_sim *sim, u32 node, u32 output, u32 v)
{
	const u32 link = sim->net->first[node] + output;
	const struct flit_vc *vc = &sim->vc[link << sim->shift | v];
	const u32 in = vc->in_port;
	struct flit_lane *input = input_lane(sim, node, in);

	input->offset = (vc->in_vc + 1) & (sim->stride - 1);
	input->accept = output + 1;
	serve_channel(sim, link, v);
	sim->lane[link].turn = in + 1;
}

/* hold: the channel served last continues, and occupies its input. */
static u32 serve_held(struct flit_sim *sim, u32 node, u32 outputs, struct serve_match *match)
{
	u32 left;

	for (left = outputs; left; left &= left - 1) {
		u32 output = __builtin_ctz(left), link = sim->net->first[node] + output;
		u32 last = sim->lane[link].last;

		if (last == FLIT_NO_VC)
			continue;
		if (!((sim->has[link] & sim->credited[link]) >> last & 1)) {
			sim->lane[link].last = FLIT_NO_VC;
			continue;
		}
		match->busy |= 1u << sim->vc[link << sim->shift | last].in_port;
		serve_matched(sim, node, output, last);
		outputs &= ~(1u << output);
	}
	return outputs;
}

static u32 choose_at_output(struct flit_sim *sim, u32 node, u32 link, u32 can)
{
	if (sim->policy == FLIT_RR || sim->policy == FLIT_HOLD)
		return choose_in_turn(sim, node, link, can);
	return flit_choose(sim->policy, &sim->lane[link], &sim->vc[link << sim->shift], can);
}

/* Outputs choose channels; inputs choose among the outputs that chose them. */
static void serve_outputs(struct flit_sim *sim, u32 node, u32 outputs)
{
	const u32 first = sim->net->first[node];
	struct serve_match match = { 0 };
	u32 inputs = 0;

	if (sim->policy == FLIT_HOLD)
		outputs = serve_held(sim, node, outputs, &match);
	for (; outputs; outputs &= outputs - 1) {
		u32 output = __builtin_ctz(outputs), link = first + output;
		u32 can = free_inputs(sim, link, sim->has[link] & sim->credited[link], match.busy),
		    v;
		u32 in;

		if (!can)
			continue;
		v = choose_at_output(sim, node, link, can);
		in = sim->vc[link << sim->shift | v].in_port;
		match.vc[output] = v;
		match.offers[in] |= 1u << output;
		inputs |= 1u << in;
	}
	for (; inputs; inputs &= inputs - 1) {
		u32 in = __builtin_ctz(inputs);
		u32 output = flit_in_turn(match.offers[in], input_lane(sim, node, in)->accept);

		serve_matched(sim, node, output, match.vc[output]);
	}
}

/* With one active output no matching is needed. */
static void serve_router(struct flit_sim *sim, u32 node, u32 outputs)
{
	u32 output = __builtin_ctz(outputs), link = sim->net->first[node] + output;

	if (outputs & (outputs - 1) || sim->policy == FLIT_HOLD)
		serve_outputs(sim, node, outputs);
	else
		serve_matched(
			sim, node, output,
			choose_at_output(sim, node, link, sim->has[link] & sim->credited[link]));
}

/* `count` bits of a bitmap from `first` on. */
static u32 bits_from(const u64 *map, u32 first, u32 count)
{
	u64 bits = map[first / 64] >> first % 64;

	if (first % 64 + count > 64)
		bits |= map[first / 64 + 1] << (64 - first % 64);
	return bits & ((1u << count) - 1);
}

void flit_serve_routers(struct flit_sim *sim)
{
	const struct flit_net *net = sim->net;
	u32 w, after = 0;	/* links before it have been served */

	for (w = 0; w < sim->link_words; w++) {
		u64 word = sim->active[w];

		while (word) {
			u32 link = w * 64 + __builtin_ctzll(word), node = net->link[link].from;

			word &= word - 1;
			if (sim->kind[link] == FLIT_KIND_INJECT) {
				serve_link(sim, link);
			} else if (link >= after) {
				after = net->first[node + 1];
				serve_router(sim, node, bits_from(sim->active, net->first[node],
								  after - net->first[node]));
			}
		}
	}
}

/* ---- input buffers to out_buffers ----------------------------------------- */

void flit_cross_switch(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->vc_words; w++) {
		u64 word;

		for (word = sim->cross[w]; word; word &= word - 1) {
			u32 x = w * 64 + __builtin_ctzll(word), y = sim->vc[x].next;
			struct flit_vc *from = &sim->vc[x], *to = &sim->vc[y];

			buffer_leave(sim, x);
			to->left--;
			to->ready++;
			sim->has[flit_link_of(sim, y)] |= flit_bit_of(sim, y);
			flit_wake_link(sim, flit_link_of(sim, y));
			if (!to->left)
				buffer_detach(sim, x);
			if (!to->left || !from->stored || to->ready == sim->machine.out_buffer)
				flit_clear_bit(sim->cross, x);
		}
	}
}
