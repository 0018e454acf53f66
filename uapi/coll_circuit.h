/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Circuits: their states, which everybody shows, and what travels over the daemon
 * socket of colld, a unix stream socket: messages of one size each way, in this
 * machine's byte order. A client says hello, then asks; colld answers each request
 * at once, by an answer with its cookie (but see COLL_CIRCUIT_QUIET), and tells later what
 * becomes of a lease.
 * What a connection leases is given back when it is closed.
 */
#ifndef COLL_CIRCUIT_H
#define COLL_CIRCUIT_H

#include <linux/types.h>

#define COLL_CIRCUIT_SOCKET	"/run/coll/circuits"
#define COLL_CIRCUIT_MAGIC	0x74637263u	/* "crct" */
enum {
	COLL_CIRCUIT_VERSION = 1,
	COLL_CIRCUIT_NAME = 64,		/* bytes of a name with the zero at its end */
	COLL_CIRCUIT_TEXT = 160,
	COLL_CIRCUIT_PORTS_MAX = 64,	/* of a node */
	COLL_CIRCUIT_NO_PORT = 255,
};

enum coll_circuit_state {
	COLL_CIRCUIT_DOWN,
	COLL_CIRCUIT_REQUESTED,	/* it has a port at both ends, and the switch was asked */
	COLL_CIRCUIT_SWITCHING,	/* the switch is at work */
	COLL_CIRCUIT_UP,	/* carries data */
	COLL_CIRCUIT_DRAINING,	/* to be dark soon: after a notice, and the switch's work */
	COLL_CIRCUIT_FAILED,	/* the switch could not: tried again after a while */
	COLL_CIRCUIT_STATES,
};

enum coll_circuit_request_flags {
	COLL_CIRCUIT_AHEAD = 1 << 0,	/* for later: only with ports that nobody needs now */
	/*
	 * Whether the other end wants it too does not matter. Without this flag the
	 * circuit is made when the same holder (the same job) wants it from both ends.
	 */
	COLL_CIRCUIT_ONE_SIDED = 1 << 1,
	/*
	 * From `node` to `peer` for as long as colld runs, whatever becomes of the
	 * connection, until a RELEASE that names both. Of the holder "operator"; root's.
	 */
	COLL_CIRCUIT_STANDING = 1 << 2,
	COLL_CIRCUIT_QUIET = 1 << 3,	/* no answer unless it is refused: its news will do */
	/*
	 * This end had the use under a colld that was killed since, which may not have told the
	 * other end: so it counts for that one, and is over when that one says the same.
	 */
	COLL_CIRCUIT_COMPLETED = 1 << 4,
};

enum coll_circuit_message_kind {
	/* To colld. */
	COLL_CIRCUIT_MSG_HELLO = 1, /* holder: job; node: where the client is; value: priority */
	/*
	 * cookie, peer, flags; time: it fails so many ns from now; count[0]: the number of
	 * this use of the circuit, the same at both ends and for no other use of it.
	 */
	COLL_CIRCUIT_MSG_REQUEST,
	COLL_CIRCUIT_MSG_RELEASE, /* cookie; or node and peer of a standing one */
	COLL_CIRCUIT_MSG_SHOW,	  /* answered by NODEs, HOLDERs, CIRCUITs, a SWITCH and an ANSWER */
	COLL_CIRCUIT_MSG_WATCH,	  /* from now on each change as a CIRCUIT */
	COLL_CIRCUIT_MSG_PORTS,	  /* node, value: it has so many ports from now on */
	COLL_CIRCUIT_MSG_DRAIN,	  /* node and peer (empty: all of the node's) */
	COLL_CIRCUIT_MSG_SYNC,	  /* answered when all that there was to tell has been told */

	/* From colld. */
	COLL_CIRCUIT_MSG_ANSWER = 64, /* cookie, error (0 or a negative errno), text: why */
	COLL_CIRCUIT_MSG_UP,	      /* cookie: the lease is on; time: ns that are guaranteed */
	COLL_CIRCUIT_MSG_DRAINING,    /* cookie: it will be dark in so many ns; the want stays */
	COLL_CIRCUIT_MSG_DOWN,	      /* cookie: it is, and comes back when it is its turn */
	COLL_CIRCUIT_MSG_FAILED,      /* cookie, error, text: the want is over */
	COLL_CIRCUIT_MSG_NODE,	      /* node; value: ports; count[0]: taken */
	COLL_CIRCUIT_MSG_HOLDER,  /* holder; value: priority; count[0]: wants, [1]: port ns used */
	COLL_CIRCUIT_MSG_CIRCUIT, /* node, peer, port, state; value: wants; time: ns in this state
				   */
	COLL_CIRCUIT_MSG_SWITCH,  /* text: driver; value: limit; count: enum coll_circuit_count */
};

/* What the switch did so far, and the parts of the latest set-up times, in ns. */
enum coll_circuit_count {
	COLL_CIRCUIT_SET_UPS,
	COLL_CIRCUIT_FAILURES,
	COLL_CIRCUIT_LOST,	/* circuits that went dark by themselves */
	COLL_CIRCUIT_DRIFT,	/* differences found by reading back */
	COLL_CIRCUIT_REVOKED,
	COLL_CIRCUIT_BATCH_NS,	/* waited for the orders before it: median of the latest */
	COLL_CIRCUIT_SWITCH_NS,	/* the switch's own time */
	COLL_CIRCUIT_LOCK_NS,	/* until the link was up */
	COLL_CIRCUIT_NOTIFY_NS,	/* until the holders were told */
	COLL_CIRCUIT_DELTA_NS,	/* all of it */
	COLL_CIRCUIT_LATE_NS,	/* nine of ten are no later: what a schedule counts with */
	COLL_CIRCUIT_COUNTS = 12,
};

struct coll_circuit_message {
	__u32 magic;
	__u16 version;
	__u16 kind;		/* enum coll_circuit_message_kind */
	__u64 cookie;		/* the client's own number */
	__u64 time;		/* ns */
	__s32 error;
	__u32 flags;		/* enum coll_circuit_request_flags */
	__u32 value;
	__u8 state;		/* enum coll_circuit_state */
	__u8 port[2];		/* at node and at peer; COLL_CIRCUIT_NO_PORT: none */
	__u8 zero;
	__u64 count[COLL_CIRCUIT_COUNTS];
	char holder[COLL_CIRCUIT_NAME];
	char node[COLL_CIRCUIT_NAME];
	char peer[COLL_CIRCUIT_NAME];
	char text[COLL_CIRCUIT_TEXT];
};

#endif
