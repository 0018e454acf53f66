// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Detection of deadlocks, exact: packets that will never move again. A waiting head can move
 * one day if a channel that it may take is free, or is held by a packet that can move one
 * day. All other packets are in a deadlock.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

struct stuck_view {
	u32 *at;		/* per packet: where its head waits, or FLIT_NONE */
	bool *stuck;
};

static u16 stuck_target(const struct flit_choice *choice)
{
	return choice->escape | choice->free;
}

/* Whether channel y is free or becoming free, or its packet can move. */
static bool is_available(const struct flit_sim *sim, const struct stuck_view *view, u32 y)
{
	u32 link = y >> sim->shift, bit = 1u << (y & (sim->stride - 1));
	u32 holder = sim->vc[y].packet;

	if (sim->spare[link] & bit || sim->kind[link] == FLIT_KIND_EJECT)
		return true;
	if (holder != FLIT_NONE)
		return !view->stuck[holder];
	/* Its last flits have left, and credits are in flight; or no such channel exists. */
	return sim->vc[y].credit != (s16)sim->machine.buffer;
}

static bool can_advance(const struct flit_sim *sim, const struct stuck_view *view, u32 x)
{
	const struct flit_wish *wish = &sim->wish[x];
	u32 i, mask;

	for (i = 0; i < wish->count; i++) {
		const struct flit_choice *choice = &wish->choice[i];

		for (mask = stuck_target(choice) & ((1u << sim->stride) - 1); mask;
		     mask &= mask - 1)
			if (is_available(sim, view,
					 choice->link << sim->shift | __builtin_ctz(mask)))
				return true;
	}
	return false;
}

static void find_stuck(const struct flit_sim *sim, struct stuck_view *view)
{
	const u32 buffers = sim->vcs + sim->net->nodes;
	bool changed = true;
	u32 x, i;

	for (i = 0; i < sim->packets_size; i++)
		view->at[i] = FLIT_NONE;
	for (x = 0; x < buffers; x++)
		if (sim->wish[x].count) {
			view->at[sim->vc[x].packet] = x;
			view->stuck[sim->vc[x].packet] = true;
		}
	while (changed) {
		changed = false;
		for (x = 0; x < buffers; x++) {
			u32 packet = sim->vc[x].packet;

			if (sim->wish[x].count && view->stuck[packet] &&
			    can_advance(sim, view, x)) {
				view->stuck[packet] = false;
				changed = true;
			}
		}
	}
}

/* A channel that a stuck packet waits for. */
static u32 waits_for(const struct flit_sim *sim, u32 x)
{
	const struct flit_choice *choice = &sim->wish[x].choice[sim->wish[x].count - 1];
	u32 mask = choice->escape ? choice->escape : choice->free;

	return choice->link << sim->shift | __builtin_ctz(mask);
}

/* From one stuck packet to the one that it waits for, until one repeats. */
static void note_ring(const struct flit_sim *sim, const struct stuck_view *view, u32 packet,
		      struct flit_cycle *cycle)
{
	u32 steps, first, y;

	for (steps = 0; steps < sim->packets_size; steps++)
		packet = sim->vc[waits_for(sim, view->at[packet])].packet;
	first = packet;
	cycle->count = 0;
	do {
		y = waits_for(sim, view->at[packet]);
		if (cycle->count < FLIT_CYCLE_MAX)
			cycle->channel[cycle->count] = (struct flit_channel){
				y >> sim->shift, y & (sim->stride - 1) };
		cycle->count++;
		packet = sim->vc[y].packet;
	} while (packet != first);
}

bool flit_stuck(struct flit_sim *sim, struct flit_cycle *cycle)
{
	struct stuck_view view = { calloc(sim->packets_size + 1, sizeof(u32)),
				   calloc(sim->packets_size + 1, sizeof(bool)) };
	bool found = false;
	u32 x;

	if (!view.at || !view.stuck) {
		sim->error = -ENOMEM;
	} else {
		find_stuck(sim, &view);
		for (x = 0; x < sim->vcs && !found; x++)
			if (sim->wish[x].count && view.stuck[sim->vc[x].packet]) {
				note_ring(sim, &view, sim->vc[x].packet, cycle);
				found = true;
			}
	}
	free(view.at);
	free(view.stuck);
	return found;
}
