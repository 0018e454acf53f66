/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Emitting a schedule: one rank's ops, one call an op:
 *
 *	coll_emit_after(b, received);		// what the next op waits for
 *	sent = coll_emit_send(b, partner, address, bytes);
 *
 * coll_emit_after(), coll_emit_any(), coll_emit_optional(), coll_emit_unless() and coll_emit_one_way()
 * apply to the next op only. COLL_NONE as an op is allowed and ignored, so first rounds
 * need no special case.
 *
 * The builder numbers slots, collects peers and reserves scratch. The first error
 * stops it; coll_build_finish() returns that error. It allocates nothing: a schedule
 * that does not fit gives -ENOSPC, and the caller emits again into more memory.
 */
#ifndef COLL_BUILD_H
#define COLL_BUILD_H

#include "schedule.h"

enum { COLL_PHASES_MAX = 6 };	/* that nest: one a level, and those of the outermost algorithm */

struct coll_build {
	struct coll_schedule *schedule;
	struct coll_op *op;
	struct coll_peer *peer;
	u32 *wait;
	u32 *hash;		/* rank -> peer index + 1, open addressing */
	u32 capacity;		/* of op, peer */
	u32 wait_capacity;
	u32 hash_mask;
	u32 next_wait;		/* first wait of the op to come */
	u32 next_unless;
	u8 next_flags;
	u8 type;		/* of reduces */
	u8 reduction;
	int error;
	/* Phases being emitted, the outermost first, and the first op of each. */
	const struct coll_phase *phase[COLL_PHASES_MAX];
	u32 phase_op[COLL_PHASES_MAX];
	u32 phases;
	void *tables;		/* an algorithm's own tables, which the caller provides */
};

/*
 * A phase: an algorithm run by a subset of the ranks, on other addresses, as a part of
 * another algorithm. Its ops are emitted between coll_emit_phase_begin() and
 * coll_emit_phase_end().
 */
struct coll_phase {
	const u32 *rank;	/* per rank of the phase: its rank in the schedule */
	u32 ranks;
	u64 in, out;		/* addresses of its IN and OUT, which do not overlap */
	u32 after;		/* what its sends, reduces and copies wait for */
	u32 recv_after;		/* what its receives wait for */
};

/* Ops: COLL_NONE if there is nothing to wait for. */
struct coll_phase_end {
	u32 ready;		/* all ops but the sends are done: its results are there */
	u32 sent;		/* with `ready`: sends are done too, their buffers may change */
};

/*
 * Starts a schedule in `memory` (8-byte aligned). About 110 bytes are needed an
 * op; the finished schedule begins at `memory` too.
 */
void coll_build_init(struct coll_build *b, void *memory, u64 bytes, u32 rank, u32 ranks);

/* What the reduces to come compute. `element`: bytes of an opaque element, else 0. */
void coll_build_reduction(struct coll_build *b, u32 type, u32 reduction, u32 element);

/* States how large the application's buffers are. */
void coll_build_buffers(struct coll_build *b, u64 in_bytes, u64 out_bytes);

/*
 * Completes the schedule: sorts peers, closes gaps. Returns 0, -ENOSPC (try
 * again with more memory), -EINVAL (the algorithm broke a rule), -E2BIG (a
 * limit is exceeded).
 */
int coll_build_finish(struct coll_build *b, struct coll_schedule **schedule);

/* Reserves scratch, 64-byte aligned; returns its address. */
u64 coll_emit_scratch(struct coll_build *b, u64 bytes);

/* The next op waits for `op`, and for all others so named. */
void coll_emit_after(struct coll_build *b, u32 op);
/* The next op waits for any one of the ops so named. */
void coll_emit_any(struct coll_build *b, u32 op);
/* The next op is optional. */
void coll_emit_optional(struct coll_build *b);
/* Direction of the next connect or release: COLL_CIRCUIT_OUT or _IN; 0: both ways. */
void coll_emit_one_way(struct coll_build *b, u8 way);
/* The next op, an optional one, is skipped if `op` is done before it starts. */
void coll_emit_unless(struct coll_build *b, u32 op);

/*
 * A phase within a phase has ranks and addresses of that one, and its ops wait for what both name.
 * `phase` must live until its end.
 */
void coll_emit_phase_begin(struct coll_build *b, const struct coll_phase *phase);
struct coll_phase_end coll_emit_phase_end(struct coll_build *b);

/* Each returns the op's index. Peers are ranks. */
u32 coll_emit_send(struct coll_build *b, u32 peer, u64 from, u64 bytes);
u32 coll_emit_recv(struct coll_build *b, u32 peer, u64 to, u64 bytes);
u32 coll_emit_reduce(struct coll_build *b, u64 result, u64 left, u64 right, u64 bytes);
u32 coll_emit_copy(struct coll_build *b, u64 to, u64 from, u64 bytes);
u32 coll_emit_connect(struct coll_build *b, u32 peer);
u32 coll_emit_release(struct coll_build *b, u32 peer);
/* A copy of no bytes: done when its waits are. */
u32 coll_emit_join(struct coll_build *b);

/* A join of two ops, either of which may be COLL_NONE. */
static inline u32 emit_both(struct coll_build *b, u32 one, u32 other)
{
	coll_emit_after(b, one);
	coll_emit_after(b, other);
	return coll_emit_join(b);
}

#endif
