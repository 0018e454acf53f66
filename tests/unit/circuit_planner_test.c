// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circuits: what the planner predicts is what the simulator finds, no bound is
 * beaten, no port or wavelength used twice, and set-ups that fail cost time only.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/circuits/circuits.h"
#include "sim/sim.h"

enum { MEMORY = 32 << 20 };

static const struct coll_machine machine = {
	.alpha = 30e-6, .beta = 0.8e-9, .gamma = 0, .delta = 10e-3,
};

static struct sim_job job_of(enum coll_collective collective, const char *name, u32 ranks,
			     u64 count)
{
	struct sim_job job = {
		.algo = coll_algo_find(collective, name),
		.call = {
			.collective = collective, .ranks = ranks, .type = COLL_DOUBLE,
			.reduction = COLL_SUM, .element = 8, .commutative = true, .count = count,
		},
		.tuning = COLL_TUNING_UNSET,
	};

	assert_non_null(job.algo);
	return job;
}

static int run(const struct sim_job *job, const struct coll_machine *m,
	       const struct sim_circuits *circuits, struct sim_outcome *outcome)
{
	struct sim_model model = {
		.costs = SIM_COSTS(m->alpha - 2 * m->overhead, m->beta, m->gamma),
		.circuits = circuits,
	};
	struct sim *sim;
	char why[200];
	int error = sim_open(job, &sim, why, sizeof(why));

	if (error)
		fail_msg("%s: %s", job->algo->name, why);
	model.costs.send = model.costs.recv = m->overhead;
	error = sim_run(sim, &model, 7, SIM_ANY_PATH, outcome, NULL);
	sim_close(sim);
	return error;
}

static const struct {
	enum coll_collective collective;
	const char *name;
} some[] = {
	{ COLL_BCAST, "linear" },     { COLL_BCAST, "binomial" },
	{ COLL_ALLGATHER, "ring" },   { COLL_ALLGATHER, "rings" },
	{ COLL_ALLGATHER, "bruck" },  { COLL_ALLGATHER, "doubling" },
	{ COLL_ALLREDUCE, "ring" },   { COLL_ALLREDUCE, "rings" },
	{ COLL_ALLREDUCE, "butterfly" }, { COLL_ALLREDUCE, "rabenseifner" },
	{ COLL_ALLREDUCE, "debruijn" }, { COLL_ALLTOALL, "linear" },
	{ COLL_ALLREDUCE, "cayley" }, { COLL_ALLTOALL, "cayley" },
	{ COLL_ALLTOALL, "bruck" },   { COLL_ALLTOALL, "debruijn" },
	{ COLL_REDUCE, "binomial" },  { COLL_SCATTER, "binomial" },
};

static void compare(struct sim_job *job, const struct coll_machine *m, void *memory)
{
	const struct sim_circuits circuits = { .setup = m->delta, .ports = job->tuning.ports };
	struct coll_circuits_cost cost;
	struct sim_outcome outcome;
	double found;

	if (coll_algo_refuses(job->algo, &job->call, &job->tuning))
		return;
	assert_int_equal(coll_circuits_cost(job->algo, &job->call, &job->tuning, m, memory,
					    MEMORY, &cost), 0);
	assert_int_equal(run(job, m, &circuits, &outcome), 0);
	found = sim_seconds(outcome.finish);
	/* The planner times messages in order of rounds, a CPU in order of time. */
	if (fabs(found - cost.seconds) > (m->overhead > 0 ? 0.1 : 0.05) * cost.seconds)
		fail_msg("%s %s, %u ranks, k=%u ahead=%u simplex=%u, o=%g: predicted %.9g, "
			 "simulated %.9g",
			 coll_collective_names[job->call.collective], job->algo->name,
			 job->call.ranks, (u32)job->tuning.ports, (u32)job->tuning.ahead,
			 (u32)job->tuning.simplex, m->overhead, cost.seconds, found);
	assert_int_equal(outcome.setups, cost.setups);
	assert_true(found >= coll_circuits_bound(&job->call, &job->tuning, m) * (1 - 1e-9));
}

static void predictions_equal_simulations(void **state)
{
	static const u32 ranks[] = { 2, 3, 5, 8, 9, 16 };
	struct coll_machine crowded = machine;
	void *memory = malloc(MEMORY);
	size_t i, r;
	u32 way;

	(void)state;
	crowded.alpha = 200e-6;
	crowded.overhead = 80e-6;
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		for (r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++)
			for (way = 0; way < 4 * COLL_AHEADS * 2; way++) {
				struct sim_job job = job_of(some[i].collective, some[i].name,
							    ranks[r], way % 5 ? 48 : 1 << 16);

				job.tuning.ports = 1 + way % 4;
				job.tuning.ahead = way / 4 % COLL_AHEADS;
				job.tuning.simplex = way / 12;
				compare(&job, &machine, memory);
				compare(&job, &crowded, memory);
			}
	free(memory);
}

static void plans_stay_within_the_wavelengths(void **state)
{
	u32 w, i;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		for (w = 1; w < 6; w += 2) {
			const struct sim_circuits circuits = {
				.setup = machine.delta, .ports = 3, .wavelengths = w,
			};
			struct sim_job job = job_of(some[i].collective, some[i].name, 9, 20);
			struct sim_outcome outcome;

			job.tuning.ports = 3;
			job.tuning.wavelengths = w;
			if (coll_algo_refuses(job.algo, &job.call, &job.tuning))
				continue;
			assert_int_equal(run(&job, &machine, &circuits, &outcome), 0);
			assert_in_range(outcome.circuits, 1, w);
		}
}

/* A schedule for more than there is is found out. */
static void too_few_ports_or_wavelengths_are_detected(void **state)
{
	struct sim_circuits circuits = { .setup = machine.delta, .ports = 1 };
	struct sim_job job = job_of(COLL_ALLGATHER, "ring", 8, 20);
	struct sim_outcome outcome;

	(void)state;
	job.tuning.ports = 2;
	assert_int_equal(run(&job, &machine, &circuits, &outcome), -EBUSY);
	circuits.ports = 2;
	circuits.wavelengths = 7;
	assert_int_equal(run(&job, &machine, &circuits, &outcome), -EBUSY);
	circuits.wavelengths = 8;
	assert_int_equal(run(&job, &machine, &circuits, &outcome), 0);
	assert_int_equal(outcome.circuits, 8);
	job.tuning.ports = COLL_UNSET;	/* no circuit is ever asked for */
	assert_int_equal(run(&job, &machine, &circuits, &outcome), -ENOTCONN);
}

static void nodes_may_have_different_ports(void **state)
{
	const u32 ports[8] = { 1, 4, 2, 3, 1, 2, 4, 4 };
	const struct sim_circuits circuits = {
		.setup = machine.delta, .ports = 4, .of_rank = ports,
	};
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct sim_job job = job_of(some[i].collective, some[i].name, 8, 20);
		struct sim_outcome outcome;

		job.tuning.ports = 4;
		job.call.ports = ports;
		if (coll_algo_refuses(job.algo, &job.call, &job.tuning))
			continue;
		assert_int_equal(run(&job, &machine, &circuits, &outcome), 0);
	}
}

static void failures_cost_time(void **state)
{
	struct sim_circuits circuits = { .setup = machine.delta, .ports = 2, .failures = 0.3 };
	struct sim_job job = job_of(COLL_ALLREDUCE, "butterfly", 16, 20);
	struct sim_outcome without, with;

	(void)state;
	job.tuning.ports = 2;
	assert_int_equal(run(&job, &machine, &circuits, &with), 0);
	circuits.failures = 0;
	assert_int_equal(run(&job, &machine, &circuits, &without), 0);
	assert_int_equal(with.setups, without.setups);
	assert_int_equal(without.setups_failed, 0);
	assert_in_range(with.setups_failed, 1, 31);
	assert_true(with.finish >= without.finish + 9 * SIM_SECOND / 1000);
}

/* 64 nodes of 4 ports: the numbers that are to be reached, in milliseconds. */
static void plans_reach_the_target_times(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
		u64 bytes;
		bool simplex;
		double least, most;
	} target[] = {
		{ COLL_ALLREDUCE, "debruijn", 8, true, 10.08, 10.0901 },
		{ COLL_ALLREDUCE, "cayley", 8, false, 10.12, 10.151 },
		{ COLL_ALLTOALL, "cayley", 64 << 10, false, 11.6, 12.89 },
		{ COLL_ALLREDUCE, "rings", 64 << 20, false, 40, 46.8 },
		{ COLL_ALLTOALL, "debruijn", 64 << 10, true, 11.6, 12.61 },
	};
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(target) / sizeof(target[0]); i++) {
		const struct sim_circuits circuits = { .setup = 10e-3, .ports = 4 };
		struct sim_job job = job_of(target[i].collective, target[i].name, 64,
					    target[i].bytes / 8);
		struct sim_outcome outcome;

		job.tuning.ports = 4;
		job.tuning.simplex = target[i].simplex;
		assert_int_equal(run(&job, &machine, &circuits, &outcome), 0);
		if (sim_seconds(outcome.finish) * 1e3 < target[i].least ||
		    sim_seconds(outcome.finish) * 1e3 > target[i].most)
			fail_msg("%s %s: %.4f ms", coll_collective_names[target[i].collective],
				 target[i].name, sim_seconds(outcome.finish) * 1e3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_equal_simulations),
		cmocka_unit_test(plans_stay_within_the_wavelengths),
		cmocka_unit_test(too_few_ports_or_wavelengths_are_detected),
		cmocka_unit_test(nodes_may_have_different_ports),
		cmocka_unit_test(failures_cost_time),
		cmocka_unit_test(plans_reach_the_target_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
