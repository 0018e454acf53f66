/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Channels, links, their bitmaps, and the interfaces between the parts of a cycle. Private
 * to machine.c, head.c, serve.c and message.c.
 */
#ifndef FLIT_CHANNEL_H
#define FLIT_CHANNEL_H

#include "machine.h"

static inline void flit_set_bit(u64 *map, u32 i)
{
	map[i / 64] |= 1ull << i % 64;
}

static inline void flit_clear_bit(u64 *map, u32 i)
{
	map[i / 64] &= ~(1ull << i % 64);
}

static inline u32 flit_link_of(const struct flit_sim *sim, u32 vc)
{
	return vc >> sim->shift;
}

static inline u16 flit_bit_of(const struct flit_sim *sim, u32 vc)
{
	return 1u << (vc & (sim->stride - 1));
}

/* A PE's network interface as a buffer with packets. */
static inline bool flit_is_interface(const struct flit_sim *sim, u32 vc)
{
	return vc >= sim->vcs;
}

/* The link may have something to do: process it in the next cycle. */
static inline void flit_wake_link(struct flit_sim *sim, u32 link)
{
	if (sim->has[link] & (sim->machine.credit ? sim->credited[link] : 0xffff))
		flit_set_bit(sim->active, link);
}

/* A flit of x may advance: to its out_buffer, or over the link. */
static inline void flit_offer(struct flit_sim *sim, u32 x, u32 y)
{
	if (sim->machine.out_buffer && !flit_is_interface(sim, x)) {
		if (sim->vc[y].ready < sim->machine.out_buffer)
			flit_set_bit(sim->cross, x);
		return;
	}
	sim->has[flit_link_of(sim, y)] |= flit_bit_of(sim, y);
	flit_wake_link(sim, flit_link_of(sim, y));
}

static inline void flit_schedule(struct flit_sim *sim, struct flit_events *ring, u32 after, u32 vc)
{
	struct flit_events *events = &ring[(sim->now + after) & (sim->ring_size - 1)];

	events->vc[events->count++] = vc;
}

/* ---- head.c ------------------------------------------------------------ */

/* A head has reached the front of a buffer: find the channels that it may take. */
void flit_head_arrives(struct flit_sim *sim, u32 x);

/* Allocates channels to the heads that wait for one. */
void flit_allocate(struct flit_sim *sim);

/* machine.heads, or the policy's choice. */
enum flit_heads flit_heads_order(const struct flit_sim *sim);

/* ---- serve.c ----------------------------------------------------------- */

/* The sender gets a credit for y's buffer. */
void flit_credit_arrives(struct flit_sim *sim, u32 y);

/* y's buffer has a free place: sends a credit. */
void flit_credit_return(struct flit_sim *sim, u32 y);

/* One cycle of all links: each independently, */
void flit_serve_links(struct flit_sim *sim);
/* with credits without delay, */
void flit_serve_links_at_once(struct flit_sim *sim);
/* or with one flit per cycle from each input of a router. */
void flit_serve_routers(struct flit_sim *sim);

/* Moves a flit from each input buffer to its out_buffer. */
void flit_cross_switch(struct flit_sim *sim);

/* ---- message.c --------------------------------------------------------- */

/* The network interface starts the next message, if any. */
void flit_message_next(struct flit_sim *sim, u32 node);

/* A flit has reached its PE. */
void flit_sink(struct flit_sim *sim, u32 y);

/* Executes the timers of this cycle. */
void flit_fire_timers(struct flit_sim *sim);

#endif
