/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Circuits in virtual time. A node requests one when its schedule's connect starts and it
 * has a free port. The circuit is up one reconfiguration delay after both ends have
 * requested it. A port is free again when the circuit is released and all data on it has
 * arrived. Each direction of a circuit carries one message after another.
 */
#ifndef COLL_SIM_CIRCUITS_H
#define COLL_SIM_CIRCUITS_H

#include "machine.h"

struct sim_circuits_state;

/* NULL: out of memory. The machine's model has circuits. */
struct sim_circuits_state *sim_circuits_new(const struct sim_machine *machine, u32 ranks);
void sim_circuits_free(struct sim_circuits_state *state);

/* Whether memory was missing, which calls report as their -1, or not at all. NULL: no circuits. */
bool sim_circuits_failed(const struct sim_circuits_state *state);

/*
 * `rank` requests a circuit by its op. Returns the time when the circuit is up and sets *peer_op,
 * the connect of the other end; SIM_NEVER: the other end has not requested it yet. -1: no
 * port is free, the schedule is for more ports.
 */
sim_time sim_circuits_request(struct sim_circuits_state *state, u32 rank, u32 peer, u8 flags,
			      u32 op, sim_time now, u32 *peer_op);
/* Returns when its port is free; -1: it was not requested. */
sim_time sim_circuits_release(struct sim_circuits_state *state, u32 rank, u32 peer, u8 flags,
			      sim_time now);

/*
 * Sends a message of `bytes`, ready at `time`, on the circuit to `to`. Returns when it leaves;
 * -1: no circuit carries data there. `way`: time from then to its arrival.
 */
sim_time sim_circuits_carry(struct sim_circuits_state *state, u32 from, u32 to, u64 bytes,
			    sim_time time, sim_time way);

/* Counts set-ups, failed attempts, and the maximum of circuits at once. */
void sim_circuits_count(struct sim_circuits_state *state, struct sim_outcome *outcome);

#endif
