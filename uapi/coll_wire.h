/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The format of a connection between two processes, over TCP or, on one node, a Unix socket and
 * then memory: a handshake that the connecting
 * side begins with a hello, then messages of one group, each a header and its payload; or
 * frames of a shared connection, at the end of this file. Little endian. An unknown kind or
 * version or a non-zero reserved field ends the connection.
 *
 * A long message may be sent in chunks, each with its own header, in order; other
 * messages and their chunks may come between them. The headers of a message's chunks
 * differ only in `chunk` and `offset`.
 *
 * A link may have more connections, its streams. They carry messages of more than 4 KB,
 * each chunk over any stream that is free, so chunks of streams arrive in any order.
 */
#ifndef COLL_WIRE_H
#define COLL_WIRE_H

#include <linux/types.h>

#define COLL_WIRE_MAGIC		0x6b6e696cu	/* "link" */
#define COLL_WIRE_VERSION	4
/* What coll_header.chunk counts. */
#define COLL_CHUNK_UNIT		4096U
#define COLL_ERROR_MAX		511	/* errnos; larger ones have a meaning inside the kernel */
#define COLL_PROCESS_BYTES	16
#define COLL_NONCE_BYTES	32
#define COLL_PROOF_BYTES	32

struct coll_hello {
	__u32 magic;
	__u16 version;
	__u8 streams;		/* number of the link's streams */
	__u8 stream;		/* number of this stream, from 1; 0: the link's first connection */
	__u32 from;		/* rank in the group of the sender of this hello, */
	__u32 to;		/* and of its receiver; shared: ranks in the job */
	__u64 group;		/* 0: the connection is shared */
	/* The process that is expected to accept: as it has published itself in the job's store. */
	__u8 process[COLL_PROCESS_BYTES];
	/* The sender's process, and the pid namespace that this number counts in. */
	__u64 pid_namespace;
	__u32 pid;
	__u32 zero;
	__u8 nonce[COLL_NONCE_BYTES];
};

/* The answer to a hello, and the answer to that: libcoll/base/handshake.h has the proofs. */
struct coll_challenge {
	__u8 nonce[COLL_NONCE_BYTES];
	__u8 proof[COLL_PROOF_BYTES];
};

struct coll_proof {
	__u8 bytes[COLL_PROOF_BYTES];
};

enum coll_message_kind {
	/* Payload of a send op: run and slot name the message, offset the part of it. */
	COLL_MESSAGE_DATA = 1,
	/*
	 * Asks whether the peer is alive. `run` and `hash` are of the run that the sender
	 * waits in. Answered with a pong. No payload.
	 */
	COLL_MESSAGE_PING,
	/*
	 * Answers a ping: `run` is the sender's latest run, `slot` the rank that it
	 * waits for and suspects, or COLL_NONE. No payload.
	 */
	COLL_MESSAGE_PONG,
	/*
	 * The group has failed: `slot` is the failed rank, or COLL_NONE for the sender, `hash` the
	 * positive errno, at most COLL_ERROR_MAX, `run` the reporter or another rank involved, or
	 * COLL_NONE. No payload.
	 */
	COLL_MESSAGE_FAIL,
	/*
	 * The sender leaves the group and sends nothing more. On the link's first
	 * connection `slot` has a bit for each stream that ends with a bye as well: bit 0
	 * for stream 1. No payload.
	 */
	COLL_MESSAGE_BYE,
	/*
	 * As the header of a whole message, but nothing follows: coll.ko, which has the connection's
	 * other end as well, copies the payload itself. To whom it is not offered, or not any more,
	 * it means nothing: that message comes later, as DATA. No payload.
	 */
	COLL_MESSAGE_OFFER,
	/*
	 * As DATA, but the payload of the chunk is in memory of the sender, which the receiver has
	 * mapped and has said so; what follows is a coll_published_place. Only within a node, over
	 * memory; for coll.ko, and over a socket, it is an unknown kind.
	 */
	COLL_MESSAGE_PUBLISHED,
};

struct coll_published_place {
	__u32 slot;		/* of the sender's area (libcoll/engine/published.h) */
	__u32 offset;		/* in the slot */
	__u32 generation;	/* of the slot: while it has that, the payload is there */
	__u32 unused;		/* 0 */
};

struct coll_header {
	__u8 kind;		/* enum coll_message_kind */
	__u8 version;		/* COLL_WIRE_VERSION */
	/*
	 * Units of payload that follow this header, or less if the message ends before;
	 * 0: the rest of the message.
	 */
	__u16 chunk;
	__u32 run;		/* number of the run in its group, from 0 */
	__u32 slot;		/* sequence number of this message between the two ranks, within the run */
	__u32 hash;		/* of the call's arguments: equal on all ranks */
	__u64 bytes;		/* of the whole message's payload */
	__u64 offset;		/* of this chunk in the message */
};

/*
 * Point to point: a group of its own, whose links carry only messages of this kind. All are
 * COLL_MESSAGE_DATA, and `hash` says what one is. Messages and offers of a sender to a receiver
 * are numbered together, from 0, and arrive in that order.
 */
enum coll_point_kind {
	/* A message of at most 4 KB, within the receiver's credit: 64 KiB at first. `run` is its
	   number, `slot` its tag. It costs its bytes and 64. */
	COLL_POINT_EAGER = 1,
	/* A message that is to be granted: `run` and `slot` as above, the payload its length, a __u64. */
	COLL_POINT_OFFER,
	/* Grants the offer of number `run`. `slot` is not 0: it does not fit, and is not to be sent. */
	COLL_POINT_GRANT,
	/* A granted message: `run` and `slot` as in its offer. */
	COLL_POINT_LONG,
	/* The receiver of this may send `slot` bytes more without being asked. */
	COLL_POINT_CREDIT,
};

/*
 * A shared connection carries the links of all groups between two processes. Each link, or
 * stream of one, has a channel: a stream of bytes both ways, as a connection of its own would
 * be. The connection is a sequence of frames. A frame has bytes of one channel, or a control
 * message of all (channel 0).
 *
 * A side sends at most as many bytes on a channel as the other has granted: COLL_CHANNEL_FIRST,
 * and what WINDOW messages add. So no channel waits for a reader of another.
 */
#define COLL_CHANNEL_FIRST	16384U

struct coll_frame {
	__u32 channel;
	__u32 bytes;		/* that follow this header; and COLL_FRAME_PUBLISHED */
};

/* The frame is a PUBLISHED message, whole: whoever discards it can acknowledge it. */
#define COLL_FRAME_PUBLISHED	0x80000000U

enum coll_channel_kind {
	/*
	 * The channel begins: for stream `stream` of the link between ranks `from` and `to` of
	 * a group. The sender has chosen its number: odd if it made the connection, else even.
	 */
	COLL_CHANNEL_OPEN = 1,
	/* The receiver of this may send `value` more bytes on the channel. */
	COLL_CHANNEL_WINDOW,
	/* The sender sends nothing more on the channel. */
	COLL_CHANNEL_END,
	/*
	 * ... nor does it read any more. With a value, the group has failed for this rank: the
	 * same as COLL_MESSAGE_FAIL, which may not have got through bulk.
	 */
	COLL_CHANNEL_RESET,
	/*
	 * Of no channel: the sender waits for the receiver to open one for a link of group `value`.
	 * Answered with NEWS.
	 */
	COLL_CHANNEL_ASK,
	/*
	 * Of no channel: group `value` has failed, as COLL_MESSAGE_FAIL says it; or, without an
	 * errno, it has not, and `to` is the rank that the sender suspects, or COLL_NONE.
	 */
	COLL_CHANNEL_NEWS,
};

struct coll_channel_control {
	__u8 kind;		/* enum coll_channel_kind */
	__u8 streams;		/* OPEN: number of the link's streams */
	__u8 stream;		/* OPEN: number of this stream, from 1; 0: the link itself */
	__u8 zero;
	__u32 channel;		/* NEWS: errno, or 0 */
	__u64 value;		/* OPEN, ASK, NEWS: the group; WINDOW: bytes; RESET: errno, or 0 */
	__u32 from;		/* OPEN: the sender's rank in the group; RESET, NEWS: reporter */
	__u32 to;		/* OPEN: the receiver's; RESET, NEWS: the failed rank */
	__u64 unused;		/* 0: so no frame is shorter than one with a message's header */
};

#endif
