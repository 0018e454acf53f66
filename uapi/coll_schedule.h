/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The schedule: one rank's part of a collective, as data.
 *
 * A schedule is a list of ops and, for each op, the earlier ops it waits for.
 * It names no memory of its own: ops address three buffers that are bound when
 * the schedule is run. It names no tags: the k-th message from rank A to rank B
 * (counted from 0 within one run) has slot k on both sides.
 *
 * In memory, little endian, 8-byte aligned, without gaps but for zero padding
 * to 8 bytes at the very end:
 *
 *	struct coll_schedule	header
 *	struct coll_op		op[header.ops]
 *	struct coll_peer	peer[header.peers]	ascending by rank
 *	__u32			wait[header.waits]
 *
 * Rules (core/check.c refuses what breaks one, naming op and rule):
 *  - An op waits for ops before it in the list only: a schedule has no cycles.
 *  - Sends to one peer carry the slots 0, 1, 2, ... in list order, receives
 *    from one peer likewise. Messages may travel and arrive in any order.
 *  - Every byte an op touches lies inside its buffer.
 *  - An optional op may never happen, so a mandatory op names it in an *any*
 *    wait only. An optional message lies in scratch: it may still be under way
 *    when the run has completed and the application has its buffers back.
 *  - A reduce's result may be exactly its left or its right operand; otherwise
 *    the three do not overlap. A copy's two sides do not overlap.
 */
#ifndef COLL_SCHEDULE_H
#define COLL_SCHEDULE_H

#include <linux/types.h>
#include "coll_types.h"

#define COLL_SCHEDULE_MAGIC	0x4c4c4f43u	/* "COLL" */
#define COLL_SCHEDULE_VERSION	1

/* Limits, in one place. A schedule beyond one of them is refused. */
enum coll_limits {
	COLL_RANKS_MAX = 1 << 24,
	COLL_OPS_MAX = 1 << 22,
	COLL_WAITS_MAX = 1 << 24,
	COLL_PORTS_MAX = 64,
};
#define COLL_BYTES_MAX	(1ULL << 48)	/* of one buffer */
#define COLL_NONE	0xffffffffu	/* "no op", "no peer", "no slot" */

enum coll_buffer {
	COLL_IN,		/* the application's send buffer: never written */
	COLL_OUT,		/* the application's receive buffer */
	COLL_SCRATCH,		/* the engine's; its content is undefined at start */
	COLL_BUFFERS,
};

/* An address: a buffer and a byte offset in it, packed into 64 bits. */
#define COLL_ADDRESS(buffer, offset)	((__u64)(buffer) << 56 | (__u64)(offset))
#define COLL_ADDRESS_BUFFER(address)	((__u32)((address) >> 56))
#define COLL_ADDRESS_OFFSET(address)	((address) & ((1ULL << 56) - 1))

enum coll_op_kind {
	/*
	 * Send `bytes` from `left` to the peer. Done when the bytes at `left`
	 * may change, not when they have arrived.
	 */
	COLL_OP_SEND,
	/* Receive exactly `bytes` into `result`. Done when they are there. */
	COLL_OP_RECV,
	/*
	 * result = left (reduction) right, element by element. `left` is the
	 * operand of the lower ranks: order is kept for operations that do not
	 * commute.
	 */
	COLL_OP_REDUCE,
	/* Copy `bytes` from `left` to `result`; with 0 bytes only a point where waits meet. */
	COLL_OP_COPY,
	/*
	 * Request a circuit to the peer, ahead of the first op that needs it.
	 * Done when the circuit is up; at once where there are no circuits.
	 */
	COLL_OP_CONNECT,
	/*
	 * Release the circuit to the peer. Done when its data has left the circuit and
	 * the port is free; at once where there are no circuits.
	 */
	COLL_OP_RELEASE,
	COLL_OP_KINDS,
};

enum coll_op_flags {
	/* Ready when any one of the waits is done, instead of all of them. */
	COLL_WAIT_ANY = 1 << 0,
	/* The run may complete without this op, and then the op does not start any more. */
	COLL_OPTIONAL = 1 << 1,
	/* connect, release: a circuit that carries data only from this rank, ... */
	COLL_CIRCUIT_OUT = 1 << 2,
	/* ... or only to this rank; with neither flag, both ways. */
	COLL_CIRCUIT_IN = 1 << 3,
};
#define COLL_ONE_WAY	(COLL_CIRCUIT_OUT | COLL_CIRCUIT_IN)
#define COLL_OP_FLAGS	(COLL_WAIT_ANY | COLL_OPTIONAL | COLL_ONE_WAY)

struct coll_op {
	__u8 kind;		/* enum coll_op_kind */
	__u8 flags;		/* enum coll_op_flags */
	__u8 type;		/* reduce: enum coll_type; else 0 */
	__u8 reduction;		/* reduce: enum coll_reduction; else 0 */
	__u32 peer;		/* index into peer[]; COLL_NONE for reduce and copy */
	__u32 slot;		/* send, recv; else COLL_NONE */
	__u32 wait;		/* index of its first entry in wait[]; the ops' waits are contiguous */
	__u32 waits;		/* number of its waits; 0: ready at start */
	/*
	 * Skip this optional op if the op with this index is done before this one can
	 * start: a redundant send is pointless when the peer's own result is here.
	 * COLL_NONE: no such op.
	 */
	__u32 unless;
	__u64 bytes;
	__u64 result;		/* COLL_ADDRESS(); 0 where the kind has none */
	__u64 left;
	__u64 right;
	__u64 zero;		/* must be 0 */
};

struct coll_peer {
	__u32 rank;
	__u32 sends;		/* messages to it, optional ones included */
	__u32 recvs;
	__u32 zero;
};

struct coll_schedule {
	__u32 magic;
	__u16 version;
	__u16 zero;
	__u64 bytes;		/* of all of it, header and final padding included */
	__u32 rank;
	__u32 ranks;
	__u32 ops;
	__u32 peers;
	__u32 waits;
	__u32 element;		/* bytes of a COLL_OPAQUE_TYPE element, else 0 */
	__u64 buffer[COLL_BUFFERS];	/* bytes that each buffer must have */
};

#endif
