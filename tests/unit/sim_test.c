// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The simulator: times without noise equal closed forms, a single delay propagates along
 * the messages, simulated bytes are the interpreter's, critical paths are complete.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/ranks.h"
#include "sim/log.h"
#include "tests/lib/interpret.h"
#include "tests/lib/schedules.h"
#include "tests/unit/sim_job.h"

/* ---- closed forms ----------------------------------------------------------- */

static sim_time time_of(enum coll_collective collective, const char *name, u32 ranks, u64 count,
			const struct sim_model *model)
{
	static struct job_setting setting;
	struct sim_job job = job_named(&setting, collective, name, ranks, count);
	sim_time levels, events;

	job.call.root = 0;
	events = job_run(&job, model, 1, SIM_EVENTS, NULL).finish;
	levels = job_run(&job, model, 1, SIM_ANY_PATH, NULL).finish;
	assert_int_equal(levels, events);
	return events;
}

/* The longest way from the root: a child is as many messages away as it has bits. */
static u32 tree_depth(u32 ranks)
{
	u32 most = 0, i;

	for (i = 0; i < ranks; i++)
		if ((u32)__builtin_popcount(i) > most)
			most = __builtin_popcount(i);
	return most;
}

static void any_number_of_ranks(u32 p, const struct sim_model *model)
{
	const sim_time alpha = US, beta = NS, gamma = NS / 10;

	assert_int_equal(time_of(COLL_BARRIER, "dissemination", p, 0, model),
			 log2_ceil(p) * alpha);
	assert_int_equal(time_of(COLL_BARRIER, "linear", p, 0, model), p > 1 ? 2 * alpha : 0);
	assert_int_equal(time_of(COLL_BCAST, "binomial", p, 5, model),
			 tree_depth(p) * (alpha + 40 * beta));
	assert_int_equal(time_of(COLL_BCAST, "chain", p, 1, model), (p - 1) * (alpha + 8 * beta));
	assert_int_equal(time_of(COLL_ALLREDUCE, "ring", p, p, model),
			 2 * (p - 1) * (alpha + 8 * beta) + (p - 1) * 8 * gamma);
	assert_int_equal(time_of(COLL_ALLGATHER, "ring", p, 3, model),
			 (p - 1) * (alpha + 24 * beta));
	assert_int_equal(time_of(COLL_GATHER, "linear", p, 3, model), alpha + 24 * beta);
}

static void powers_of_two(u32 p, const struct sim_model *model)
{
	const sim_time rounds = log2_floor(p), n = 8 * p, alpha = US, beta = NS, gamma = NS / 10;
	const sim_time butterfly = rounds * (alpha + n * (beta + gamma));

	assert_int_equal(time_of(COLL_BARRIER, "butterfly", p, 0, model), rounds * alpha);
	assert_int_equal(time_of(COLL_ALLREDUCE, "butterfly", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLREDUCE, "butterfly-redundant", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLREDUCE, "rabenseifner", p, p, model),
			 2 * rounds * alpha + (p - 1) * 8 * (2 * beta + gamma));
	assert_int_equal(time_of(COLL_REDUCE, "binomial", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLGATHER, "doubling", p, 1, model),
			 rounds * alpha + (p - 1) * 8 * beta);
}

static void times_match_closed_forms(void **state)
{
	const struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10) };
	u32 p;

	(void)state;
	for (p = 2; p <= 70; p++) {
		any_number_of_ranks(p, &model);
		if (!(p & (p - 1)))
			powers_of_two(p, &model);
	}
}

/* ---- delays ------------------------------------------------------------------- */

/* Finish times when one rank begins late and nothing else disturbs. */
static void run_late(const struct sim_job *job, const struct sim_model *model, u32 late,
		     sim_time delay, sim_time *finish)
{
	struct sim_model delayed = *model;
	sim_time start[64] = { 0 };

	start[late] = delay;
	delayed.start = start;
	job_run(job, &delayed, 1, SIM_EVENTS, finish);
}

static void a_delay_propagates_along_the_messages(void **state)
{
	const struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10) };
	static struct job_setting setting;
	const u32 p = 64, late = 37;
	const sim_time delay = 100 * US, way = US + 8 * NS, work = 8 * NS / 10;
	sim_time finish[64];
	struct sim_job job;
	u32 r;

	(void)state;
	job = job_named(&setting, COLL_ALLREDUCE, "butterfly", p, 1);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r],
				 delay + __builtin_popcount(r ^ late) * way + 6 * work);
	job = job_named(&setting, COLL_BARRIER, "dissemination", p, 0);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r],
				 delay + __builtin_popcount((r + p - late) % p) * US);
	job = job_named(&setting, COLL_ALLGATHER, "ring", p, 1);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r], delay + (r == late ? 0 : (r + p - late) % p * way));
	job = job_named(&setting, COLL_BCAST, "binomial", p, 1);
	job.call.root = 0;
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)	/* 37 = 100101b is a leaf */
		assert_int_equal(finish[r], r == late ? delay : __builtin_popcount(r) * way);
}

/* A class that is late is rescued one message after the others are done. */
static void redundancy_tolerates_delays_after_the_first_exchange(void **state)
{
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 0, 1e-9) };
	static struct job_setting setting;
	double slowness[64];
	struct sim_job job;
	struct sim_outcome plain, rescued;
	u32 r;

	(void)state;
	for (r = 0; r < 64; r++)
		slowness[r] = r % 2 ? 1000 : 1;	/* the odd ranks crawl */
	model.slowness = slowness;
	job = job_named(&setting, COLL_ALLREDUCE, "butterfly", 64, 1);
	plain = job_run(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_int_equal(plain.finish, 6 * (US + 8 * US));
	job = job_named(&setting, COLL_ALLREDUCE, "butterfly-redundant", 64, 1);
	rescued = job_run(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_int_equal(rescued.finish, 6 * (US + 8 * NS) + US);
}

/* ---- bytes -------------------------------------------------------------------- */

static bool root_only(const struct coll_call *call)
{
	return call->collective == COLL_REDUCE || call->collective == COLL_GATHER ||
	       call->collective == COLL_GATHERV;
}

static void add_doubles(const struct coll_op *op, void *result, const void *left, const void *right)
{
	const double *a = left, *b = right;
	double *sum = result;
	u64 i;

	for (i = 0; i < op->bytes / sizeof(double); i++)
		sum[i] = a[i] + b[i];
}

/* The same schedules and inputs, in memory and in time, give the same bytes. */
static void compare_bytes(const struct sim_job *job, const struct sim_model *model, u64 seed)
{
	const u32 ranks = job->call.ranks;
	const void *in[ranks];
	void *out[ranks], *kept[ranks];
	struct coll_call call[ranks];
	struct interpret *world;
	struct sim *sim = job_open(job);
	struct sim_outcome outcome;
	u32 r, i;

	for (r = 0; r < ranks; r++) {
		call[r] = job->call;
		call[r].rank = r;
	}
	world = interpret_new(job->algo, call, ranks, &job->tuning);
	world->reduce = add_doubles;
	for (r = 0; r < ranks; r++) {
		const u64 *bytes = interpret_schedule(world, r)->buffer;
		double *values = interpret_buffer(world, r, COLL_IN);

		for (i = 0; i < bytes[COLL_IN] / 8; i++)
			values[i] = random_next(&seed) % 1000;
		if (job->call.collective == COLL_BCAST && r == job->call.root)
			for (i = 0; i < bytes[COLL_OUT] / 8; i++)
				((double *)interpret_buffer(world, r, COLL_OUT))[i] = i;
		in[r] = values;
		out[r] = malloc(bytes[COLL_OUT] + 1);
		memcpy(out[r], interpret_buffer(world, r, COLL_OUT), bytes[COLL_OUT]);
		kept[r] = interpret_buffer(world, r, COLL_OUT);
	}
	assert_int_equal(sim_run_bytes(sim, model, seed, in, out, &outcome), 0);
	if (job->algo->collective != COLL_BARRIER && interpret_run(world, seed))
		fail_msg("%s", world->error);
	for (r = 0; r < ranks; r++) {
		if ((!root_only(&job->call) || r == job->call.root) &&
		    !(job->call.collective == COLL_EXSCAN && !r) &&
		    memcmp(out[r], kept[r], interpret_schedule(world, r)->buffer[COLL_OUT]))
			fail_msg("%s %s: rank %u of %u has another result",
				 coll_collective_names[job->call.collective], job->algo->name, r,
				 ranks);
		free(out[r]);
	}
	interpret_free(world);
	sim_close(sim);
}

static void simulated_bytes_match_the_interpreter(void **state)
{
	static const u32 some[] = { 1, 2, 5, 8, 13 };
	static struct job_setting setting;
	const struct coll_algo *const *algo;
	u32 i;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		for (i = 0; i < sizeof(some) / sizeof(*some); i++) {
			struct sim_job job = job_make(&setting, *algo, some[i], 26);
			struct sim_model model = noisy_model(i % 2, i % 3);

			if (coll_algo_refuses(*algo, &job.call, &job.tuning))
				job.tuning.bound = 26;
			if (!coll_algo_refuses(*algo, &job.call, &job.tuning))
				compare_bytes(&job, &model, i);
		}
}

/* ---- what every op did ------------------------------------------------------------ */

/* From the start to the last rank's end, without a gap or a jump. */
static void check_path(const struct sim_stage *path, u32 count, const struct sim_outcome *outcome)
{
	u32 i;

	assert_true(count > 0);
	assert_int_equal(path[0].begin, 0);
	assert_int_equal(path[count - 1].end, outcome->finish);
	assert_int_equal(path[count - 1].rank, outcome->last);
	for (i = 0; i < count; i++) {
		assert_true(path[i].late >= 0);
		if (i) {
			assert_int_equal(path[i].begin, path[i - 1].end);
			assert_int_equal(path[i].from, path[i - 1].rank);
		}
	}
}

static void critical_paths_have_no_gaps(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} some[] = {
		{ COLL_ALLREDUCE, "butterfly" },    { COLL_ALLREDUCE, "butterfly-redundant" },
		{ COLL_ALLREDUCE, "ring" },	    { COLL_BCAST, "binomial" },
		{ COLL_BARRIER, "dissemination" },  { COLL_GATHER, "linear" },
		{ COLL_ALLTOALL, "pairwise" },
	};
	static struct job_setting setting;
	struct sim_outcome outcome;
	struct sim_stage *path;
	struct sim_log *log;
	u32 i, seed, count;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (seed = 0; seed < 10; seed++) {
			struct sim_model model = noisy_model(seed % 2, seed % 3);
			struct sim_job job =
				job_named(&setting, some[i].collective, some[i].name, 16, 8);
			struct sim *sim = job_open(&job);

			if (seed > 5)
				model.costs.recv = 2e-7;
			if (seed > 7)
				model.costs.nic = 1e-8;
			if (seed > 8)
				model.costs.eager = 8;
			assert_int_equal(sim_run_logged(sim, &model, seed, &outcome, &log), 0);
			assert_int_equal(sim_log_path(log, &path, &count), 0);
			check_path(path, count, &outcome);
			free(path);
			sim_log_free(log);
			sim_close(sim);
		}
}

/* Of watched ranks the log has what it has of all, and the run is the same. */
static void a_log_of_some_ranks_has_what_that_of_all_has(void **state)
{
	static struct job_setting setting;
	const struct sim_model model = noisy_model(1, 1);
	const bool watched[16] = { [3] = true, [12] = true };
	struct sim_job job = job_named(&setting, COLL_ALLREDUCE, "butterfly-redundant", 16, 8);
	struct sim *sim = job_open(&job);
	struct sim_outcome outcome, other;
	struct sim_log *all, *some;
	u32 rank;

	(void)state;
	assert_int_equal(sim_run_logged(sim, &model, 3, &outcome, &all), 0);
	assert_int_equal(sim_run_watched(sim, &model, 3, watched, &other, &some), 0);
	assert_int_equal(outcome.finish, other.finish);
	for (rank = 0; rank < 16; rank++)
		if (watched[rank])
			assert_memory_equal(log_span(all, rank, 0), log_span(some, rank, 0),
					    (all->first[1] - all->first[0]) * sizeof(struct sim_span));
	sim_log_free(all);
	sim_log_free(some);
	sim_close(sim);
}

/* 50000 events a second of 9 us each, and a message of 20 us: what they cost it on average. */
static void noise_of_links_follows_its_semantics(void **state)
{
	static const double mean[SIM_SEMANTICS] = {
		[SIM_EVENT] = 29.0,	/* 1 event inside */
		[SIM_GOAL] = 30.51,	/* and 20 (1 - 1.45 exp -0.45) us of the first that covers the start */
		[SIM_OCCUPANCY] = 33.73,
	};
	static struct job_setting setting;
	struct sim_job job = job_named(&setting, COLL_BCAST, "linear", 2, 1);
	struct sim_model model = { .costs = SIM_COSTS(20e-6, 0, 0), .link = sim_poisson(50000, 9e-6) };
	struct sim *sim = job_open(&job);
	struct sim_outcome outcome;
	u32 semantics, seed;

	(void)state;
	for (semantics = 0; semantics < SIM_SEMANTICS; semantics++) {
		double sum = 0;

		model.semantics = semantics;
		for (seed = 0; seed < 50000; seed++) {
			assert_int_equal(sim_run(sim, &model, seed, SIM_ANY_PATH, &outcome, NULL), 0);
			sum += outcome.finish / 1e6 / 50000;
		}
		if (fabs(sum - mean[semantics]) > 0.15)
			fail_msg("%s: %g us on average", sim_semantics_names[semantics], sum);
	}
	sim_close(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_of_links_follows_its_semantics),
		cmocka_unit_test(times_match_closed_forms),
		cmocka_unit_test(a_delay_propagates_along_the_messages),
		cmocka_unit_test(redundancy_tolerates_delays_after_the_first_exchange),
		cmocka_unit_test(simulated_bytes_match_the_interpreter),
		cmocka_unit_test(critical_paths_have_no_gaps),
		cmocka_unit_test(a_log_of_some_ranks_has_what_that_of_all_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
