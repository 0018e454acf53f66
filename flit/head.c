// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Heads of packets wait for channels, and get them. */
#include "channel.h"
#include "policy.h"

/* The bit of `want` for a buffer, at the router behind it. */
static u64 waiting_bit(const struct flit_sim *sim, u32 vc)
{
	if (flit_is_interface(sim, vc))
		return 1;
	return 1ull << (sim->net->link[flit_link_of(sim, vc)].in_port * sim->machine.vcs +
			(vc & (sim->stride - 1)));
}

/* The buffer of a bit of a link's `want`. */
static u32 head_buffer(const struct flit_sim *sim, u32 link, u32 bit)
{
	const struct flit_link *l = &sim->net->link[link];

	if (l->direction == FLIT_INJECT)
		return sim->vcs + l->from;
	return sim->net->into[l->from * FLIT_PORTS_MAX + sim->port_of[bit]] << sim->shift |
	       sim->vc_of[bit];
}

void flit_head_arrives(struct flit_sim *sim, u32 x)
{
	const struct flit_packet *packet = &sim->packet[sim->vc[x].packet];
	struct flit_wish *wish = &sim->wish[x];
	u32 link = flit_link_of(sim, x), i;

	if (flit_is_interface(sim, x)) {
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

		sim->lane[wished].want |= waiting_bit(sim, x);
		if (sim->spare[wished])
			flit_set_bit(sim->allocate, wished);
	}
}

/* Gives head x the channel y. */
static void channel_grant(struct flit_sim *sim, u32 x, u32 y, u8 state)
{
	struct flit_vc *from = &sim->vc[x], *to = &sim->vc[y];
	struct flit_wish *wish = &sim->wish[x];
	struct flit_packet *packet = &sim->packet[from->packet];
	u32 link = flit_link_of(sim, y), i;
	u64 bit = waiting_bit(sim, x);

	for (i = 0; i < wish->count; i++)
		sim->lane[wish->choice[i].link].want &= ~bit;
	wish->count = 0;
	packet->state = state;
	from->next = y;
	to->packet = from->packet;
	to->owner = x;
	to->left = packet->flits;
	to->born = packet->born;
	if (!flit_is_interface(sim, x)) {
		to->in_port = sim->net->link[flit_link_of(sim, x)].in_port;
		to->in_vc = x & (sim->stride - 1);
	}
	sim->spare[link] &= ~flit_bit_of(sim, y);
	sim->owned[link] |= flit_bit_of(sim, y);
	flit_order_append(&sim->lane[link], y & (sim->stride - 1));
	if (packet->between)
		sim->lane[link].first |= flit_bit_of(sim, y);
	else
		sim->lane[link].first &= ~flit_bit_of(sim, y);
	if (from->stored)
		flit_offer(sim, x, y);
}

/* The channel that head x takes: of its best choice with a free one; FLIT_NONE: none is free. */
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

enum flit_heads flit_heads_order(const struct flit_sim *sim)
{
	if (sim->machine.heads != FLIT_HEADS_POLICY)
		return sim->machine.heads;
	return sim->policy == FLIT_AGE || sim->policy == FLIT_OCCUPANCY_AGE ? FLIT_HEADS_OLDEST :
									      FLIT_HEADS_TURN;
}

/* The head that chooses next: round robin, or the one with the earliest time. */
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
		u32 x = head_buffer(sim, link, bit);
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
		u32 bit = next_head(sim, link, heads), x = head_buffer(sim, link, bit), y;
		u8 state;

		heads &= ~(1ull << bit);
		y = take_channel(sim, x, &state);
		if (y == FLIT_NONE)
			continue;
		lane->head_turn = bit + 1;
		channel_grant(sim, x, y, state);
	}
	if (!lane->want || !sim->spare[link])
		flit_clear_bit(sim->allocate, link);
}

void flit_allocate(struct flit_sim *sim)
{
	u32 w;

	for (w = 0; w < sim->link_words; w++) {
		u64 word;

		for (word = sim->allocate[w]; word; word &= word - 1)
			allocate_link(sim, w * 64 + __builtin_ctzll(word));
	}
}
