/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A run by events. Private to events*.c and loggops.c. */
#ifndef COLL_SIM_EVENTS_STATE_H
#define COLL_SIM_EVENTS_STATE_H

#include "calendar.h"
#include "circuits.h"
#include "events.h"
#include "trunk.h"

/* `what` of an event: the op and the kind of the event. */
enum {
	WHAT_START,	/* of the rank; its op is 0 */
	WHAT_REQUEST,	/* a sender asks whether this receive has started */
	WHAT_ARRIVE,	/* its message has arrived */
	WHAT_DELIVER,	/* its message has passed the NIC */
	WHAT_GRANT,	/* this send may send its bytes */
	WHAT_DONE,
	WHAT_LEAVE,	/* this send's message reaches the node's NIC */
	WHAT_BITS = 3,
};

/*
 * State of a rank. It is followed by coll_step's arrays and one bit for each op: its message,
 * or the request for it, arrived before the receive started.
 */
struct sim_events_rank {
	sim_time cpu;		/* busy until then */
	sim_time sent;		/* the last send began before that */
	sim_time out, in;	/* the NIC is busy until then */
	u32 head, tail, left, skipped;
};

/* A message on a trunk. */
struct sim_crossing {
	u32 to, op;
	sim_time more;		/* its latency after the trunk */
	u32 from, sent;		/* the send that it completes; COLL_NONE: it is done */
	u32 free;		/* the next unused one, + 1 */
};

/* The NIC that a node's ranks share: busy until then, and the bytes of both directions. */
struct sim_nic {
	sim_time out, in;
	u64 sent, received;
};

struct sim_events {
	const struct sim_program *program;
	const struct sim_machine *machine;
	u64 *place;		/* per class: bytes of a rank */
	u64 *first;		/* per class: where its first member's data is */
	char *memory;
	u64 bytes;
	struct sim_calendar calendar;
	struct sim_wire *wire;	/* per class and op; first_op[class] + op */
	u32 *first_op;
	sim_time *finish;	/* per rank, or NULL */
	sim_time *phase;	/* of the ranks' noise, or NULL */
	struct sim_trunk *trunk;	/* per link of the network; NULL: no trunks */
	struct sim_trunk **busy;	/* those with flows, in any order */
	u32 busies;
	/* With nodes; see events_nodes.c. A place is a rank's number, counted node by node. */
	struct sim_nic *nic;		/* per node, or NULL */
	u32 *node_place, *rank_at;		/* per rank; per place */
	bool runs;			/* a rank is its place */
	struct sim_calendar landing;	/* messages that reach a NIC: `rank` is a place */
	struct sim_event *leaving;	/* of this window, likewise */
	u32 leavings, leaving_capacity;
	struct sim_crossing *crossing;
	u32 crossings, crossing_capacity, free;
	struct sim_bytes *carried;	/* or NULL */
	struct sim_log *log;	/* or NULL */
	struct sim_circuits_state *circuits;	/* or NULL */
	struct sim_outcome *outcome;
	u64 running;		/* ranks that are not done */
	/* the current rank */
	u32 rank;
	const struct sim_class *class;
	const struct sim_wire *class_wire;
	struct sim_events_rank *state;
	struct coll_step step;
	u8 *early;
	sim_time now, end;	/* end of the window */
	struct sim_event *local;	/* events of this rank in this window: a heap */
	u32 locals, local_capacity;
	int error;
};

/* --- events.c -------------------------------------------------------------- */

/* Makes a rank the current one, and keeps what has become of it. */
void events_rank_open(struct sim_events *e, u32 rank);
void events_rank_close(struct sim_events *e);

/* Back to the rank's start; it is the current one then. */
void events_rank_reset(struct sim_events *e, u32 rank);

/* No more is to be done: the run has an error. */
bool events_failed(const struct sim_events *e);

/* For this rank; another rank's events are at least a window away. */
void events_later(struct sim_events *e, sim_time time, u32 op, u32 what);

void events_at(struct sim_events *e, u32 rank, sim_time time, u32 op, u32 what);

/* A message from another node, or on a trunk, is at its receiver's node: there is its NIC. */
void events_land(struct sim_events *e, u32 to, sim_time time, u32 recv);

/* --- events_op.c ----------------------------------------------------------- */

/* Executes a calendar entry for the current rank. */
void events_dispatch(struct sim_events *e, const struct sim_event *happening);

/*
 * The message of this rank's send is on its way from `time` on. Returns how long a send above S takes
 * from then on, without noise; SIM_NEVER: its trunk will tell.
 */
sim_time events_carry(struct sim_events *e, u32 rank, u32 op, sim_time time);

/* Time that a message occupies a NIC. */
static inline sim_time events_nic_time(const struct sim_machine *machine, u64 bytes)
{
	return to_time(machine->gap + bytes * machine->nic);
}

/* --- events_nodes.c -------------------------------------------------------- */

int events_nodes_init(struct sim_events *e);
void events_nodes_free(struct sim_events *e);

/* The current rank's message reaches its node's NIC at `time`. */
void events_leave(struct sim_events *e, u32 op, sim_time time);

/* No message lands earlier; SIM_NEVER: none does. */
sim_time events_landing_next(const struct sim_events *e);

/* Delivers what lands in the window that begins at `start`: before the ranks are served. */
void events_nodes_land(struct sim_events *e, sim_time start);

/* Sends what reaches the NICs in the window that ends at e->end: after the ranks. */
void events_nodes_leave(struct sim_events *e);

/* --- events_trunk.c -------------------------------------------------------- */

/* The message uses a shared trunk. */
void events_cross(struct sim_events *e, struct sim_trunk *trunk, u64 bytes, sim_time time,
		  struct sim_crossing crossing);

int events_trunks_init(struct sim_events *e);

void events_trunks_free(struct sim_events *e);

/* Executes the first event of any trunk before `limit`. Returns whether there was one. */
bool events_trunks_step(struct sim_events *e, sim_time limit);

#endif
