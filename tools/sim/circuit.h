/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll sim circuit: a collective over circuits, by formula, by the planner's cost model and
 * simulated.
 *
 *	cmd_sim_circuit.c	the command
 *	circuit.c		one run; paper 5's formulas
 *	circuit_trace.c		a program's collectives, one after the other
 */
#ifndef COLL_TOOLS_SIM_CIRCUIT_H
#define COLL_TOOLS_SIM_CIRCUIT_H

#include "algo/circuits/circuits.h"
#include "sim/sim.h"

enum { CIRCUIT_RANKS_MAX = 4096 };

/* Paper 5's algorithms. */
enum circuit_family { FAMILY_LINEAR, FAMILY_RING, FAMILY_DOUBLING, FAMILY_BINOMIAL, FAMILIES };
extern const char *const circuit_family_names[FAMILIES];

struct circuit_network {
	u32 ranks;
	double alpha, overhead, beta, gamma, delta;	/* overhead: CPU part of alpha */
	u32 wavelengths;	/* 0: not limited */
	double failures;
	bool simplex;
	u64 seed;
};

/*
 * Seconds of an algorithm's collective of `bytes` in all by the paper's table. `ports` 0: naive;
 * COLL_NONE: ideal, as if all circuits were always up. Doubling and binomial: for 2^m ranks.
 */
double circuit_formula(enum circuit_family family, const struct circuit_network *network,
		       double bytes, u32 ports);

/* The job that the formula describes; its blocks are a p-th of `bytes`, or all of it. */
struct sim_job circuit_family_job(enum circuit_family family,
				  const struct circuit_network *network, u64 bytes, u64 *all);

/*
 * Simulates a job over circuits, with the ports of its tuning; without ports all circuits are
 * always up. `one_nic`: a node sends one message after another, as in the paper; else each circuit
 * sends by itself. False: stderr has the reason.
 */
bool circuit_run(const struct sim_job *job, const struct circuit_network *network, bool one_nic,
		 struct sim_outcome *outcome);

/* Grows the planner's memory until it suffices. Errors as coll_circuits_choose(). */
int circuit_choose(const struct coll_call *call, const struct coll_tuning *tuning,
		   const struct circuit_network *network, struct coll_circuits_choice *choice);
int circuit_cost(const struct sim_job *job, const struct circuit_network *network,
		 struct coll_circuits_cost *cost);

/* For schedules of so many ports in this network. */
struct coll_tuning circuit_tuning(const struct circuit_network *network, u32 ports);

struct coll_call circuit_call(enum coll_collective collective, u32 ranks, u64 bytes);

/* Replays a trace; false: stderr has the reason. */
bool circuit_replay(const char *path, const struct circuit_network *network, const u32 *ports,
		    u32 count, bool json);

#endif
