// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/ranks.h"
#include "tools/common/arena.h"
#include "circuit.h"

const char *const circuit_family_names[FAMILIES] = {
	[FAMILY_LINEAR] = "linear",
	[FAMILY_RING] = "ring",
	[FAMILY_DOUBLING] = "doubling",
	[FAMILY_BINOMIAL] = "binomial",
};

/* ---- formulas ------------------------------------------------------------------ */

double circuit_formula(enum circuit_family family, const struct circuit_network *n, double bytes,
		       u32 ports)
{
	const double p = n->ranks, steps = log2_ceil(n->ranks), k = ports ? ports : 1;
	const double block = n->alpha + bytes / p * n->beta, whole = n->alpha + bytes * n->beta;
	double time, setups;

	switch (family) {
	case FAMILY_LINEAR:
		time = (p - 1) * whole;
		setups = ceil((p - 1) / k);
		break;
	case FAMILY_RING:
		/* With one port even ranks send first, then odd ones. */
		if (k < 2 && ports != COLL_NONE)
			return 2 * (p - 1) * (block + n->delta);
		time = (p - 1) * block;
		setups = 1;
		break;
	case FAMILY_DOUBLING:
		time = steps * n->alpha + (p - 1) / p * bytes * n->beta;
		setups = ceil(steps / k);
		break;
	default:
		time = steps * whole;
		setups = ceil(steps / k);
		break;
	}
	return ports == COLL_NONE ? time : time + setups * n->delta;
}

struct coll_tuning circuit_tuning(const struct circuit_network *n, u32 ports)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	tuning.ports = ports;
	if (n->wavelengths)
		tuning.wavelengths = n->wavelengths;
	if (n->simplex)
		tuning.simplex = 1;
	return tuning;
}

struct coll_call circuit_call(enum coll_collective collective, u32 ranks, u64 bytes)
{
	const u32 element = bytes % sizeof(double) ? 1 : sizeof(double);

	return (struct coll_call){
		.collective = collective,
		.ranks = ranks,
		.type = element > 1 ? COLL_DOUBLE : COLL_UINT8,
		.reduction = COLL_SUM,
		.element = element,
		.commutative = true,
		.count = bytes / element,
	};
}

struct sim_job circuit_family_job(enum circuit_family family, const struct circuit_network *n,
				  u64 bytes, u64 *all)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} job[FAMILIES] = {
		[FAMILY_LINEAR] = { COLL_BCAST, "linear" },
		[FAMILY_RING] = { COLL_ALLGATHER, "ring" },
		[FAMILY_DOUBLING] = { COLL_ALLGATHER, "doubling" },
		[FAMILY_BINOMIAL] = { COLL_BCAST, "binomial" },
	};
	const bool blocks = job[family].collective == COLL_ALLGATHER;
	const u64 count = blocks ? (bytes + n->ranks - 1) / n->ranks : bytes;

	*all = blocks ? count * n->ranks : count;
	return (struct sim_job){
		.algo = coll_algo_find(job[family].collective, job[family].name),
		.call = circuit_call(job[family].collective, n->ranks, count),
		.tuning = COLL_TUNING_UNSET,
	};
}

/* ---- runs ------------------------------------------------------------------------ */

bool circuit_run(const struct sim_job *job, const struct circuit_network *n, bool one_nic,
		 struct sim_outcome *outcome)
{
	const bool always_up = job->tuning.ports == COLL_UNSET;
	const struct sim_circuits circuits = {
		.setup = n->delta,
		.ports = always_up ? 1 : job->tuning.ports,
		.wavelengths = n->wavelengths,
		.failures = n->failures,
	};
	struct sim_model model = {
		.costs = SIM_COSTS(n->alpha - 2 * n->overhead, n->beta, n->gamma),
		.circuits = always_up ? NULL : &circuits,
	};
	char why[200] = "";
	struct sim *sim;
	int error;

	model.costs.send = model.costs.recv = n->overhead;
	if (one_nic) {
		model.costs.gap = n->alpha;
		model.costs.nic = n->beta;
	}
	error = sim_open(job, &sim, why, sizeof(why));
	if (!error) {
		error = sim_run(sim, &model, n->seed, SIM_EVENTS, outcome, NULL);
		sim_close(sim);
	}
	if (!error)
		return true;
	fprintf(stderr, "coll sim circuit: %s %s, %u ranks: %s\n",
		coll_collective_names[job->call.collective], job->algo->name, job->call.ranks,
		*why		     ? why
		: error == -EDEADLK  ? "deadlock: ranks wait forever"
		: error == -ENOTCONN ? "a message has no circuit"
		: error == -EOVERFLOW ? "longer than virtual time, which is 26 days, or 3 days for an op"
		: error == -EBUSY    ? "more circuits at once than ports or wavelengths"
		: error == -EINVAL   ? "no such model: delta must be more than 0, failures below 1"
				     : strerror(-error));
	return false;
}

static struct coll_machine machine_of(const struct circuit_network *n)
{
	return (struct coll_machine){
		.alpha = n->alpha, .overhead = n->overhead, .beta = n->beta, .gamma = n->gamma,
		.delta = n->delta,
	};
}

/* Bytes. Pages that the planner does not touch cost nothing. */
enum { FIRST_BYTES = 1 << 26 };

/* The call to be costed or planned: `algo` is NULL. */
struct planner_call {
	const struct coll_algo *algo;
	const struct coll_call *call;
	const struct coll_tuning *tuning;
	const struct circuit_network *n;
	void *answer;
};

static int planner_try(const struct planner_call *q, void *memory, u64 bytes)
{
	const struct coll_machine machine = machine_of(q->n);

	return q->algo ? coll_circuits_cost(q->algo, q->call, q->tuning, &machine, memory, bytes,
					    q->answer)
		       : coll_circuits_choose(q->call, q->tuning, &machine, memory, bytes,
					      q->answer);
}

/* Planner memory grows until it suffices. */
static int planner_run(const struct planner_call *q)
{
	u64 bytes = FIRST_BYTES;
	void *memory = NULL;
	int error;

	do {
		memory = memory_grow(memory, bytes, 1);
		error = planner_try(q, memory, bytes);
		bytes *= 2;
	} while (error == -ENOSPC);
	free(memory);
	return error;
}

int circuit_choose(const struct coll_call *call, const struct coll_tuning *tuning,
		   const struct circuit_network *n, struct coll_circuits_choice *choice)
{
	return planner_run(&(struct planner_call){ NULL, call, tuning, n, choice });
}

int circuit_cost(const struct sim_job *job, const struct circuit_network *n,
		 struct coll_circuits_cost *cost)
{
	return planner_run(&(struct planner_call){ job->algo, &job->call, &job->tuning, n, cost });
}
