/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Circuits: their states, shared by all programs, and the protocol of colld's socket, a
 * unix stream socket. All messages have one size and this machine's byte order.
 *
 * A client sends HELLO, then requests. colld answers each at once with an ANSWER that has
 * its cookie (but see COLL_CIRCUIT_QUIET), and sends notifications of each lease later.
 * Closing the connection releases all that it has requested.
 */
#ifndef COLL_CIRCUIT_H
#define COLL_CIRCUIT_H

#include <linux/types.h>

#define COLL_CIRCUIT_SOCKET	"/run/coll/circuits"
#define COLL_CIRCUIT_MAGIC	0x74637263u	/* "crct" */
enum {
	COLL_CIRCUIT_VERSION = 3,
	COLL_CIRCUIT_NAME = 64,		/* bytes of a name with the zero at its end */
	COLL_CIRCUIT_TEXT = 160,
	COLL_CIRCUIT_KEY = 16,		/* bytes that only one job's ranks know */
	COLL_CIRCUIT_PORTS_MAX = 64,	/* of a node */
	COLL_CIRCUIT_NO_PORT = 255,
};

enum coll_circuit_state {
	COLL_CIRCUIT_DOWN,
	COLL_CIRCUIT_REQUESTED,	/* has a port at both ends, and the switch has the order */
	COLL_CIRCUIT_SWITCHING,	/* the switch is reconfiguring */
	COLL_CIRCUIT_UP,	/* carries data */
	COLL_CIRCUIT_DRAINING,	/* goes down after a grace time and the switch's work */
	COLL_CIRCUIT_FAILED,	/* the switch has failed: retried after a pause */
	COLL_CIRCUIT_STATES,
};

enum coll_circuit_request_flags {
	COLL_CIRCUIT_AHEAD = 1 << 0,	/* for later: only with ports that nobody needs now */
	/*
	 * The circuit is made for this end's request alone. Without this flag, it is made when
	 * the same holder (the same job) has requested it from both ends.
	 */
	COLL_CIRCUIT_ONE_SIDED = 1 << 1,
	/*
	 * From `node` to `peer` for as long as colld runs, even when the connection is closed,
	 * until a RELEASE that names both. Its holder is "operator". Root only.
	 */
	COLL_CIRCUIT_STANDING = 1 << 2,
	COLL_CIRCUIT_QUIET = 1 << 3,	/* an ANSWER only on error: notifications suffice */
	/*
	 * This end has completed the use under an earlier colld, which was killed and may not
	 * have notified the other end. The request counts for the other end, and ends when the
	 * other end sends the same.
	 */
	COLL_CIRCUIT_COMPLETED = 1 << 4,
};

/* The comment names the member of struct coll_circuit_message. */
enum coll_circuit_message_kind {
	/* To colld. */
	COLL_CIRCUIT_MSG_HELLO = 1,	/* hello */
	COLL_CIRCUIT_MSG_REQUEST,	/* request; the cookie is the lease's from now on */
	COLL_CIRCUIT_MSG_RELEASE,	/* by the cookie; a standing one by `pair` */
	COLL_CIRCUIT_MSG_SHOW,		/* answered by NODE, HOLDER, CIRCUIT, SWITCH and ANSWER */
	COLL_CIRCUIT_MSG_WATCH,		/* from now on each change as a CIRCUIT */
	COLL_CIRCUIT_MSG_PORTS,		/* node: its number of ports from now on */
	COLL_CIRCUIT_MSG_DRAIN,		/* pair; an empty peer: all circuits of the node */
	COLL_CIRCUIT_MSG_SYNC,		/* answered after all notifications that are due */

	/* From colld. */
	COLL_CIRCUIT_MSG_ANSWER = 64,	/* answer */
	COLL_CIRCUIT_MSG_UP,		/* lease: ns guaranteed */
	COLL_CIRCUIT_MSG_DRAINING,	/* lease: ns until it is down; the request stays */
	COLL_CIRCUIT_MSG_DOWN,		/* lease; it is up again when its turn comes */
	COLL_CIRCUIT_MSG_FAILED,	/* lease: error and text; the request has ended */
	COLL_CIRCUIT_MSG_NODE,		/* node */
	COLL_CIRCUIT_MSG_HOLDER,	/* holder */
	COLL_CIRCUIT_MSG_CIRCUIT,	/* circuit */
	COLL_CIRCUIT_MSG_SWITCH,	/* status */
};

enum { COLL_CIRCUIT_BODY = 384 };	/* bytes behind the header */

struct coll_circuit_message {
	__u32 magic;
	__u16 version;
	__u16 kind;		/* enum coll_circuit_message_kind */
	__u64 cookie;		/* the client's own number */
	union {
		struct {
			char holder[COLL_CIRCUIT_NAME];	/* the job's name */
			char node[COLL_CIRCUIT_NAME];	/* the client's */
			__u32 priority;			/* higher first; above 0: root only */
			/*
			 * Clients of one name and one key are one job, whichever user's they
			 * are (ssh forwards the socket as another). Zeros: of one name and one
			 * user.
			 */
			__u8 key[COLL_CIRCUIT_KEY];
		} hello;
		struct {
			__u64 timeout_ns;	/* fails if it is not up by then */
			/* Number of this use of the circuit: equal at both ends, never reused. */
			__u64 session;
			__u32 flags;		/* enum coll_circuit_request_flags */
			__u32 zero;
			char node[COLL_CIRCUIT_NAME];	/* STANDING only */
			char peer[COLL_CIRCUIT_NAME];
		} request;
		struct {
			char node[COLL_CIRCUIT_NAME];
			char peer[COLL_CIRCUIT_NAME];
		} pair;
		struct {
			__s32 error;		/* 0 or a negative errno */
			char text[COLL_CIRCUIT_TEXT];	/* the reason */
		} answer;
		struct {
			__u64 ns;
			__s32 error;		/* negative errno */
			char text[COLL_CIRCUIT_TEXT];
		} lease;
		struct {
			char name[COLL_CIRCUIT_NAME];
			__u32 ports;
			__u32 taken;		/* of these; unused in PORTS */
		} node;
		struct {
			char name[COLL_CIRCUIT_NAME];
			__u32 priority;
			__u32 requests;
			__u64 port_ns;		/* port time used */
			__u32 user;		/* id of the user whose client came first */
			__u32 zero;
		} holder;
		struct {
			char node[COLL_CIRCUIT_NAME];
			char peer[COLL_CIRCUIT_NAME];
			char holder[COLL_CIRCUIT_NAME];	/* of the latest request, or "" */
			char text[COLL_CIRCUIT_TEXT];	/* why it has failed, or "" */
			__u64 ns;		/* in this state */
			__u32 requests;
			__s32 error;
			__u8 state;		/* enum coll_circuit_state */
			__u8 port[2];		/* at node and peer; or COLL_CIRCUIT_NO_PORT */
			__u8 zero[5];
		} circuit;
		struct {
			char driver[COLL_CIRCUIT_TEXT];	/* with its argument */
			__u32 limit;		/* circuits at once; 0: no limit */
			__u32 zero;
			__u64 setups;		/* circuits that came up */
			__u64 failures;
			__u64 lost;		/* circuits that went down by themselves */
			__u64 drift;		/* differences found by reading back */
			__u64 revoked;
			/* Medians of the latest reconfiguration delays and of their parts. */
			__u64 queue_ns;		/* waited for earlier orders */
			__u64 switch_ns;	/* the switch's own time */
			__u64 lock_ns;		/* until the link was up */
			__u64 notify_ns;	/* until the holders were notified */
			__u64 delay_ns;		/* all of it */
			__u64 delay_p90_ns;	/* 90th percentile: what a schedule is planned for */
		} status;
		__u8 body[COLL_CIRCUIT_BODY];
	};
};

#ifndef __cplusplus
_Static_assert(sizeof(struct coll_circuit_message) == 16 + COLL_CIRCUIT_BODY,
	       "the size of a message is part of the protocol");
#endif

#endif
