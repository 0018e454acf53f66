/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Rings without a common link: ring i goes in steps of a stride that is coprime to the number of
 * ranks, up or down. A circuit is used in both directions, so each stride gives two rings, and
 * k ports give k rings.
 */
#ifndef COLL_RINGS_H
#define COLL_RINGS_H

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

enum { RINGS_MAX = COLL_PORTS_MAX };

static inline u32 common_divisor(u32 a, u32 b)
{
	while (b) {
		u32 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct coll_rings {
	u32 count;
	u32 stride[RINGS_MAX];
};

/* As many as the ports allow and the number of ranks has; at least one. */
static inline struct coll_rings rings_of(u32 ranks, u64 ports)
{
	struct coll_rings rings = { .count = 0 };
	const u32 most = ports < 2 || ports == COLL_UNSET ? 1
			 : ports < RINGS_MAX		  ? ports
							  : RINGS_MAX;
	u32 stride;

	for (stride = 1; stride <= ranks / 2 && rings.count < most; stride++) {
		if (common_divisor(ranks, stride) != 1)
			continue;
		rings.stride[rings.count++] = stride;
		if (2 * stride != ranks && rings.count < most)
			rings.stride[rings.count++] = ranks - stride;
	}
	/* Half a circuit more is no port less: an odd one out goes one way only. */
	if (!rings.count)
		rings.stride[rings.count++] = 1;
	return rings;
}

/* The rank `steps` steps up the ring. */
static inline u32 ring_up(u32 rank, u32 stride, u32 steps, u32 ranks)
{
	return (u32)((rank + (u64)stride * steps) % ranks);
}

static inline u32 ring_down(u32 rank, u32 stride, u32 steps, u32 ranks)
{
	return ring_up(rank, ranks - stride % ranks, steps, ranks);
}

#endif
