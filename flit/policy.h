/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The arbiter of a link: which of its ready channels it serves. `can` is never empty. A
 * link's order holds its packets in order of arrival: the thesis' priority of a packet
 * (paper 4) is its position, and when a packet has passed, those behind it move up.
 */
#ifndef FLIT_POLICY_H
#define FLIT_POLICY_H

#include "machine.h"

static inline void flit_order_append(struct flit_lane *lane, u32 v)
{
	lane->order |= (u64)v << 4 * lane->packets++;
}

static inline void flit_order_remove(struct flit_lane *lane, u32 v)
{
	u32 place = 0;
	u64 before;

	while ((lane->order >> place & 15) != v)
		place += 4;
	before = (1ull << place) - 1;
	lane->order = (lane->order & before) | (lane->order >> place >> 4 << place);
	lane->packets--;
}

static inline u32 flit_in_turn(u32 can, u32 turn)
{
	u32 later = can >> turn << turn;

	return __builtin_ctz(later ? later : can);
}

static inline u32 flit_first_come(const struct flit_lane *lane, u32 can)
{
	u64 order = lane->order;

	while (!(can >> (order & 15) & 1))
		order >>= 4;
	return order & 15;
}

/* Times are compared as differences: the low bits are enough. */
static inline u32 flit_oldest(const struct flit_vc *vc, u32 can)
{
	u32 best = __builtin_ctz(can);

	for (can &= can - 1; can; can &= can - 1) {
		u32 v = __builtin_ctz(can);

		if ((s32)(vc[v].born - vc[best].born) < 0)
			best = v;
	}
	return best;
}

/* `vc`: the link's channels. */
static inline u32 flit_choose(enum flit_policy policy, const struct flit_lane *lane,
			      const struct flit_vc *vc, u32 can)
{
	switch (policy) {
	case FLIT_RR:
		return flit_in_turn(can, lane->turn);
	case FLIT_HOLD:
		if (lane->last != FLIT_NO_VC && can >> lane->last & 1)
			return lane->last;
		return flit_in_turn(can, lane->turn);
	case FLIT_OCCUPANCY_HIER:
		return flit_first_come(lane, can & lane->first ? can & lane->first : can);
	case FLIT_AGE:
		return flit_oldest(vc, can);
	default:	/* occupancy, occupancy-age: they differ in whose head comes first */
		return flit_first_come(lane, can);
	}
}

#endif
