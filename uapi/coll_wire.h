/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What travels between two ranks of a group over one TCP connection: a hello
 * from the side that connected, then messages, each a header and its payload.
 * Little endian. Unknown kinds, versions and non-zero reserved fields end the
 * connection.
 *
 * A long message may come in chunks, each with a header of its own: in order, and
 * between them chunks of other messages and whole ones. Between those of one
 * message only `chunk` and `offset` differ.
 *
 * A link may have further connections, its streams: messages of more than 4 KB go
 * over these, chunk by chunk over whichever is free, in any order.
 */
#ifndef COLL_WIRE_H
#define COLL_WIRE_H

#include <linux/types.h>

#define COLL_WIRE_MAGIC		0x6b6e696cu	/* "link" */
#define COLL_WIRE_VERSION	2
/* What coll_header.chunk counts. */
#define COLL_CHUNK_UNIT		4096U
#define COLL_NONCE_BYTES	32
#define COLL_PROOF_BYTES	32

struct coll_hello {
	__u32 magic;
	__u16 version;
	/* Connections that carry the link's bulk; and which of them this is, from 1; 0: the link's own. */
	__u8 streams;
	__u8 stream;
	__u32 from;		/* ranks in the group */
	__u32 to;
	__u64 group;
	/* HMAC-SHA256 of all the above with the job's secret. */
	__u8 proof[COLL_PROOF_BYTES];
};

/* The answer to a hello, and the answer to that: libcoll/base/handshake.h. */
struct coll_challenge {
	__u8 nonce[COLL_NONCE_BYTES];
	__u8 proof[COLL_PROOF_BYTES];
};

struct coll_proof {
	__u8 bytes[COLL_PROOF_BYTES];
};

enum coll_message_kind {
	/* Payload of a send op: run, slot, hash and bytes say which, offset what of it. */
	COLL_MESSAGE_DATA = 1,
	/*
	 * "Are you there? I wait in this run (number and hash)." Answered with a
	 * pong. No payload.
	 */
	COLL_MESSAGE_PING,
	/*
	 * "I am. My latest run is this, and I suspect rank `slot`" (COLL_NONE:
	 * nobody). No payload.
	 */
	COLL_MESSAGE_PONG,
	/*
	 * "The group has failed": rank `slot` is to blame, `hash` is the positive
	 * errno, `run` another rank involved or COLL_NONE. No payload.
	 */
	COLL_MESSAGE_FAIL,
	/*
	 * "I leave the group and send no more." On the link's own connection `slot` has
	 * a bit (from 0) for each stream that says so as well. No payload.
	 */
	COLL_MESSAGE_BYE,
};

struct coll_header {
	__u8 kind;		/* enum coll_message_kind */
	__u8 version;		/* COLL_WIRE_VERSION */
	/*
	 * So much payload follows: this many units, unless the rest of the message
	 * is less; 0: all the rest.
	 */
	__u16 chunk;
	__u32 run;		/* number of the run in its group, from 0 */
	__u32 slot;		/* the how-manieth message of this pair in the run */
	__u32 hash;		/* of the call's arguments: equal on all ranks */
	__u64 bytes;		/* of the whole message's payload */
	__u64 offset;		/* of what follows in it */
};

#endif
