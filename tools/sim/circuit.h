/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll sim circuit: a collective over circuits, by formula, by the planner's
 * arithmetic and in the simulator.
 *
 *	cmd_sim_circuit		the command
 *	sim_circuit		one run; paper 5's formulas
 *	sim_circuit_trace	a program's collectives one after the other
 */
#ifndef COLL_TOOLS_SIM_CIRCUIT_H
#define COLL_TOOLS_SIM_CIRCUIT_H

#include "algo/circuits/circuits.h"
#include "sim/sim.h"

/* Paper 5's algorithms. */
enum circuit_family { FAMILY_LINEAR, FAMILY_RING, FAMILY_DOUBLING, FAMILY_BINOMIAL, FAMILIES };
extern const char *const circuit_family_names[FAMILIES];

struct circuit_network {
	u32 ranks;
	double alpha, overhead, beta, gamma, delta;	/* of alpha the CPU's, at each end */
	u32 wavelengths;	/* 0: enough */
	double failures;
	bool simplex;
	u64 seed;
};

/*
 * Seconds of a family's collective of `bytes` in all by the paper's table. `ports`
 * 0: naive; COLL_NONE: ideal, as if circuits were always there. Doubling and binomial:
 * for 2^m ranks.
 */
double circuit_formula(enum circuit_family family, const struct circuit_network *network,
		       double bytes, u32 ports);

/* The job that the formula is of, and its bytes in all: a p-th or the whole of `bytes`. */
struct sim_job circuit_family_job(enum circuit_family family,
				  const struct circuit_network *network, u64 bytes, u64 *all);

/*
 * Runs a job over circuits (of its tuning's ports; without them: there are always
 * circuits). With `one_nic` a node sends one message after another, as the paper's
 * does, else each circuit for itself. False: said why.
 */
bool circuit_run(const struct sim_job *job, const struct circuit_network *network, bool one_nic,
		 struct sim_outcome *outcome);

/* The planner's memory grows until it fits. Errors as coll_circuits_choose(). */
int circuit_choose(const struct coll_call *call, const struct coll_tuning *tuning,
		   const struct circuit_network *network, struct coll_circuits_choice *choice);
int circuit_cost(const struct sim_job *job, const struct circuit_network *network,
		 struct coll_circuits_cost *cost);

struct coll_call circuit_call(enum coll_collective collective, u32 ranks, u64 bytes);

/* Replays a trace; false: said why. */
bool circuit_replay(const char *path, const struct circuit_network *network, const u32 *ports,
		    u32 count, bool json);

#endif
