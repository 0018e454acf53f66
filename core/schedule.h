/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Access to the parts of a schedule (uapi/coll_schedule.h). The schedule must have
 * passed coll_check() or come from coll_build_finish().
 */
#ifndef COLL_CORE_SCHEDULE_H
#define COLL_CORE_SCHEDULE_H

#include "port.h"
#include "uapi/coll_schedule.h"

static inline const struct coll_op *coll_ops(const struct coll_schedule *s)
{
	return (const struct coll_op *)(s + 1);
}

static inline const struct coll_peer *coll_peers(const struct coll_schedule *s)
{
	return (const struct coll_peer *)(coll_ops(s) + s->ops);
}

static inline const u32 *coll_waits(const struct coll_schedule *s)
{
	return (const u32 *)(coll_peers(s) + s->peers);
}

/* Bytes of a schedule with these counts, final padding included. */
static inline u64 coll_schedule_bytes(u32 ops, u32 peers, u32 waits)
{
	u64 bytes = sizeof(struct coll_schedule) + (u64)ops * sizeof(struct coll_op) +
		    (u64)peers * sizeof(struct coll_peer) + (u64)waits * sizeof(u32);

	return (bytes + 7) & ~7ULL;
}

/* The rank of an op's peer, or COLL_NONE. */
static inline u32 coll_op_rank(const struct coll_schedule *s, const struct coll_op *op)
{
	return op->peer == COLL_NONE ? COLL_NONE : coll_peers(s)[op->peer].rank;
}

/* Index of a rank in the peer table, or COLL_NONE. O(log peers). */
static inline u32 coll_peer_find(const struct coll_schedule *s, u32 rank)
{
	const struct coll_peer *peer = coll_peers(s);
	u32 low = 0, high = s->peers;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (peer[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->peers && peer[low].rank == rank ? low : COLL_NONE;
}

#endif
