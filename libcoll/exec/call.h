/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What of a call shapes its schedule: compared, hashed, kept. */
#ifndef COLL_EXEC_CALL_H
#define COLL_EXEC_CALL_H

#include "algo/common/algo.h"
#include "libcoll/coll.h"

struct coll_planned;

/* One more value in a hash. */
uint64_t coll_call_mix(uint64_t hash, uint64_t value);
/* The arguments of a call that has none per rank. */
struct coll_call_brief {
	enum coll_collective collective;
	uint32_t type, root, reduction;
	uint64_t count;
	bool in_place;
};
static inline struct coll_call_brief coll_call_brief(const struct coll_call *call)
{
	return (struct coll_call_brief){ call->collective, call->type, call->root, call->reduction,
					 call->count, call->in_place };
}

/* Its place among the latest. Calls that take turns have places of their own, mostly. */
static inline uint32_t coll_call_place(struct coll_call_brief call, uint32_t places)
{
	const uint64_t mixed = call.count << 24 ^ (uint64_t)call.root << 17 ^ call.type << 12 ^
			       call.reduction << 6 ^ call.collective << 1 ^ call.in_place;

	return (mixed * 0x9e3779b97f4a7c15ull >> 32) % places;
}

/*
 * A key of all that shapes this rank's schedule for a call, but the group's fabric. Equal
 * calls have equal keys; different calls hardly ever. Any thread.
 */
uint64_t coll_call_key(const struct coll_call *call, uint32_t user_op);
/*
 * The hash of what all ranks of a planned call must agree on; each header has it. The number of a
 * user's operation is not part of it: each rank has its own.
 */
uint32_t coll_call_hash(const struct coll_planned *planned);
/* Whether the two are the same for this rank, but for a user's operation. */
bool coll_call_is_same(const struct coll_call *a, const struct coll_call *b);
/* Copies the arrays of counts and displacements into one piece of memory, from malloc. -ENOMEM. */
int coll_call_keep_arrays(struct coll_call *call, u64 **memory);
bool coll_call_has_arrays(const struct coll_call *call);

/* Whether a buffer of which the call needs so many bytes is missing. */
static inline bool coll_call_lacks(const void *buffer, uint64_t bytes)
{
	return bytes && (!buffer || buffer == COLL_IN_PLACE);
}

/* Whether the two do. Blocks with displacements may lie between each other: they are not looked at. */
static inline bool coll_call_overlaps(const struct coll_call *call, const char *in, uint64_t in_bytes,
				      const char *out, uint64_t out_bytes)
{
	return in_bytes && out_bytes && !call->displs && !call->send_displs &&
	       in < out + out_bytes && out < in + in_bytes;
}

#endif
