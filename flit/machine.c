// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "policy.h"

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

/* ---- bitmaps and places ------------------------------------------------- */

static inline void set_bit(u64 *map, u32 i)
{
	map[i / 64] |= 1ull << i % 64;
}

static inline void clear_bit(u64 *map, u32 i)
{
	map[i / 64] &= ~(1ull << i % 64);
}

static inline u32 link_of(const struct flit_sim *sim, u32 vc)
{
	return vc >> sim->shift;
}

static inline u16 bit_of(const struct flit_sim *sim, u32 vc)
{
	return 1u << (vc & (sim->stride - 1));
}

/* A PE's network interface as a buffer that packets come from. */
static inline bool is_interface(const struct flit_sim *sim, u32 vc)
{
	return vc >= sim->vcs;
}

/* Looks at a link again: it may have something to do. */
static inline void machine_stir(struct flit_sim *sim, u32 link)
{
	if (sim->has[link] & (sim->machine.credit ? sim->room[link] : 0xffff))
		set_bit(sim->active, link);
}

/* ---- timers ------------------------------------------------------------- */

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

/* ---- heads -------------------------------------------------------------- */

/* The bit of `want` that a buffer has at the router after it. */
static u64 want_bit(const struct flit_sim *sim, u32 vc)
{
	if (is_interface(sim, vc))
		return 1;
	return 1ull << (sim->net->link[link_of(sim, vc)].in_port * sim->machine.vcs +
			(vc & (sim->stride - 1)));
}

/* The buffer of a bit of a link's `want`. */
static u32 machine_wanting(const struct flit_sim *sim, u32 link, u32 bit)
{
	const struct flit_link *l = &sim->net->link[link];

	if (l->direction == FLIT_INJECT)
		return sim->vcs + l->from;
	return sim->net->into[l->from * FLIT_PORTS_MAX + sim->port_of[bit]] << sim->shift |
	       sim->vc_of[bit];
}

/* A head has come to the front of a buffer: where may it go? */
static void head_arrives(struct flit_sim *sim, u32 x)
{
	const struct flit_packet *packet = &sim->packet[sim->vc[x].packet];
	struct flit_wish *wish = &sim->wish[x];
	u32 link = link_of(sim, x), i;

	if (is_interface(sim, x)) {
		wish->count = 1;
		wish->choice[0] = (struct flit_choice){
			flit_inject_link(sim->net, packet->from), 0xffff, 0, packet->state };
	} else {
		wish->count = flit_choices(&sim->config->route, sim->net->link[link].to, link,
					   packet->to, packet->state, wish->choice);
	}
	wish->since = sim->now;
	for (i = 0; i < wish->count; i++) {
		u32 wished = wish->choice[i].link;

		sim->lane[wished].want |= want_bit(sim, x);
		if (sim->spare[wished])
			set_bit(sim->allocate, wished);
	}
}

/* A flit of x may go on: to its out_buffer, or over the link. */
static inline void machine_offer(struct flit_sim *sim, u32 x, u32 y)
{
	if (sim->machine.out_buffer && !is_interface(sim, x)) {
		if (sim->vc[y].ready < sim->machine.out_buffer)
			set_bit(sim->cross, x);
		return;
	}
	sim->has[link_of(sim, y)] |= bit_of(sim, y);
	machine_stir(sim, link_of(sim, y));
}

/* Gives head x the channel y. */
static void machine_grant(struct flit_sim *sim, u32 x, u32 y, u8 state)
{
	struct flit_vc *from = &sim->vc[x], *to = &sim->vc[y];
	struct flit_wish *wish = &sim->wish[x];
	struct flit_packet *packet = &sim->packet[from->packet];
	u32 link = link_of(sim, y), i;
	u64 bit = want_bit(sim, x);

	for (i = 0; i < wish->count; i++)
		sim->lane[wish->choice[i].link].want &= ~bit;
	wish->count = 0;
	packet->state = state;
	from->next = y;
	to->packet = from->packet;
	to->owner = x;
	to->left = packet->flits;
	to->born = packet->born;
	if (!is_interface(sim, x)) {
		to->in_port = sim->net->link[link_of(sim, x)].in_port;
		to->in_vc = x & (sim->stride - 1);
	}
	sim->spare[link] &= ~bit_of(sim, y);
	sim->owned[link] |= bit_of(sim, y);
	flit_order_append(&sim->lane[link], y & (sim->stride - 1));
	if (packet->between)
		sim->lane[link].first |= bit_of(sim, y);
	else
		sim->lane[link].first &= ~bit_of(sim, y);
	if (from->stored)
		machine_offer(sim, x, y);
}

/* The channel head x takes of its best choice that has one; FLIT_NONE: none has. */
static u32 take_channel(struct flit_sim *sim, u32 x, u8 *state)
{
	const struct flit_wish *wish = &sim->wish[x];
	u32 i;

	for (i = 0; i < wish->count; i++) {
		const struct flit_choice *choice = &wish->choice[i];
		struct flit_lane *lane = &sim->lane[choice->link];
		u16 spare = sim->spare[choice->link] & (choice->escape | choice->free), v;

		if (!spare)
			continue;
		if (sim->machine.classes_first ? spare & choice->escape : !(spare & choice->free))
			spare &= choice->escape;
		else
			spare &= choice->free;
		v = flit_in_turn(spare, lane->vc_turn);
		lane->vc_turn = v + 1;
		*state = choice->state;
		return choice->link << sim->shift | v;
	}
	return FLIT_NONE;
}

static enum flit_heads heads_order(const struct flit_sim *sim)
{
	if (sim->machine.heads != FLIT_HEADS_POLICY)
		return sim->machine.heads;
	return sim->policy == FLIT_AGE || sim->policy == FLIT_OCCUPANCY_AGE ? FLIT_HEADS_OLDEST :
									      FLIT_HEADS_TURN;
}

/* Which head is asked next: in turn, or the one whose time is the earliest. */
static u32 next_head(const struct flit_sim *sim, u32 link, u64 heads)
{
	const struct flit_lane *lane = &sim->lane[link];
	const enum flit_heads order = sim->heads_order;
	u32 best = 64;
	s32 least = 0;

	if (order == FLIT_HEADS_TURN || !(heads & (heads - 1))) {
		u64 later = lane->head_turn < 64 ? heads >> lane->head_turn << lane->head_turn : 0;

		return __builtin_ctzll(later ? later : heads);
	}
	for (; heads; heads &= heads - 1) {
		u32 bit = __builtin_ctzll(heads);
		u32 x = machine_wanting(sim, link, bit);
		u32 time = order == FLIT_HEADS_OLDEST ? sim->vc[x].born : sim->wish[x].since;
		s32 ago = (s32)(time - (u32)sim->now);

		if (best == 64 || ago < least) {
			best = bit;
			least = ago;
		}
	}
	return best;
}

/* Channels to the heads that wait for this link. */
static void allocate_link(struct flit_sim *sim, u32 link)
{
	struct flit_lane *lane = &sim->lane[link];
	u64 heads = lane->want;

	while (heads && sim->spare[link]) {
		u32 bit = next_head(sim, link, heads), x = machine_wanting(sim, link, bit), y;
		u8 state;

		heads &= ~(1ull << bit);
		y = take_channel(sim, x, &state);
		if (y == FLIT_NONE)
			continue;
		lane->head_turn = bit + 1;
		machine_grant(sim, x, y, state);
	}
	if (!lane->want || !sim->spare[link])
		clear_bit(sim->allocate, link);
}

static void machine_allocate(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->allocate[w]; word; word &= word - 1)
			allocate_link(sim, w * 64 + __builtin_ctzll(word));
	}
}

/* ---- flits -------------------------------------------------------------- */

static inline void schedule_event(struct flit_sim *sim, struct flit_events *ring, u32 after, u32 vc)
{
	struct flit_events *events = &ring[(sim->now + after) & (sim->ring_size - 1)];

	events->vc[events->count++] = vc;
}

/* The sender learns of a place in y's buffer. */
static void credit_back(struct flit_sim *sim, u32 y)
{
	u32 link = link_of(sim, y);
	u16 bit = bit_of(sim, y);

	if (++sim->vc[y].credit > 0)
		sim->room[link] |= bit;
	if (sim->vc[y].credit == (s16)sim->machine.buffer && !(sim->owned[link] & bit)) {
		sim->vc[y].packet = FLIT_NONE;
		sim->spare[link] |= bit;
		if (sim->lane[link].want)
			set_bit(sim->allocate, link);
	}
	machine_stir(sim, link);
}

/* A place in y's buffer is free: its sender will know. */
static inline void give_back(struct flit_sim *sim, u32 y)
{
	if (!sim->machine.credit) {
		credit_back(sim, y);
		return;
	}
	sim->pending++;
	schedule_event(sim, sim->credits, sim->machine.credit, y);
}

/* A flit has left x's buffer. */
static inline void machine_leave(struct flit_sim *sim, u32 x)
{
	sim->vc[x].stored--;
	if (!is_interface(sim, x))
		give_back(sim, x);
}

static void next_message(struct flit_sim *sim, u32 node);

/* The last flit has left x for the next buffer. */
static void machine_detach(struct flit_sim *sim, u32 x)
{
	struct flit_vc *vc = &sim->vc[x];
	u32 packet = vc->packet;

	vc->next = FLIT_NONE;
	vc->packet = FLIT_NONE;
	if (!is_interface(sim, x))
		return;
	sim->held--;
	if (sim->on_sent)
		sim->on_sent(sim, &sim->packet[packet]);
	next_message(sim, x - sim->vcs);
}

/* A flit of channel y = (link, v) goes over the link. */
static inline void machine_serve(struct flit_sim *sim, u32 link, u32 v)
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
		sim->room[link] &= ~bit;
	if (sim->machine.out_buffer && !inject) {
		if (!--vc->ready)
			sim->has[link] &= ~bit;
		tail = !vc->left && !vc->ready;
		if (vc->left && sim->vc[vc->owner].stored)
			set_bit(sim->cross, vc->owner);
	} else {
		x = vc->owner;
		machine_leave(sim, x);
		tail = !--vc->left;
		if (tail || !sim->vc[x].stored)
			sim->has[link] &= ~bit;
		if (tail)
			machine_detach(sim, x);
	}
	schedule_event(sim, sim->arrivals, inject ? sim->machine.inject : sim->machine.link, y);
	if (!(sim->has[link] & (sim->machine.credit ? sim->room[link] : 0xffff)))
		clear_bit(sim->active, link);
	if (!tail)
		return;
	sim->owned[link] &= ~bit;
	lane->last = FLIT_NO_VC;
	flit_order_remove(lane, v);
}

/* The link serves one of the channels that can go on. */
static inline void serve_link(struct flit_sim *sim, u32 link)
{
	u32 can = sim->has[link] & sim->room[link];

	machine_serve(
		sim, link,
		flit_choose(sim->policy, &sim->lane[link], &sim->vc[link << sim->shift], can));
}

static void serve_links(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->active[w]; word; word &= word - 1)
			serve_link(sim, w * 64 + __builtin_ctzll(word));
	}
}

/* ---- credit 0: a full buffer takes a flit when it gives one away --------- */

static u32 serve_at_once(struct flit_sim *sim, u32 link);

/* Whether the buffer of channel y, which is full, gives a flit away in this cycle. */
static bool will_have_room(struct flit_sim *sim, u32 y)
{
	const struct flit_vc *vc = &sim->vc[y];
	u32 z = vc->next;

	if (!vc->stored || z == FLIT_NONE)
		return false;
	if (sim->vc[z].ready < sim->machine.out_buffer)
		return true;
	return serve_at_once(sim, link_of(sim, z)) == (z & (sim->stride - 1));
}

/*
 * Serves the link after those ahead of it, unless that has been done; which
 * channel it served, or FLIT_NO_VC. A ring of links that wait for each other
 * within a cycle is cut where it closes.
 */
static u32 serve_at_once(struct flit_sim *sim, u32 link)
{
	const u32 stamp = (u32)(sim->now + 1) << 8;
	u32 can, full, v = FLIT_NO_VC;

	if ((sim->chosen[link] & ~255u) == stamp)
		return sim->chosen[link] & 255;
	sim->chosen[link] = stamp | FLIT_NO_VC;
	can = sim->has[link] & sim->room[link];
	for (full = sim->has[link] & ~sim->room[link]; full; full &= full - 1) {
		u32 f = __builtin_ctz(full);

		if (will_have_room(sim, link << sim->shift | f))
			can |= 1u << f;
	}
	if (can) {
		v = flit_choose(sim->policy, &sim->lane[link], &sim->vc[link << sim->shift], can);
		machine_serve(sim, link, v);
	}
	sim->chosen[link] = stamp | v;
	return v;
}

static void serve_links_at_once(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->active[w]; word; word &= word - 1) {
			serve_at_once(sim, w * 64 + __builtin_ctzll(word));
		}
	}
}

/* ---- one port: a router's input passes one flit a cycle ------------------ */

struct match {
	u8 vc[FLIT_PORTS_MAX + 1];	/* per output: the channel it would serve */
	u8 offers[FLIT_PORTS_MAX];	/* per input: outputs that chose it */
	u8 busy;			/* inputs that are taken */
};

static struct flit_lane *input_lane(struct flit_sim *sim, u32 node, u32 port)
{
	return &sim->lane[sim->net->into[node * FLIT_PORTS_MAX + port]];
}

/* An input's channels in turn, then the inputs in turn (iSLIP's grant). */
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

/* Those of `can` whose inputs are not busy. */
static u32 free_inputs(const struct flit_sim *sim, u32 link, u32 can, u32 busy)
{
	u32 left = can, still = can;

	for (; busy && left; left &= left - 1)
		if (busy >> sim->vc[link << sim->shift | __builtin_ctz(left)].in_port & 1)
			still &= ~(left & -left);
	return still;
}

/* Serves and moves the turns on behind what was served. */
static void serve_matched(struct flit_sim *sim, u32 node, u32 output, u32 v)
{
	const u32 link = sim->net->first[node] + output;
	const struct flit_vc *vc = &sim->vc[link << sim->shift | v];
	const u32 in = vc->in_port;
	struct flit_lane *input = input_lane(sim, node, in);

	input->offset = (vc->in_vc + 1) & (sim->stride - 1);
	input->accept = output + 1;
	machine_serve(sim, link, v);
	sim->lane[link].turn = in + 1;
}

/* hold: what had the link goes on, and takes its input with it. */
static u32 serve_held(struct flit_sim *sim, u32 node, u32 outputs, struct match *match)
{
	u32 left;

	for (left = outputs; left; left &= left - 1) {
		u32 output = __builtin_ctz(left), link = sim->net->first[node] + output;
		u32 last = sim->lane[link].last;

		if (last == FLIT_NO_VC)
			continue;
		if (!((sim->has[link] & sim->room[link]) >> last & 1)) {
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

/* Outputs choose among channels, inputs among the outputs that chose them. */
static void serve_outputs(struct flit_sim *sim, u32 node, u32 outputs)
{
	const u32 first = sim->net->first[node];
	struct match match = { 0 };
	u32 inputs = 0;

	if (sim->policy == FLIT_HOLD)
		outputs = serve_held(sim, node, outputs, &match);
	for (; outputs; outputs &= outputs - 1) {
		u32 output = __builtin_ctz(outputs), link = first + output;
		u32 can = free_inputs(sim, link, sim->has[link] & sim->room[link], match.busy), v;
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

/* With one output that wants to, there is nothing to match. */
static void serve_router(struct flit_sim *sim, u32 node, u32 outputs)
{
	u32 output = __builtin_ctz(outputs), link = sim->net->first[node] + output;

	if (outputs & (outputs - 1) || sim->policy == FLIT_HOLD)
		serve_outputs(sim, node, outputs);
	else
		serve_matched(sim, node, output,
			      choose_at_output(sim, node, link, sim->has[link] & sim->room[link]));
}

/* `count` bits of a bitmap from `first` on. */
static u32 bits_from(const u64 *map, u32 first, u32 count)
{
	u64 bits = map[first / 64] >> first % 64;

	if (first % 64 + count > 64)
		bits |= map[first / 64 + 1] << (64 - first % 64);
	return bits & ((1u << count) - 1);
}

static void serve_routers(struct flit_sim *sim)
{
	const struct flit_net *net = sim->net;
	u32 w, after = 0;	/* links before it have had their turn */

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

/* ---- input buffers to out_buffers ---------------------------------------- */

static void cross_switch(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->vc_words; w++) {
		u64 word;

		for (word = sim->cross[w]; word; word &= word - 1) {
			u32 x = w * 64 + __builtin_ctzll(word), y = sim->vc[x].next;
			struct flit_vc *from = &sim->vc[x], *to = &sim->vc[y];

			machine_leave(sim, x);
			to->left--;
			to->ready++;
			sim->has[link_of(sim, y)] |= bit_of(sim, y);
			machine_stir(sim, link_of(sim, y));
			if (!to->left)
				machine_detach(sim, x);
			if (!to->left || !from->stored || to->ready == sim->machine.out_buffer)
				clear_bit(sim->cross, x);
		}
	}
}

/* ---- messages ------------------------------------------------------------ */

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

/* The network interface has the message ready: it goes into the network. */
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
	head_arrives(sim, x);
}

/* The network interface takes up the next message, if there is one. */
static void next_message(struct flit_sim *sim, u32 node)
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
		next_message(sim, from);
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

/* A flit is with its PE. */
static void machine_sink(struct flit_sim *sim, u32 y)
{
	u32 index = sim->vc[y].packet;
	struct flit_packet *packet = &sim->packet[index];

	sim->arrived++;
	give_back(sim, y);
	if (++packet->arrived < packet->flits)
		return;
	sim->travelling--;
	count_message(sim, packet);
	if (sim->on_arrived)
		sim->on_arrived(sim, packet);
	sim->packet[index].next = sim->packet_free;
	sim->packet_free = index;
}

/* A flit is in the buffer of channel y. */
static inline void machine_arrive(struct flit_sim *sim, u32 y)
{
	struct flit_vc *vc = &sim->vc[y];

	if (sim->kind[link_of(sim, y)] == FLIT_KIND_EJECT) {
		machine_sink(sim, y);
		return;
	}
	vc->stored++;
	if (vc->next != FLIT_NONE)
		machine_offer(sim, y, vc->next);
	else if (vc->stored == 1 && !sim->machine.route)
		head_arrives(sim, y);
	else if (vc->stored == 1)
		schedule_event(sim, sim->heads, sim->machine.route, y);
}

/* ---- a cycle ------------------------------------------------------------- */

static void fire_timers(struct flit_sim *sim)
{
	while (sim->timers && sim->timer[0].at <= sim->now) {
		struct flit_timer timer = take_timer(sim);

		if (timer.interface)
			begin_message(sim, timer.tag);
		else
			sim->on_timer(sim, timer.tag);
	}
}

static void take_events(struct flit_sim *sim)
{
	struct flit_events *credits = &sim->credits[sim->now & (sim->ring_size - 1)];
	struct flit_events *arrivals = &sim->arrivals[sim->now & (sim->ring_size - 1)];
	struct flit_events *heads = &sim->heads[sim->now & (sim->ring_size - 1)];
	u32 i;

	for (i = 0; i < credits->count; i++)
		credit_back(sim, credits->vc[i]);
	sim->pending -= credits->count;
	credits->count = 0;
	for (i = 0; i < arrivals->count; i++)
		machine_arrive(sim, arrivals->vc[i]);
	arrivals->count = 0;
	for (i = 0; i < heads->count; i++)
		head_arrives(sim, heads->vc[i]);
	heads->count = 0;
}

/* Why links are idle, before they serve: what remains is blocked or served. */
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

/* Nothing moves before the next message or timer: go there. */
static void machine_leap(struct flit_sim *sim)
{
	u64 to = flit_traffic_next(sim);

	if (sim->travelling || sim->pending || sim->done)
		return;
	if (sim->timers && sim->timer[0].at < to)
		to = sim->timer[0].at;
	if (to > sim->end)
		to = sim->end;
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
	fire_timers(sim);
	take_events(sim);
	if (sim->machine.out_buffer)
		machine_allocate(sim);
	if (sim->config->interval)
		count_idle(sim);
	if (sim->machine.one_port)
		serve_routers(sim);
	else if (sim->machine.credit)
		serve_links(sim);
	else
		serve_links_at_once(sim);
	if (sim->machine.out_buffer)
		cross_switch(sim);
	else
		machine_allocate(sim);
	sim->now++;
	machine_leap(sim);
}

/* ---- making a machine ---------------------------------------------------- */

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
	sim->spare[link] = sim->room[link] = (1u << vcs) - 1;
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
	sim->room = calloc(links, sizeof(u16));
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
	return sim->vc && sim->wish && sim->lane && sim->has && sim->room && sim->owned &&
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
	sim->heads_order = heads_order(sim);
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
	free(sim->room);
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
