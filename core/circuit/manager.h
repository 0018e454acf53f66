/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Between the files of the manager; circuit.h is for all others. Calls go down:
 *
 *	circuit.c	the manager's functions: requests, the switch's answers, time
 *	serve.c		which waiting circuit is served, and which one has to go for it
 *	state.c		the states of a circuit, and what each change entails
 *	lease.c		requests of holders, notifications, port time
 *	port.c		the ports of nodes
 */
#ifndef COLL_CORE_CIRCUIT_MANAGER_H
#define COLL_CORE_CIRCUIT_MANAGER_H

#include "circuit.h"

#define NONE COLL_CIRCUIT_NONE
enum { PAUSE_DOUBLED = 6 };	/* times, at most */

static inline bool coll_circuit_has_ports(const struct coll_circuit *circuit)
{
	return circuit->state == COLL_CIRCUIT_REQUESTED ||
	       circuit->state == COLL_CIRCUIT_SWITCHING || circuit->state == COLL_CIRCUIT_UP ||
	       circuit->state == COLL_CIRCUIT_DRAINING;
}

/* ---- port.c --------------------------------------------------------------- */

/* NONE: the node is unbounded. */
u32 coll_circuit_free_ports(const struct coll_circuit_node *node);
/* Whether a pass has not reserved all its ports yet, the taken ones included. */
bool coll_circuit_has_unreserved(const struct coll_circuit_node *node);
/* One at each end; both have a free one. */
void coll_circuit_take_ports(struct coll_circuit_manager *c, struct coll_circuit *circuit);
void coll_circuit_give_ports(struct coll_circuit_manager *c, struct coll_circuit *circuit);
/* Suspect ports are taken last. */
void coll_circuit_suspect_ports(struct coll_circuit_manager *c, const struct coll_circuit *circuit,
				bool failed);

/* ---- lease.c -------------------------------------------------------------- */

void coll_circuit_detach_lease(struct coll_circuit_manager *c, u32 number);
void coll_circuit_free_lease(struct coll_circuit_manager *c, u32 number);
/* Ends a request: it is detached, and its holder is notified of the error. */
void coll_circuit_end_lease(struct coll_circuit_manager *c, u32 number, int error);
/* The other end's request for the same session, with all of these flags, or NONE. */
u32 coll_circuit_other_end(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
			   const struct coll_circuit_lease *lease, u32 flags);
/* Whether the request counts: one-sided, or with a request of the other end. */
bool coll_circuit_lease_is_matched(const struct coll_circuit_manager *c,
				   const struct coll_circuit *circuit,
				   const struct coll_circuit_lease *lease);
/* Notifies the leases that are up; they are `up` afterwards or not. */
void coll_circuit_notify(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 notify,
			 bool up);
/* Notifies the matched leases that are not up yet. */
void coll_circuit_notify_up(struct coll_circuit_manager *c, struct coll_circuit *circuit);
/* Charges port time up to now: call before ports change their holder. */
void coll_circuit_charge(struct coll_circuit_manager *c, u64 now);
void coll_circuit_catch_up(struct coll_circuit_manager *c, u32 holder);

/* ---- state.c -------------------------------------------------------------- */

/* The one place where a state changes. `until`: when it ends by itself. */
void coll_circuit_set_state(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			    u8 state, u64 until);
void coll_circuit_give_order(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 what);
void coll_circuit_order_down(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now);
/* Takes it down, after `grace` if it is leased and up. */
void coll_circuit_begin_drain(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			      u64 grace);
/* The switch has failed to set it up, or has lost it. */
void coll_circuit_fail(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
		       int error);
/* The pause after this many failed attempts. */
u64 coll_circuit_pause(const struct coll_circuit_manager *c, u32 attempts);
/* Confirmed by the switch. */
void coll_circuit_came_up(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now);
void coll_circuit_went_down(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now);
/* After a lease is detached: an unused circuit is kept for a while, or goes. */
void coll_circuit_unused(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now);

/* ---- serve.c -------------------------------------------------------------- */

/* Gives ports to what waits, in order; takes circuits down to make room. */
void coll_circuit_serve(struct coll_circuit_manager *c, u64 now);

#endif
